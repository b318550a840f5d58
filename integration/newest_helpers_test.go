package integration_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"blobtail/internal/dev/check"
	"blobtail/internal/dev/testkit"
	"blobtail/record"
)

// house is some ingesters of one place that reach each other, and keep their logs and
// addresses through restarts.
type house struct {
	t     testing.TB
	at    place // of the ingesters
	read  place // of readers: it names the ingester to ask if they cannot find one
	dirs  []string
	flags [][]string
	ps    []atomic.Pointer[ingester]
	// unready, if set, is called when an ingester that starts again is not ready at once.
	unready func()
}

// newHouse starts n ingesters and waits until all of them have announced themselves.
func newHouse(t testing.TB, at place, n int, flags ...string) *house {
	t.Helper()
	h := &house{t: t, at: at, read: at, ps: make([]atomic.Pointer[ingester], n)}
	for i := range n {
		address := freeAddress(t)
		h.dirs = append(h.dirs, t.TempDir())
		h.flags = append(h.flags, slices.Concat([]string{"--lane", strconv.Itoa(i + 1), "--listen", address, "--advertise", "http://" + address}, flags))
		if i == 0 && strings.HasPrefix(at.store, "azure:") {
			h.read.env = append(slices.Clone(at.env), "BLOBTAIL_LIVE=http://"+address)
		}
		h.ps[i].Store(launch(t, at, h.dirs[i], h.flags[i]...))
	}
	for i := range n {
		p := h.p(i)
		if err := p.waitReady(); err != nil {
			t.Fatal(err)
		}
		p.announced()
	}
	return h
}

func (h *house) p(i int) *ingester { return h.ps[i].Load() }

// restart ends an ingester, gently or not, and starts it again after a while.
func (h *house) restart(i int, gently bool, after time.Duration) {
	h.t.Helper()
	if gently {
		h.p(i).stop()
	} else {
		h.p(i).kill()
	}
	h.p(i).forget()
	time.Sleep(after)
	p := launch(h.t, h.at, h.dirs[i], h.flags[i]...)
	select {
	case <-p.unready:
		if h.unready != nil {
			h.unready()
		}
	case <-p.ready:
	case <-p.Exited:
	}
	if err := p.waitReady(); err != nil {
		h.t.Fatal(err)
	}
	h.ps[i].Store(p)
}

// handedOut counts the addresses that freeAddress returned. Tests run concurrently,
// and an ingester listens on its address only a moment later.
var handedOut atomic.Int64

// freeAddress returns an unused address with a port that the kernel never assigns by
// itself. So a killed ingester finds its address free at its next start.
func freeAddress(t testing.TB) string {
	t.Helper()
	for range 100 {
		port := 12_000 + (int64(os.Getpid())*997+handedOut.Add(1))%20_000
		address := fmt.Sprintf("127.0.0.1:%d", port)
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			return address
		}
	}
	t.Fatal("no free port")
	return ""
}

// following is a running logquery tail -f.
type following struct {
	testkit.Process
	t    testing.TB
	read chan struct{} // closed when its output is read
}

// follow starts logquery with the arguments and calls each for every line of its
// output, with the arrival time.
func follow(t testing.TB, at place, each func(line []byte, at time.Time), args ...string) *following {
	t.Helper()
	f := &following{t: t, read: make(chan struct{})}
	cmd := exec.Command(filepath.Join(shared.bin, "logquery"), append([]string{"--store", at.store, "-u"}, args...)...)
	cmd.Env = append(testkit.Environ(), at.env...)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = w
	if err := f.Start(shared.parent, cmd); err != nil {
		t.Fatal(err)
	}
	w.Close()
	go func() {
		defer close(f.read)
		eachLine(r, each)
	}()
	t.Cleanup(func() {
		f.Signal(syscall.SIGKILL)
		<-f.Exited
		<-f.read
		if t.Failed() {
			t.Logf("notes of logquery %s:\n%.4000s", strings.Join(args, " "), f.Log())
		}
	})
	return f
}

func eachLine(r io.ReadCloser, each func([]byte, time.Time)) {
	defer r.Close()
	buf := make([]byte, 256<<10)
	var part []byte
	for {
		n, err := r.Read(buf)
		now := time.Now()
		part = append(part, buf[:n]...)
		rest := part
		for {
			end := bytes.IndexByte(rest, '\n') + 1
			if end == 0 {
				break
			}
			each(rest[:end], now)
			rest = rest[end:]
		}
		part = append(part[:0], rest...)
		if err != nil {
			return
		}
	}
}

var (
	moreNote   = regexp.MustCompile(`(?m)^\.\.\. ([0-9,]+) more between .*: logquery (\S+) --from \S+ --to \S+( --store \S+)?$`)
	cursorNote = regexp.MustCompile(`--after (\S+)`)
)

