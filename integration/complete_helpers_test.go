package integration_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/internal/lease"
)

// The tests of these files check every read against one rule: it shows each record
// that was acknowledged before it began, or it exits with 3 and prints the reason to
// stderr. Each test brings ingesters and their store into a state in which a read
// once wrongly claimed to be complete.

// silence is longer than the silence of an ingester that still counts as running.
const silence = 65 * time.Second

// beside runs variants of a test concurrently. They spend most of their time waiting,
// so all of them use one of the suite's parallel slots.
func beside(t *testing.T, variants map[string]func(t *testing.T)) {
	t.Helper()
	var running sync.WaitGroup
	for name, test := range variants {
		running.Go(func() { t.Run(name, test) })
	}
	running.Wait()
}

// promises are the sent and the acknowledged records of one store.
type promises struct {
	mu    sync.Mutex
	sent  map[string]bool // ids
	acked map[string]bool
	lost  map[string]bool // given up by an operator
}

// next makes an id and notes that it is sent.
func (p *promises) next(prefix string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sent == nil {
		p.sent, p.acked, p.lost = map[string]bool{}, map[string]bool{}, map[string]bool{}
	}
	id := fmt.Sprintf("%s-%d", prefix, len(p.sent)+1)
	p.sent[id] = true
	return id
}

func (p *promises) ack(ids ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		p.acked[id] = true
	}
}

// giveUp excuses reads from showing some records.
func (p *promises) giveUp(ids ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		delete(p.acked, id)
		p.lost[id] = true
	}
}

// due returns the ids that a read which begins now has to show.
func (p *promises) due() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.acked)
}

// most returns the greatest possible number of records.
func (p *promises) most() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sent)
}

// known reports whether a record was sent to this store.
func (p *promises) known(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent[id]
}

// station is an ingester with addresses and a log that stay the same over restarts.
// They are known before the ingester is ready.
type station struct {
	*ingester
	t           testing.TB
	at          place
	promises    *promises
	name        string // prefix of its records' ids
	wal         string
	base, admin string // URLs of its listeners
	by          []string
	flags       []string
	client      *http.Client
}

// newStation chooses addresses and a log for an ingester; it starts nothing.
func newStation(t testing.TB, at place, p *promises, name string, flags ...string) *station {
	t.Helper()
	s := &station{t: t, at: at, promises: p, name: name, wal: filepath.Join(t.TempDir(), "wal"), flags: flags}
	s.base, s.admin = "http://"+freeAddress(t), "http://"+freeAddress(t)
	// A refusal may take as long as the ingester waits for its tables.
	s.client = &http.Client{Timeout: testkit.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
	return s
}

// launch starts the ingester and waits until its admin listener answers, or the
// process has ended.
func (s *station) launch() {
	s.t.Helper()
	s.begin()
	s.awaitAdmin()
}

// begin starts the ingester without waiting.
func (s *station) begin() {
	s.t.Helper()
	listen, admin := strings.TrimPrefix(s.base, "http://"), strings.TrimPrefix(s.admin, "http://")
	s.ingester = launchBy(s.t, s.by, s.at, s.wal, slices.Concat([]string{"--listen", listen, "--admin", admin, "--advertise", s.base}, s.flags)...)
}

func (s *station) awaitAdmin() {
	s.t.Helper()
	testkit.Until(s.t, s.name+" answers at its admin listener", func() bool {
		code, _ := s.get("/readyz")
		return code != 0 || s.Gone()
	})
}

// start starts the ingester and waits until it accepts records.
func (s *station) start() *station {
	s.t.Helper()
	s.launch()
	s.becomesReady()
	return s
}

func (s *station) becomesReady() {
	s.t.Helper()
	testkit.Until(s.t, s.name+" is ready", func() bool {
		code, text := s.get("/readyz")
		if s.Gone() {
			s.t.Fatalf("%s ended: %v; it said %q", s.name, s.Cmd.ProcessState, text)
		}
		return code == http.StatusOK
	})
}

// get asks the admin listener; 0: it does not answer.
func (s *station) get(path string) (int, string) {
	resp, err := s.client.Get(s.admin + path)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, ""
	}
	return resp.StatusCode, string(text)
}

// refuses waits until the ingester reports that it is not ready, and returns the
// reason.
func (s *station) refuses() (reason string) {
	s.t.Helper()
	testkit.Until(s.t, s.name+" says that it is not ready", func() bool {
		code, text := s.get("/readyz")
		if code == http.StatusServiceUnavailable {
			if reason = strings.TrimSpace(strings.TrimPrefix(text, "not ready:")); len(reason) < 10 {
				s.t.Errorf("%s is not ready, and does not say why: %q", s.name, text)
			}
		} else if s.Gone() {
			s.t.Errorf("/readyz of %s is %d %q, and it has ended; want 503 and a reason", s.name, code, text)
		}
		return code == http.StatusServiceUnavailable || s.Gone()
	})
	return reason
}

