package reads_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"blobtail/internal/dev/bench/rig"
	"blobtail/internal/dev/compare/reads"
	"blobtail/internal/dev/compare/result"
	"blobtail/internal/dev/compare/victoria"
	"blobtail/internal/dev/testkit"
)

const (
	root  = "../../../.."
	tools = root + "/../shared/bench"
)

// TestMain lets this binary be the child that runs commands.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "launch" {
		if err := rig.Launch(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// unless skips a test that needs a thing which this machine has not. CI has all.
func unless(t *testing.T, err error) {
	t.Helper()
	if err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
}

// world is a small corpus, and a store of ours that has it.
type world struct {
	tools  rig.Tools
	corpus *rig.Corpus
	ours   reads.Ours
	server *rig.Server // of ours
}

func newWorld(t *testing.T) *world {
	t.Helper()
	testkit.FullOnly(t, "it builds and runs processes")
	_, err := os.Stat(tools)
	unless(t, err)
	dir := t.TempDir()
	w := &world{}
	if w.tools, err = rig.BuildTools(t.Context(), tools, dir); err != nil {
		t.Fatal(err)
	}
	plan := rig.Chunk(0, 20_000)
	if w.corpus, err = w.tools.Generate(t.Context(), plan, dir, "corpus"); err != nil {
		t.Fatal(err)
	}
	store := "dir:" + filepath.Join(dir, "store")
	g, err := rig.StartIngester(t.Context(), testkit.Command(t, root, "ingest"), testkit.Environ(), "--store", store)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Kill()
	if _, err := w.tools.Post(t.Context(), w.corpus.File, "http://"+g.Listen+"/ingest", 1000, plan.Records); err != nil {
		t.Fatal(err)
	}
	if err := g.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := g.Stop(); err != nil {
		t.Fatal(err)
	}
	w.ours = reads.Ours{Logquery: testkit.Command(t, root, "logquery"), Store: store, Env: testkit.Environ()}
	if w.server, err = rig.Serve(context.WithoutCancel(t.Context()), w.ours.Logquery, w.ours.Env, store); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.server.Kill) // when all subtests have ended
	return w
}

// check holds rows against the promises of all of them.
func check(t *testing.T, rows []result.Row, least, rounds int, both bool) {
	t.Helper()
	if err := (result.Result{Rows: rows}).Check(); err != nil {
		t.Error(err)
	}
	questions := map[string][]string{}
	for _, r := range rows {
		parts := strings.SplitN(r.ID, ".", 3)
		questions[parts[1]] = append(questions[parts[1]], parts[2])
		theirs := 0
		if both {
			theirs = rounds
		}
		if len(r.Ours) != rounds || len(r.Theirs) != theirs || r.OursCommand == "" || (r.TheirsCommand == "") == both || r.Group != "read" {
			t.Errorf("%+v", r)
		}
	}
	if len(questions) < least {
		t.Errorf("%d questions", len(questions))
	}
	for q, got := range questions {
		want := []string{"process", "server.1", "server.8", "cpu", "server.32"}
		if strings.HasSuffix(q, "-again") {
			want = want[1:4]
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has rows %v, want %v", q, got, want)
		}
	}
}

func (w *world) config(t *testing.T) reads.Config {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return reads.Config{Ours: w.ours, Corpus: w.corpus, Rounds: 1, Quick: true, Run: &rig.Runner{Self: self}, Say: t.Logf}
}

// TestRun asks real servers over one store.
func TestRun(t *testing.T) {
	w := newWorld(t)
	t.Run("ours", w.testOurs)
	t.Run("budget", w.testBudget)
	t.Run("wrong", w.testWrong)
	t.Run("wrong process", w.testWrongProcess)
	t.Run("busy", w.testBusy)
	t.Run("both", w.testBoth)
}

