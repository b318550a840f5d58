package integration_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"blobtail/internal/check"
)

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
	if _, errs, code := logquery(t, at, "verify"); code != 0 || strings.Contains(errs, "same batch") {
		t.Errorf("verify exits %d, or finds a batch twice: %s", code, errs)
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
