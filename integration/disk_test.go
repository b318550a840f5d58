package integration_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"blobtail/internal/dev/check"
	"blobtail/internal/dev/testkit"
)

// smallDisk mounts a separate disk for a test.
func smallDisk(t testing.TB, size string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("a disk of %s cannot be mounted here, which takes root: %v", size, err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill writes a file until the disk has no byte left.
func fill(t testing.TB, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for n := 1 << 20; n > 0; {
		if _, err = f.Write(make([]byte, n)); errors.Is(err, syscall.ENOSPC) {
			n /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// Other programs fill the disk of the log to its last byte, again and again. The
// ingester refuses requests, loses no acknowledged record, and goes on flushing. Once
// there is room it works again without a restart. A start on the full disk works too.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, "24m")
	at, _ := dirStore(t)
	wal, other := filepath.Join(disk, "wal"), filepath.Join(disk, "other")
	conf := config(t, "flush: {size: 1MiB, age: 1s, min: 64KiB, max-age: 2s}\nlog: {segment: 1MiB, soft: 4MiB}\n")
	ledger := &check.Ledger{}
	p := start(t, at, wal, conf)
	refused, rounds := 0, 2
	if _, long := torture(t); long {
		rounds = 20
	}
	for round := 0; round < rounds || refused == 0 && round < 6; round++ {
		stop, before := make(chan struct{}), p.metric("blobtail_buffer_refused_total")
		s := &producer{p: p, ledger: ledger, name: fmt.Sprintf("web%d", round)}
		var sending sync.WaitGroup
		sending.Go(func() { s.run(4<<20, stop) })
		time.Sleep(time.Second)
		fill(t, other)
		testkit.Until(t, "a request is refused", func() bool { return p.metric("blobtail_buffer_refused_total") > before })
		close(stop)
		sending.Wait()
		refused += s.refused // not each time: flushing may make room before the answer
		if round%2 == 1 {    // killed, and started on the full disk
			p.kill()
			// A start needs the ballast. A process that was killed just after it gave that up has
			// left its room, which would be taken here.
			if _, err := os.Stat(filepath.Join(wal, "ballast")); err == nil {
				fill(t, other+"2")
			} else {
				t.Logf("round %d: killed without ballast", round)
			}
			p = startApart(t, at, wal, conf)
			// The ballast may leave room for a first request. The ledger checks the
			// records of either answer.
			(&producer{p: p, ledger: ledger, name: fmt.Sprintf("first%d", round)}).one()
		}
		begun := time.Now()
		p.mustFlush()
		t.Logf("round %d: %d bodies refused; flushed in %v on a full disk", round, s.refused, time.Since(begun).Round(time.Millisecond))
		if err := errors.Join(os.Remove(other), os.RemoveAll(other+"2")); err != nil {
			t.Fatal(err)
		}
		again := &producer{p: p, ledger: ledger, name: fmt.Sprintf("again%d", round)}
		testkit.Until(t, "requests are taken again", func() bool { return again.one() == http.StatusOK })
		p.announced()
	}
	if refused == 0 {
		t.Error("no request was refused")
	}
	p.mustFlush()
	if rep := verifyLedger(t, at, ledger); rep.Unknown > 0 || rep.Found != rep.Acked {
		t.Error(rep)
	}
	if code, took := p.stop(); code != 0 {
		t.Errorf("SIGTERM: exit code %d after %v", code, took)
	}
}

// An ingester that holds nothing has to announce itself before it takes a record. On a full disk of its
// log, or of the tables, it cannot, and that is a full disk as another one: 429, until there is room.
func TestFullDiskUnannounced(t *testing.T) {
	t.Parallel()
	for name, tables := range map[string]bool{"of the log": false, "of the tables": true} {
		t.Run(name, func(t *testing.T) {
			disk := smallDisk(t, "24m")
			at, _ := dirStore(t)
			wal, other := filepath.Join(disk, "wal"), filepath.Join(disk, "other")
			if tables {
				at, wal = place{store: "dir:" + filepath.Join(disk, "store")}, filepath.Join(t.TempDir(), "wal")
			}
			s := &producer{p: start(t, at, wal, config(t, "log: {segment: 1MiB}\n")), ledger: &check.Ledger{}, name: "web"}
			fill(t, other)
			for range 2 {
				if code := s.one(); code != http.StatusTooManyRequests {
					t.Errorf("%d on a full disk", code)
				}
			}
			if err := os.Remove(other); err != nil {
				t.Fatal(err)
			}
			testkit.Until(t, "requests are taken again", func() bool { return s.one() == http.StatusOK })
			s.p.mustFlush()
			if rep := verifyLedger(t, at, s.ledger); rep.Unknown > 0 || rep.Found != rep.Acked {
				t.Error(rep)
			}
			if code, took := s.p.stop(); code != 0 {
				t.Errorf("SIGTERM: exit code %d after %v", code, took)
			}
		})
	}
}