// testOurs has no other system. All questions have a round before one of them has another.
func (w *world) testOurs(t *testing.T) {
	config := w.config(t)
	config.Only, config.Rounds = []string{"window", "newest"}, 2
	var order []string
	config.Say = func(format string, args ...any) {
		if said := fmt.Sprintf(format, args...); strings.HasPrefix(said, "read: ") {
			order = append(order, said[len("read: "):][:len("two")]+said[len(said)-len(" (1)"):])
		}
	}
	rows, err := reads.Run(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	check(t, rows, 2, 2, false)
	if want := []string{"two (1)", "the (1)", "two (2)", "the (2)"}; !slices.Equal(order, want) {
		t.Errorf("the rounds are %q, want %q", order, want)
	}
}

// testBudget has a budget that is over at once: each row still has three rounds.
func (w *world) testBudget(t *testing.T) {
	t.Parallel()
	config := w.config(t)
	config.Only, config.Quick, config.Rounds, config.Budget = []string{"id"}, false, 5, time.Nanosecond
	rows, err := reads.Run(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	check(t, rows, 1, 3, false)
}

// changed is a server in front of another one that changes some answers.
type changed struct {
	url string
	pid int
}

// URL implements [reads.Server].
func (c changed) URL() string { return c.url }

// PID implements [reads.Server].
func (c changed) PID() int { return c.pid }

// change answers for base. Requests whose URL has a text get answers as alter makes them, from the
// given request of the text on.
func change(t *testing.T, base string, pid int, with string, from int64, alter func([]byte) []byte) changed {
	t.Helper()
	to, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	var requests atomic.Int64
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ModifyResponse: func(r *http.Response) error {
			text, err := url.QueryUnescape(r.Request.URL.String())
			if err != nil || !strings.Contains(text, with) || requests.Add(1) < from {
				return err
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return err
			}
			r.Body.Close()
			body = alter(body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			if r.ContentLength >= 0 {
				r.ContentLength = int64(len(body))
				r.Header.Set("Content-Length", strconv.Itoa(len(body)))
			}
			return nil
		},
	}
	s := httptest.NewServer(proxy)
	t.Cleanup(s.Close)
	return changed{s.URL, pid}
}

// linesOf changes the lines of a body.
func linesOf(f func([][]byte) [][]byte) func([]byte) []byte {
	return func(body []byte) []byte {
		return bytes.Join(f(slices.Collect(bytes.Lines(body))), nil)
	}
}

func loses(l [][]byte) [][]byte    { return append(l[:1:1], l[2:]...) }
func doubles(l [][]byte) [][]byte  { return append(l[:2:2], l[1:]...) }
func reorders(l [][]byte) [][]byte { l[0], l[1] = l[1], l[0]; return l }
func replaces(l [][]byte) [][]byte { l[1] = l[2]; return l }
func beheads(l [][]byte) [][]byte  { return l[1:] }
func alters(l [][]byte) [][]byte {
	l[1] = bytes.Replace(l[1], []byte(`"user_id":"u1`), []byte(`"user_id":"u2`), 1)
	return l
}

// once changes one body.
func once(f func([]byte) []byte) func([]byte) []byte {
	var done atomic.Bool
	return func(body []byte) []byte {
		if done.Swap(true) {
			return body
		}
		return f(body)
	}
}

// testWrong has a server of ours with wrong answers, from the first or from a later one on.
func (w *world) testWrong(t *testing.T) {
	t.Parallel()
	s := w.server
	const window, newest, hour = "window", "newest", "hour"
	with := map[string]string{window: "level=error,critical", newest: "limit=100&", hour: "service=", "minutes": "by=1m", "services": "split=service",
		"id": "words=", "word": "words=", "text": "text=", "token-text": "text=", "rare": "words=", "expression": "expr=", "newest-all": "limit=100&", "facet": "fields=status"}
	for _, c := range []struct {
		name, question string
		from           int64
		alter          func([]byte) []byte
		want           []string // of the error
	}{
		{"loses a record", window, 1, linesOf(loses), []string{"two minutes of a service", "blobtail", "it lacks 1, such as one of 2026-11-10T15:0"}},
		{"doubles a record", window, 1, linesOf(doubles), []string{"must not have, or not as often, such as {"}},
		{"alters a record", window, 1, linesOf(alters), []string{"it lacks 1", `"user_id":"u2`}},
		{"reorders records", window, 1, linesOf(reorders), []string{"out of order"}},
		{"replaces a record", window, 1, linesOf(replaces), []string{"it lacks 1"}},
		{"loses a record later", window, 2, linesOf(loses), []string{"it lacks 1"}},
		{"doubles a record in the burst of eight", window, 40, linesOf(doubles), []string{"must not have, or not as often, such as {"}},
		{"alters a record later", window, 2, linesOf(alters), []string{"it lacks 1", `"user_id":"u2`}},
		{"reorders records later", window, 3, linesOf(reorders), []string{"out of order"}},
		{"replaces a record later", window, 3, linesOf(replaces), []string{"it lacks 1"}},
		{"loses a record of many", hour, 3, once(linesOf(loses)), []string{"an hour of a service", "records, not", "as in the answer before"}},
		{"alters a record of many", hour, 3, once(linesOf(alters)), []string{"but others"}},
		{"reorders many records", hour, 4, once(linesOf(reorders)), []string{"in another order"}},
		{"replaces a record of many", hour, 5, once(linesOf(replaces)), []string{"but others"}},
		{"always loses a record of many", hour, 2, linesOf(loses), []string{"the answer of blobtail"}},
		{"has no line", window, 2, func([]byte) []byte { return nil }, []string{"0 records, and"}},
		{"breaks a line", window, 1, func(b []byte) []byte { return b[:len(b)-10] }, []string{"this is no record"}},
		{"loses one of the newest", newest, 1, linesOf(loses), []string{"the newest 100 of a service", "99 records, and 100 are right"}},
		{"counts one less", "minutes", 2, func(b []byte) []byte { return bytes.Replace(b, []byte(`"total":5`), []byte(`"total":4`), 1) }, []string{"do not make its total"}},
		{"counts a service wrong", "services", 2, func(b []byte) []byte { return bytes.Replace(b, []byte(`"auth":`), []byte(`"auth":9`), 1) }, []string{"1 of 8 numbers are wrong: auth has 9"}},
		{"counts a value wrong", "facet", 2, func(b []byte) []byte { return bytes.Replace(b, []byte(`"count":`), []byte(`"count":9`), 1) }, []string{"numbers are wrong"}},
		{"lacks an id", "id", 2, linesOf(beheads), []string{"0 records, and 1 are right"}},
		{"lacks a token", "word", 2, linesOf(beheads), []string{"it lacks 1"}},
		{"lacks characters of a token", "token-text", 2, linesOf(beheads), []string{"it lacks 1"}},
		{"lacks characters", "text", 2, linesOf(beheads), []string{"it lacks 1"}},
		{"lacks a seldom word", "rare", 2, linesOf(beheads), []string{"it lacks 1"}},
		{"lacks a match", "expression", 2, linesOf(beheads), []string{"it lacks 1"}},
		{"loses one of the newest of all", "newest-all", 2, linesOf(loses), []string{"99 records, and 100 are right"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			config := w.config(t)
			config.Run, config.Only = nil, []string{c.question}
			config.Ours.Server = change(t, s.Base, s.PID(), with[c.question], c.from, c.alter)
			_, err := reads.Run(t.Context(), config)
			if err == nil {
				t.Fatal("the run ended well")
			}
			for _, text := range c.want {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("the error is %q, want %q in it", err, text)
				}
			}
		})
	}
}

// testWrongProcess has a command that loses a record, and one that fails.
func (w *world) testWrongProcess(t *testing.T) {
	for script, want := range map[string]string{`"` + w.ours.Logquery + `" "$@" | sed 1d`: "it lacks 1", "exit 3": "exit code 3"} {
		config := w.config(t)
		config.Only, config.Ours.Server = []string{"window"}, changed{w.server.Base, w.server.PID()}
		config.Ours.Logquery = filepath.Join(t.TempDir(), "logquery")
		if err := os.WriteFile(config.Ours.Logquery, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := reads.Run(t.Context(), config); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "the answer of blobtail") {
			t.Errorf("%s: %v, want %q", script, err, want)
		}
	}
}

// testBusy has a server that refuses each first request for a time. It gets it again.
func (w *world) testBusy(t *testing.T) {
	t.Parallel()
	s := w.server
	to, err := url.Parse(s.Base)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	var requests atomic.Int64
	busy := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if n := requests.Add(1); n%2 == 1 && n < 13 {
			rw.Header().Set("Retry-After", "1")
			http.Error(rw, "later", http.StatusTooManyRequests)
			return
		}
		proxy.ServeHTTP(rw, r)
	}))
	defer busy.Close()
	config := w.config(t)
	config.Run, config.Only, config.Ours.Server = nil, []string{"window"}, changed{busy.URL, s.PID()}
	rows, err := reads.Run(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	// The wait counts: the first burst has one client, whose requests are refused.
	for _, r := range rows {
		if r.ID == "read.window.server.1" && (r.Ours[0] < 500 || !strings.Contains(r.Note, "blobtail refused 5 requests")) {
			t.Errorf("a median of %v ms, with waits of a second; %s", r.Ours, r.Note)
		}
	}
}