// told returns the number of further records that the notes report.
func (f *following) told() (n int) {
	for _, m := range moreNote.FindAllStringSubmatch(f.Log(), -1) {
		more, err := strconv.Atoi(strings.ReplaceAll(m[1], ",", ""))
		if err != nil {
			f.t.Errorf("%q: %v", m[0], err)
		}
		n += more
	}
	return n
}

// interrupt sends SIGINT, as Ctrl-C does, and returns the cursor for going on. If
// logquery had not even opened the store, that is the cursor it was given.
func (f *following) interrupt() (cursor string) {
	f.t.Helper()
	if err := f.End(syscall.SIGINT); err != nil {
		f.t.Fatal(err)
	}
	<-f.read
	m := cursorNote.FindStringSubmatch(f.Log())
	if m == nil && f.Log() == "" {
		m = cursorNote.FindStringSubmatch(strings.Join(f.Cmd.Args, " "))
	}
	if code := f.Cmd.ProcessState.ExitCode(); code != 130 || m == nil {
		f.t.Fatalf("Ctrl-C: exit code %d, %s; want 130 and a cursor", code, f.Log())
	}
	return m[1]
}

// appendRecord adds a record with an id at the start of its message.
func appendRecord(dst []byte, at int64, id, rest string) []byte {
	dst = record.AppendTime(append(dst, `{"ts":"`...), at)
	dst = append(append(append(dst, `","level":"info","msg":"`...), id...), ' ')
	return append(append(dst, rest...), "\"}\n"...)
}

// probe sends single records until seen reports that one was printed: then a follower
// has begun.
func probe(t testing.TB, p *ingester, service string, seen func() bool) {
	t.Helper()
	n := 0
	testkit.Until(t, "the follower shows a record", func() bool {
		p.mustPost("/ingest/"+service, appendRecord(nil, time.Now().UnixNano(), fmt.Sprintf("probe-%d", n), "is there anybody"))
		n++
		return seen()
	})
	time.Sleep(time.Second) // for the probes still under way
}

// teller sends records with the current time, to one ingester after the other. It
// sends unacknowledged ones again until they are acknowledged.
type teller struct {
	name     string
	services []string
	ledger   *check.Ledger
	house    *house
	only     int // the ingester that it sends to; -1: any, anew for each try
	size     int // of a body
	pause    time.Duration
	keys     bool
	rand     *rand.Rand
	rests    func() bool // it sends nothing meanwhile; nil: never

	mu      sync.Mutex
	acked   []told // in order of their acknowledgement
	strayed map[string]bool
	sent    int
}

// told is a record that a teller has sent.
type told struct {
	id, service string
	at          int64
}

// run sends until stop is closed, and then the remaining records.
func (c *teller) run(stop <-chan struct{}) {
	http := impatient()
	http.Timeout = 5 * time.Second
	for {
		select {
		case <-stop:
			return
		case <-time.After(c.pause):
		}
		if c.rests != nil && c.rests() {
			continue
		}
		service := c.services[c.rand.IntN(len(c.services))]
		var body []byte
		var all []told
		base := time.Now().UnixNano()
		c.mu.Lock()
		for i := range 1 + c.rand.IntN(c.size) {
			c.sent++
			r := told{fmt.Sprintf("%s-%d", c.name, c.sent), service, base + int64(i)}
			c.ledger.Sent(r.id, service, r.at)
			all = append(all, r)
			body = appendRecord(body, r.at, r.id, "says something of some length, as records do")
		}
		c.mu.Unlock()
		var headers []string
		if c.keys {
			headers = []string{"Idempotency-Key", c.name + "-" + all[0].id}
		}
		for begun := time.Now(); time.Since(begun) < testkit.Patience; {
			i := c.only
			if i < 0 {
				i = c.rand.IntN(len(c.house.ps))
			}
			code, a, _, err := post(http, c.house.p(i).listen+"/ingest/"+service, body, headers...)
			if err == nil && code == 200 && a.Accepted == len(all) {
				c.know(all)
				break
			}
			if c.only < 0 {
				c.stray(all)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// know notes that records were acknowledged.
func (c *teller) know(all []told) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range all {
		c.ledger.Acked(r.id)
	}
	c.acked = append(c.acked, all...)
}

// stray notes records that more than one ingester may have.
func (c *teller) stray(all []told) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.strayed == nil {
		c.strayed = map[string]bool{}
	}
	for _, r := range all {
		c.strayed[r.id] = true
	}
}

// known returns the records acknowledged so far.
func (c *teller) known() []told {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.acked[:len(c.acked):len(c.acked)]
}

// begun returns how many records were sent, or are about to be.
func (c *teller) begun() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent
}