// offer sends one record of the service web with the current time.
func (s *station) offer() (code int, id string) {
	s.t.Helper()
	return s.offerAt("web", time.Now())
}

// offerAt sends one record. The ingester acknowledges it, or refuses it with a
// Retry-After. Code 0 means no answer, as from an ingester that has ended.
func (s *station) offerAt(service string, at time.Time) (code int, id string) {
	s.t.Helper()
	id = s.promises.next(s.name)
	code, a, header, err := post(s.client, s.base+"/ingest/"+service, appendRecord(nil, at.UnixNano(), id, "is what happened"))
	switch {
	case code == http.StatusOK && err == nil && a.Accepted == 1:
		s.promises.ack(id)
	case code == 0 || code == http.StatusTooManyRequests:
	case code == http.StatusServiceUnavailable:
		if header.Get("Retry-After") == "" {
			s.t.Errorf("%s answers 503 without Retry-After: %+v", s.name, a)
		}
	default:
		s.t.Errorf("%s answers %d %+v, %v", s.name, code, a, err)
	}
	return code, id
}

// take sends one record until it is acknowledged.
func (s *station) take() (id string) {
	s.t.Helper()
	return s.takeAt(time.Now())
}

func (s *station) takeAt(at time.Time) (id string) {
	s.t.Helper()
	testkit.Until(s.t, s.name+" takes a record", func() bool {
		var code int
		code, id = s.offerAt("web", at)
		return code == http.StatusOK
	})
	return id
}

// flushes asks the ingester to put all records into blobs and reports whether it did.
func (s *station) flushes() bool { return s.flushesWithin(30 * time.Second) }

func (s *station) flushesWithin(limit time.Duration) bool {
	resp, err := s.client.Post(s.admin+"/flush?timeout="+limit.String(), "", nil)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	var f flushed
	return json.NewDecoder(resp.Body).Decode(&f) == nil && f.Flushed
}

// rest puts all records into blobs and waits until the ingester's row says so, if
// rows ever do in this test.
func (s *station) rest() {
	s.t.Helper()
	testkit.Until(s.t, s.name+" flushes", s.flushes)
	tables, end := tablesOf(s.t, s.at)
	defer end()
	for begun := time.Now(); time.Since(begun) < 15*time.Second; time.Sleep(200 * time.Millisecond) {
		rows, _ := lease.List(s.t.Context(), tables, spec(s.t, s.at).Name()) // it may fail, and is tried again
		for _, i := range rows {
			if i.Address == s.base && i.Oldest.IsZero() {
				return
			}
		}
	}
}

// id returns the id of the ingester, which is stored next to its log.
func (s *station) id() string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.wal, "lease"))
	var notes struct{ ID string }
	if err := errors.Join(err, json.Unmarshal(text, &notes)); err != nil {
		s.t.Fatalf("who %s is: %q, %v", s.name, text, err)
	}
	return notes.ID
}

// freeze makes the ingester hang.
func (s *station) freeze() { s.Signal(syscall.SIGSTOP) }

// form is a way to read; each must be complete.
type form struct {
	name  string
	args  []string
	shown func(t testing.TB, out []byte) (n int, ids map[string]int)
}

var (
	asRead   = form{"read", []string{"web"}, shownLines}
	asCount  = form{"--count", []string{"web", "--count"}, shownCount}
	asHist   = form{"hist", []string{"hist", "web", "-o", "json"}, shownHist}
	asNewest = form{"-n", []string{"web", "-n", "1000"}, shownLines}
	asTail   = form{"tail", []string{"tail", "web", "-n", "1000"}, shownLines}
)

func shownLines(t testing.TB, out []byte) (n int, ids map[string]int) {
	t.Helper()
	ids = map[string]int{}
	for line := range bytes.Lines(out) {
		var l struct{ Msg string }
		if err := json.Unmarshal(line, &l); err != nil {
			t.Errorf("line %q: %v", line, err)
		}
		id, _, _ := strings.Cut(l.Msg, " ")
		ids[id]++
		n++
	}
	return n, ids
}

func shownCount(t testing.TB, out []byte) (n int, ids map[string]int) {
	t.Helper()
	text := strings.TrimSpace(string(out))
	n, err := strconv.Atoi(text)
	if err != nil && text != "" {
		t.Errorf("--count prints %q", text)
	}
	return n, nil
}

func shownHist(t testing.TB, out []byte) (n int, ids map[string]int) {
	t.Helper()
	for line := range bytes.Lines(out) {
		var l struct{ Total int }
		if err := json.Unmarshal(line, &l); err != nil {
			t.Errorf("line %q: %v", line, err)
		}
		n += l.Total
	}
	return n, nil
}