// testBoth asks both systems, and a VictoriaLogs with wrong answers.
func (w *world) testBoth(t *testing.T) {
	t.Parallel()
	path, _, err := victoria.Install(t.Context(), root, t.TempDir())
	unless(t, err)
	v, err := victoria.Start(t.Context(), path, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := w.server
	t.Cleanup(func() { // when all subtests have ended
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := v.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	insert, _, err := v.Insert("ndjson")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.tools.Post(t.Context(), w.corpus.File, v.URL()+insert, 1000, w.corpus.Records); err != nil {
		t.Fatal(err)
	}
	if err := v.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	config := w.config(t)
	log := &sequence{left: reads.Questions(), asked: map[asking][]url.Values{}}
	config.Ours.Server, config.Theirs, config.Say = newLogged(t, s.Base, s.PID(), log), newLogged(t, v.URL(), v.PID(), log), log.say
	rows, err := reads.Run(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	check(t, rows, len(reads.Questions()), 1, true)
	sequences(t, log, config.Ours.Server, config.Theirs)
	more := func(name string) func([]byte) []byte {
		return func(b []byte) []byte { return bytes.Replace(b, []byte(name), []byte(name+"9"), 1) }
	}
	for _, c := range []struct {
		question, with string
		from           int64
		alter          func([]byte) []byte
		want           string
	}{
		{"window", "level:in", 1, linesOf(loses), "it lacks 1"},
		{"newest", "limit=100", 1, linesOf(loses), "99 records, and 100 are right"},
		{"hour", "_time:[", 3, once(linesOf(loses)), "as in the answer before"},
		{"id", "request_id", 1, linesOf(beheads), "0 records, and 1 are right"},
		{"expression", "~", 1, linesOf(beheads), "it lacks 1"},
		{"minutes", "step=1m", 1, more(`"total":`), "do not make their total"},
		{"services", "stats by", 1, more(`"records":"`), "numbers are wrong"},
		{"facet", "top 50", 1, more(`"records":"`), "numbers are wrong"},
	} {
		t.Run(c.question, func(t *testing.T) {
			t.Parallel()
			config := w.config(t)
			config.Run, config.Only, config.Ours.Server = nil, []string{c.question}, changed{s.Base, s.PID()}
			config.Theirs = change(t, v.URL(), v.PID(), c.with, c.from, c.alter)
			if _, err := reads.Run(t.Context(), config); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "the answer of VictoriaLogs") {
				t.Error(err)
			}
		})
	}
}

// sequence has the requests of a run, by server and question.
type sequence struct {
	mu       sync.Mutex
	question string   // the present one
	left     []string // those after it
	asked    map[asking][]url.Values
}

// asking is a question that a server is asked.
type asking struct{ server, question string }

// say is told of each question before its first request.
func (s *sequence) say(format string, _ ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.HasPrefix(format, "read: ") {
		s.question, s.left = s.left[0], s.left[1:]
	}
}

// keep keeps a request.
func (s *sequence) keep(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := asking{"http://" + r.Host, s.question}
	s.asked[of] = append(s.asked[of], r.URL.Query())
}

// newLogged is a server in front of another one that keeps what clients ask it. Requests of
// processes are not kept, because our process reads the store itself.
func newLogged(t *testing.T, base string, pid int, log *sequence) changed {
	t.Helper()
	to, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport = &http.Transport{MaxIdleConnsPerHost: 64}
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.UserAgent(), "curl/") {
			log.keep(r)
		}
		proxy.ServeHTTP(rw, r)
	}))
	t.Cleanup(s.Close)
	return changed{s.URL, pid}
}

