package integration_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
)

// The row of an ingester cannot be written while it accepts records: the disk is full
// or read-only, or the table is locked or was removed.
func TestCompleteRowUnwritten(t *testing.T) {
	t.Parallel()
	beside(t, map[string]func(t *testing.T){
		"full disk":                          testStoreFull,
		"full disk with the log":             testStoreAndLogFull,
		"locked table":                       testTableLocked,
		"start on a read-only store":         testStartReadOnly,
		"first start on a read-only store":   testFirstStartReadOnly,
		"tables removed":                     func(t *testing.T) { testTablesRemoved(t, ".tables") },
		"table removed":                      func(t *testing.T) { testTablesRemoved(t, ".tables/ingesters") },
		"tables removed, an idle ingester's": testTablesRemovedAtRest,
	})
}

// offers sends n records and returns the number acknowledged.
func (s *station) offers(n int) (taken int) {
	s.t.Helper()
	for range n {
		if code, _ := s.offer(); code == 200 {
			taken++
		}
	}
	return taken
}

func testStoreFull(t *testing.T) {
	disk := smallDisk(t, "24m")
	at := place{store: "dir:" + filepath.Join(disk, "data")}
	p := &promises{}
	s := newStation(t, at, p, "a").start()
	read := newAudit(t, at, p)
	s.take()
	s.rest()
	other := filepath.Join(disk, "other")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	files := 0
	more := func() { files++; fill(t, filepath.Join(other, strconv.Itoa(files))) }
	more()
	since := time.Now()
	t.Logf("%d of 10 records acknowledged on the full disk", s.offers(10))
	read.complete("at once")
	testkit.Until(t, "the row cannot be written", func() bool {
		more() // each write of the row gives the room of its journal back
		code, _ := s.get("/readyz")
		return code == http.StatusServiceUnavailable
	})
	t.Logf("not ready: %s", s.refuses())
	time.Sleep(time.Until(since.Add(silence)))
	read.complete("after a minute")
	read.by("--live-url", s.base).complete("after a minute")
	s.kill()
	read.complete("killed")
	if err := os.RemoveAll(other); err != nil {
		t.Fatal(err)
	}
	s.start().take()
	read.whole("with room again")
}

func testStoreAndLogFull(t *testing.T) {
	disk := smallDisk(t, "128m")
	at := place{store: "dir:" + filepath.Join(disk, "data")}
	p := &promises{}
	s := newStation(t, at, p, "a", config(t, "log: {segment: 1MiB}\n"))
	s.wal = filepath.Join(disk, "data", ".wal")
	s.start().take()
	read := newAudit(t, at, p)
	s.rest()
	// The disk becomes nearly full in an instant, but the ingester checks only now
	// and then.
	crowd(t, filepath.Join(disk, "crowd"), 8<<20)
	since := time.Now()
	taken := s.offers(4)
	fill(t, filepath.Join(disk, "other"))
	t.Logf("%d of 14 records acknowledged on the full disk", taken+s.offers(10))
	t.Logf("not ready: %s", s.refuses())
	time.Sleep(time.Until(since.Add(silence)))
	read.complete("after a minute")
	if err := errors.Join(os.Remove(filepath.Join(disk, "other")), os.Remove(filepath.Join(disk, "crowd"))); err != nil {
		t.Fatal(err)
	}
	s.take()
	read.whole("with room again")
}

func testTableLocked(t *testing.T) {
	at, root := dirStore(t)
	p := &promises{}
	s := newStation(t, at, p, "a").start()
	read := newAudit(t, at, p)
	s.take()
	s.rest()
	free := lockRows(t, root)
	since := time.Now()
	t.Logf("%d of 2 records acknowledged while the table was locked", s.offers(2))
	read.complete("at once")
	t.Logf("not ready: %s", s.refuses())
	time.Sleep(time.Until(since.Add(silence)))
	read.complete("after a minute")
	free()
	s.take()
	s.becomesReady()
	read.whole("unlocked")
}

func testStartReadOnly(t *testing.T) {
	const size = "24m"
	disk := smallDisk(t, size)
	at := place{store: "dir:" + filepath.Join(disk, "data")}
	p := &promises{}
	s := newStation(t, at, p, "a").start()
	read := newAudit(t, at, p)
	s.take()
	s.rest()
	if code, _ := s.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	frozen(t, disk, size, true)
	s.launch()
	t.Logf("%d of 3 records acknowledged on a read-only store", s.offers(3))
	read.complete("at once")
	t.Logf("not ready: %s", s.refuses())
	read.complete("later")
	s.kill()
	read.complete("killed")
	frozen(t, disk, size, false)
	s.start().take()
	read.whole("when it may be written")
}

func testFirstStartReadOnly(t *testing.T) {
	const size = "24m"
	disk := smallDisk(t, size)
	if err := os.Mkdir(filepath.Join(disk, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	at := place{store: "dir:" + filepath.Join(disk, "data")}
	frozen(t, disk, size, true)
	p := &promises{}
	s := newStation(t, at, p, "a")
	s.launch()
	t.Logf("%d of 3 records acknowledged on a read-only store", s.offers(3))
	read := newAudit(t, at, p)
	read.complete("at once")
	t.Logf("not ready: %s", s.refuses())
	read.complete("later")
	s.kill()
	frozen(t, disk, size, false)
	s.start().take()
	read.whole("when it may be written")
}

// The tables are removed while an ingester holds a record, and once more when it is
// dead.
func testTablesRemoved(t *testing.T, what string) {
	at, root := dirStore(t)
	p := &promises{}
	s := newStation(t, at, p, "a").start()
	read := newAudit(t, at, p)
	s.take()
	s.rest()
	s.take()
	remove := func() {
		t.Helper()
		if err := os.RemoveAll(filepath.Join(root, what)); err != nil {
			t.Fatal(err)
		}
	}
	remove()
	for range 3 {
		read.complete("removed")
	}
	read.whole("announced again")
	s.kill()
	remove()
	read.complete("removed, and nobody runs")
	s.start()
	read.whole("started again")
}

// A record accepted right after the tables were removed is found, or reads report it
// missing.
func testTablesRemovedAtRest(t *testing.T) {
	at, root := dirStore(t)
	p := &promises{}
	s := newStation(t, at, p, "a").start()
	read := newAudit(t, at, p)
	s.take()
	s.rest()
	testkit.Until(t, "the tables are removed", func() bool { // the ingester may make a file meanwhile
		return os.RemoveAll(filepath.Join(root, ".tables")) == nil
	})
	s.offer()
	s.kill() // before it checks for records to announce
	read.complete("killed")
	s.start().take()
	read.whole("started again")
}