// audit reads a store in many forms.
type audit struct {
	t        testing.TB
	at       place
	promises *promises
	forms    []form
	flags    []string
}

func newAudit(t testing.TB, at place, p *promises) audit {
	return audit{t, at, p, []form{asRead, asCount, asHist, asNewest, asTail}, nil}
}

// by reads with more flags.
func (a audit) by(flags ...string) audit {
	a.flags = slices.Concat(a.flags, flags)
	return a
}

// only reads in some forms.
func (a audit) only(forms ...form) audit {
	a.forms = forms
	return a
}

// complete reads in each form. Each read shows all acknowledged records, or reports
// that it does not. In both cases it shows nothing twice, and no record of another
// store. The exit codes and notes are returned by form.
func (a audit) complete(when string) map[string]verdict {
	a.t.Helper()
	var mu sync.Mutex
	all := map[string]verdict{}
	var reading sync.WaitGroup
	for _, f := range a.forms {
		reading.Go(func() {
			v := a.read(when, f)
			mu.Lock()
			defer mu.Unlock()
			all[f.name] = v
		})
	}
	reading.Wait()
	return all
}

// verdict is the outcome of a read.
type verdict struct {
	code int
	n    int
	errs string
}

func (a audit) read(when string, f form) verdict {
	a.t.Helper()
	due := a.promises.due()
	out, errs, code := logquery(a.t, a.at, slices.Concat(f.args, a.flags, []string{"--if-any"})...)
	for begun := time.Now(); code == 5 && tooSlow(errs, code) && time.Since(begun) < testkit.Patience; {
		out, errs, code = logquery(a.t, a.at, slices.Concat(f.args, a.flags, []string{"--if-any"})...)
	}
	n, ids := f.shown(a.t, out)
	what := strings.TrimSpace(when + ": " + f.name + " " + strings.Join(a.flags, " "))
	for id, times := range ids {
		switch {
		case !a.promises.known(id):
			a.t.Errorf("%s prints %q, which is not of this store (exit code %d)", what, id, code)
		case times > 1:
			a.t.Errorf("%s prints %s %d times", what, id, times)
		}
	}
	if most := a.promises.most(); n > most {
		a.t.Errorf("%s shows %d, and %d were sent", what, n, most)
	}
	missing := len(due) - n
	if ids != nil {
		missing = 0
		for id := range due {
			if ids[id] == 0 {
				missing++
			}
		}
	}
	_, notes, _ := strings.Cut(errs, "\n") // the first line names the range
	switch {
	case code == 3 && strings.TrimSpace(notes) == "":
		a.t.Errorf("%s exits 3 and does not say why: %q", what, errs)
	case code == 0 && missing > 0, code == 1 && len(due) > 0:
		a.t.Errorf("WRONG COMPLETE: %s exits %d, and shows %d; %d of %d acknowledged records are missing: %s", what, code, n, missing, len(due), errs)
	case code != 0 && code != 1 && code != 3:
		a.t.Errorf("%s exits %d: %s", what, code, errs)
	}
	return verdict{code, n, errs}
}

// names reads and wants each read to exit with 3 and to print a text. A read for which
// the store was too slow knows less, and is repeated.
func (a audit) names(when, whom string) {
	a.t.Helper()
	all := a.complete(when)
	for _, f := range a.forms {
		v := all[f.name]
		named := func() bool { return v.code == 3 && strings.Contains(v.errs, whom) }
		for begun := time.Now(); !named() && tooSlow(v.errs, v.code) && time.Since(begun) < testkit.Patience; {
			v = a.read(when, f)
		}
		if !named() {
			a.t.Errorf("%s: %s %s exits %d, want 3 and a word of %s: %s", when, f.name, strings.Join(a.flags, " "), v.code, whom, v.errs)
		}
	}
}

// warns reads and wants each read to exit with 3.
func (a audit) warns(when string) {
	a.t.Helper()
	a.names(when, "")
}

// whole waits until each read is complete and exits with 0. It waits with the first form: to
// read in all forms over and over would take much time from the ingesters.
func (a audit) whole(when string) {
	a.t.Helper()
	for begun := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		amiss := ""
		for time.Since(begun) < testkit.Patience && a.read(when, a.forms[0]).code != 0 {
			time.Sleep(200 * time.Millisecond)
		}
		for name, v := range a.complete(when) {
			if v.code != 0 {
				amiss = fmt.Sprintf("%s exits %d: %s", name, v.code, v.errs)
			}
		}
		if amiss == "" {
			return
		}
		if time.Since(begun) > testkit.Patience {
			a.t.Errorf("%s: %v, and not yet whole: %s", when, testkit.Patience, amiss)
			return
		}
	}
}
