package integration_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"blobtail/internal/check"
	"blobtail/record"
)

// client sends bodies of records with times of their own, and keeps account of
// the answers.
type client struct {
	name   string
	ledger *check.Ledger
	http   *http.Client
	target *atomic.Pointer[ingester] // who takes records now; nil for a while
	rand   *rand.Rand
	hours  int // of event time that the records spread over
	sent   int
}

// request is a body that may be sent again as it is.
type request struct {
	path    string
	data    []byte
	headers []string
	ids     []string
}

func newClients(n int, ledger *check.Ledger, target *atomic.Pointer[ingester], seed uint64) []*client {
	out := make([]*client, n)
	for i := range out {
		out[i] = &client{name: fmt.Sprintf("c%d", i), ledger: ledger, http: impatient(), target: target,
			rand: rand.New(rand.NewPCG(seed, uint64(i))), hours: 3}
	}
	return out
}

// next makes a body of 1 to 40 records of one service, or of three.
func (c *client) next() request {
	services := [...]string{"web", "api", "db"}
	n := 1 + c.rand.IntN(40)
	one := c.rand.IntN(2) == 0
	service := services[c.rand.IntN(3)]
	r := request{path: "/ingest"}
	if one {
		r.path += "/" + service
	}
	base := time.Date(2026, 11, 10, 12, 0, 0, 0, time.UTC).UnixNano()
	for range n {
		if !one {
			service = services[c.rand.IntN(3)]
		}
		c.sent++
		id := fmt.Sprintf("%s-%d", c.name, c.sent)
		// Never a whole second, so that a body of one record is known again too.
		at := base + c.rand.Int64N(int64(c.hours)*int64(time.Hour))/1e9*1e9 + 1 + c.rand.Int64N(999_999_999)
		r.data = append(r.data, `{"time":"`...)
		r.data = record.AppendTime(r.data, at)
		r.data = fmt.Appendf(r.data, `","service":"%s","level":"warn","msg":"%s says %d","pad":"%064d"}`+"\n", service, id, at, n)
		r.ids = append(r.ids, id)
		c.ledger.Sent(id, service, at)
	}
	if c.rand.IntN(3) == 0 {
		r.headers = []string{"Idempotency-Key", fmt.Sprintf("key-%s-%d", c.name, c.sent)}
	}
	return r
}

// run sends until stop is closed. What is not answered is sent
// again with probability 1/2, to whoever takes records then, until it is answered
// or given up.
func (c *client) run(stop <-chan struct{}) {
	var again []request
	for {
		select {
		case <-stop:
			return
		default:
		}
		p := c.target.Load()
		if p == nil || p.gone() {
			time.Sleep(time.Millisecond)
			continue
		}
		var r request
		if len(again) > 0 {
			r, again = again[0], again[1:]
		} else {
			r = c.next()
		}
		code, a, _, err := post(c.http, p.listen+r.path, r.data, r.headers...)
		switch {
		case err == nil && code == http.StatusOK && a.Accepted == len(r.ids):
			c.ledger.Acked(r.ids...)
		default:
			if c.rand.IntN(2) == 0 {
				again = append(again, r)
			}
			time.Sleep(time.Duration(1+c.rand.IntN(4)) * time.Millisecond)
		}
	}
}

// verifyLedger reads everything and holds it against the ledger.
func verifyLedger(t testing.TB, at place, ledger *check.Ledger) check.Report {
	t.Helper()
	out, errs, code := logquery(t, at, "*", "-o", "json")
	if code != 0 {
		t.Fatalf("logquery exits %d: %s", code, errs)
	}
	r, err := ledger.Verify(bytes.NewReader(out))
	if err != nil {
		t.Errorf("%v: %v", r, err)
	}
	if n := count(t, at, "*"); n != r.Found {
		t.Errorf("--count says %d, the output has %d lines", n, r.Found)
	}
	if _, errs, code := logquery(t, at, "verify"); code != 0 {
		t.Errorf("verify exits %d: %s", code, errs)
	}
	t.Log(r)
	return r
}

// small makes segments and batches so small that every step of their life comes
// up within a few moments.
const small = `
flush: {size: 64KiB, age: 300ms, min: 4KiB, max-age: 1s}
log: {segment: 1MiB, soft: 4MiB}
`

func kills(t testing.TB) int {
	text := os.Getenv("BLOBTAIL_KILLS")
	if text == "" {
		return 50
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("BLOBTAIL_KILLS=%s is no number", text)
	}
	return n
}

// An ingester that is killed at any moment, starts on the same log and is killed
// again must lose nothing it has acknowledged and show nothing twice.
func TestKills(t *testing.T) {
	t.Parallel()
	stores(t, killLoop)
}

func killLoop(t *testing.T, at place) {
	n := kills(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("%d kills, seed %d", n, seed)
	wal, conf := t.TempDir(), config(t, small)
	ledger := &check.Ledger{}
	var target atomic.Pointer[ingester]
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for _, c := range newClients(6, ledger, &target, seed) {
		wg.Go(func() { c.run(stop) })
	}
	r := rand.New(rand.NewPCG(seed, 99))
	for range n {
		p := launch(t, at, wal, conf, "--grace", "2s")
		killOnce(t, r, p, &target)
		target.Store(nil)
	}
	// What is left unanswered may be sent once more.
	p := start(t, at, wal, conf)
	target.Store(p)
	time.Sleep(200 * time.Millisecond)
	close(stop)
	wg.Wait()
	p.mustFlush()
	rep := verifyLedger(t, at, ledger)
	if rep.Acked < 10*n || rep.Unknown == 0 {
		t.Errorf("%v: the clients got too little done for this to mean anything", rep)
	}
	if code, took := p.stop(); code != 0 || took > 10*time.Second {
		t.Errorf("SIGTERM: exit code %d after %v", code, took)
	}
}

// killOnce lets an ingester that was just started live for a moment.
func killOnce(t *testing.T, r *rand.Rand, p *ingester, target *atomic.Pointer[ingester]) {
	if r.IntN(5) == 0 { // not even until it is ready
		time.Sleep(time.Duration(r.IntN(60)) * time.Millisecond)
		p.kill()
		return
	}
	if err := p.waitReady(20 * time.Second); err != nil {
		t.Fatal(err)
	}
	target.Store(p)
	if r.IntN(3) == 0 {
		go func() { _, _, _ = p.flush("?timeout=1s") }() // it may be killed meanwhile
	}
	time.Sleep(time.Duration(r.IntN(150)) * time.Millisecond)
	switch r.IntN(12) {
	case 0: // an orderly stop
		p.signal(syscall.SIGTERM)
		<-p.exited
	case 1: // one that is cut short
		p.signal(syscall.SIGTERM)
		time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
		p.kill()
	default:
		p.kill()
	}
}
