package integration_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"blobtail/internal/dev/check"
	"blobtail/internal/dev/testkit"
)

// verifyLedger reads all records and compares them with the ledger.
func verifyLedger(t testing.TB, at place, ledger *check.Ledger) check.Report {
	t.Helper()
	path := filepath.Join(t.TempDir(), "all") // it may be large
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(path)
	defer out.Close()
	testkit.Until(t, "logquery reads all", func() bool {
		if err := out.Truncate(0); err != nil {
			t.Fatal(err)
		}
		if _, err = out.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		errs, code := logqueryTo(t, out, at, "*", "-o", "json")
		if code != 0 && !tooSlow(errs, code) {
			t.Fatalf("logquery exits %d: %s", code, errs)
		}
		return code == 0
	})
	if _, err = out.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	r, err := ledger.Verify(out)
	if err != nil {
		t.Errorf("%v: %v", r, err)
	}
	if n := count(t, at, "*"); n != r.Found {
		t.Errorf("--count says %d, the output has %d lines", n, r.Found)
	}
	if _, errs, code := answered(t, at, "verify"); code != 0 || strings.Contains(errs, "same batch") {
		t.Errorf("verify exits %d, or finds a batch twice: %s", code, errs)
	}
	t.Log(r)
	return r
}

// small makes segments and batches so small that every step of their life happens
// within a few moments.
const small = `
flush: {size: 64KiB, age: 300ms, min: 4KiB, max-age: 1s}
log: {segment: 1MiB, soft: 4MiB}
`

// kills returns the number of times an ingester is killed.
func kills(t testing.TB, daily int) int {
	text := os.Getenv("BLOBTAIL_KILLS")
	if text == "" {
		return daily
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("BLOBTAIL_KILLS=%s is no number", text)
	}
	return n
}

// An ingester is killed at any moment, starts on the same log and is killed again. It
// must lose no acknowledged record and show nothing twice. That holds for records
// sent over HTTP and for acknowledged messages of a stream, which it reads meanwhile.
func TestKills(t *testing.T) {
	t.Parallel()
	// In rounds, since the records sent in each are held in memory.
	const round = 500
	for left := kills(t, 100); left > 0; left -= round {
		t.Run("round", func(t *testing.T) {
			at, _ := dirStore(t)
			killLoop(t, at, min(left, round), shortStream(t))
		})
	}
}

func TestKillsAzure(t *testing.T) {
	t.Parallel()
	at, _ := azureStore(t)
	killLoop(t, at, kills(t, 20), nil)
}

func killLoop(t *testing.T, at place, n int, from *stream) {
	seed := newSeed(t)
	wal, text := t.TempDir(), small
	ledger := &check.Ledger{}
	var target atomic.Pointer[ingester]
	stop := make(chan struct{})
	var wg sync.WaitGroup
	// A few requests must be under way at each kill. All others only take time from the rest.
	pause := time.Duration(sized("BLOBTAIL_KILLS", int(2*time.Millisecond), 0))
	for _, c := range newClients(4, ledger, &target, seed) {
		c.pause = pause
		wg.Go(func() { c.run(stop) })
	}
	if from != nil {
		text += from.config()
		for i, c := range newClients(2, ledger, &target, seed+1) {
			c.name, c.single = fmt.Sprintf("m%d", i), true
			wg.Go(func() { from.publish(c, stop) })
		}
	}
	conf := config(t, text)
	r := rand.New(rand.NewPCG(seed, 99))
	begun := time.Now()
	for i := range n {
		p := launch(t, at, wal, conf, "--grace", "2s")
		killOnce(t, r, p, &target)
		target.Store(nil)
		p.forget()
		if from != nil && i == n/2 {
			from.nats.Stop() // an unacknowledged message may be published or not
			from.nats.Start()
		}
	}
	t.Logf("%d kills in %v", n, time.Since(begun).Round(time.Second))
	// Unanswered requests may be sent once more.
	p := start(t, at, wal, conf)
	target.Store(p)
	time.Sleep(200 * time.Millisecond)
	close(stop)
	wg.Wait()
	if from != nil {
		empty(t, from.js, p)
	}
	p.mustFlush()
	rep := verifyLedger(t, at, ledger)
	if rep.Acked < n || rep.Unknown == 0 {
		t.Errorf("%v: the clients got too little done for this to mean anything", rep)
	}
	if code, took := p.stop(); code != 0 || took > p.allowed(10*time.Second) {
		t.Errorf("SIGTERM: exit code %d after %v", code, took)
	}
}

// killOnce lets a just started ingester run for a moment and ends it.
func killOnce(t *testing.T, r *rand.Rand, p *ingester, target *atomic.Pointer[ingester]) {
	if r.IntN(5) == 0 { // not even until it is ready
		time.Sleep(time.Duration(r.IntN(60)) * time.Millisecond)
		p.kill()
		return
	}
	if err := p.waitReady(); err != nil {
		t.Fatal(err)
	}
	target.Store(p)
	if r.IntN(3) == 0 {
		go func() { _, _, _ = p.flush("?timeout=1s") }() // it may be killed meanwhile
	}
	time.Sleep(time.Duration(r.IntN(150)) * time.Millisecond)
	switch r.IntN(12) {
	case 0: // an orderly stop
		p.Signal(syscall.SIGTERM)
		<-p.Exited
	case 1: // one that is cut short
		p.Signal(syscall.SIGTERM)
		time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
		p.kill()
	default:
		p.kill()
	}
}