// sequences holds the requests of both sides against each other: they ask the same, in one order as
// long as one client asks, and no request asks the same as one of the 30 before it. Questions that
// are asked again are the same all the time.
func sequences(t *testing.T, log *sequence, ours, theirs reads.Server) {
	t.Helper()
	span := func(q url.Values) string { return "_time:[" + q.Get("from") + ", " + q.Get("to") + ")" }
	for _, c := range []struct {
		question string
		differ   int
		as       func(url.Values) string // the request of theirs for one of ours
	}{
		{"word", 30, func(q url.Values) string { return `"` + q.Get("words") + `"` }},
		{"token-text", 30, func(q url.Values) string { return `*"` + q.Get("text") + `"*` }},
		{"text", 30, func(q url.Values) string { return `*"` + q.Get("text") + `"*` }},
		{"id", 30, func(q url.Values) string { return "request_id:=" + strconv.Quote(q.Get("words")) }},
		{"window", 30, func(q url.Values) string {
			return span(q) + ` {service="` + q.Get("service") + `"} level:in("error","critical")`
		}},
		{"hour", 30, func(q url.Values) string {
			return span(q) + ` {service="` + q.Get("service") + `"}`
		}},
		{"newest", 7, func(q url.Values) string { return span(q) + ` {service="` + q.Get("service") + `"}` }},
		{"newest-all", 30, span},
		{"rare", 30, func(q url.Values) string { return `{service="` + q.Get("service") + `"} "` + q.Get("words") + `"` }},
		{"rare-again", 0, func(q url.Values) string { return `{service="` + q.Get("service") + `"} "` + q.Get("words") + `"` }},
	} {
		var asked, want []string
		for _, q := range log.asked[asking{ours.URL(), c.question}] {
			want = append(want, c.as(q))
		}
		for _, q := range log.asked[asking{theirs.URL(), c.question}] {
			asked = append(asked, q.Get("query"))
		}
		const inOrder = 9 // the first one, and at least eight of one client
		if len(want) < inOrder+8 || len(asked) < inOrder || !slices.Equal(asked[:inOrder], want[:inOrder]) {
			t.Errorf("%s: VictoriaLogs was asked %q, want %q", c.question, asked, want)
		}
		for i, text := range want[1:inOrder] {
			if before := want[1:][max(0, i-c.differ):i]; slices.Contains(before, text) {
				t.Errorf("%s: request %d is %s, behind %q", c.question, i, text, before)
			}
		}
		distinct := len(slices.Compact(slices.Sorted(slices.Values(want))))
		if c.differ == 0 && distinct != 1 || distinct <= c.differ {
			t.Errorf("%s: %d different requests", c.question, distinct)
		}
		slices.Sort(asked)
		slices.Sort(want)
		if c.question != "hour" && !slices.Equal(asked, want) { // that one is verified in any order
			t.Errorf("%s: VictoriaLogs was asked %q, want %q", c.question, asked, want)
		}
	}
}
