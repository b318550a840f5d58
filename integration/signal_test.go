package integration_test

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"blobtail/internal/dev/check"
	"blobtail/internal/dev/testkit"
)

// The second SIGTERM ends an ingester at once, even while the first one still waits.
// The log has the acknowledged records.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	through, direct, px := proxied(t)
	wal, ledger := t.TempDir(), &check.Ledger{}
	leaveHolding(t, through, wal, ledger)
	px.set(all(hang))
	p := startApart(t, through, wal, config(t, small), "--grace", "1h")
	sendFor(p, ledger, 1, 300*time.Millisecond)
	p.Signal(syscall.SIGTERM)
	p.Signal(syscall.SIGTERM) // as timeout(1) sends it, to the process and to its group
	p.waitLog(t, `"message":"stopping"`)
	time.Sleep(300 * time.Millisecond)
	if p.Gone() {
		t.Error("it does not wait for the store at all")
	}
	testkit.Until(t, "another SIGTERM ends it", func() bool {
		p.Signal(syscall.SIGTERM) // on a busy machine it may take one for an echo of the first
		return p.Gone()
	})
	if code, _ := p.stop(); code == 0 {
		t.Errorf("the second SIGTERM: exit code %d", code)
	}
	px.set(healthy)
	p = start(t, through, wal, config(t, small))
	p.mustFlush()
	if rep := verifyLedger(t, direct, ledger); rep.Found != rep.Acked {
		t.Error(rep)
	}
}

// A log directory that was copied with its machine holds batches that both machines
// store. Their ids are the same, so they are there once. New records of the two
// copies are kept separate.
func TestClonedLog(t *testing.T) {
	t.Parallel()
	at, direct, px := proxied(t)
	wal, clone := t.TempDir(), t.TempDir()
	ledger := &check.Ledger{}
	leaveHolding(t, at, wal, ledger)
	px.set(all(refuse)) // so that batches are cut and not stored
	p := startApart(t, at, wal, config(t, small))
	sendFor(p, ledger, 1, 500*time.Millisecond)
	testkit.Until(t, "batches are cut", func() bool { return p.metric("blobtail_buffer_open_batches") == 0 })
	p.kill()
	copyDir(t, wal, clone)
	px.set(healthy)

	var ps []*ingester
	for _, dir := range []string{wal, clone} {
		ps = append(ps, start(t, at, dir, config(t, small)))
	}
	var both sync.WaitGroup
	for i, p := range ps {
		both.Go(func() {
			sendFor(p, ledger, uint64(2+i), 300*time.Millisecond)
			if code, f, err := p.flush("?timeout=60s"); err != nil || code != 200 {
				t.Errorf("flush: %d %+v %v", code, f, err)
			}
		})
	}
	both.Wait()
	verifyLedger(t, direct, ledger)
}

// copyDir copies the files of a directory.
func copyDir(t testing.TB, from, to string) {
	t.Helper()
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		b, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, e.Name()), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
