package integration_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
)

// The directory of the store is not the one of the start: its disk was unmounted, or
// an operator put another directory in its place. The ingester stores nothing there
// and acknowledges no more records.
func TestCompleteStoreReplaced(t *testing.T) {
	t.Parallel()
	beside(t, map[string]func(t *testing.T){
		"unmounted": func(t *testing.T) {
			disk, mount := t.TempDir(), t.TempDir()
			bind(t, disk, mount)
			testStoreReplaced(t, mount, func() { unbind(t, mount) }, func() { bind(t, disk, mount) })
		},
		"renamed": func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "store")
			if err := os.Mkdir(root, 0o700); err != nil {
				t.Fatal(err)
			}
			swap := func(out, in string) func() {
				return func() {
					t.Helper()
					if err := os.Rename(root, root+out); err != nil {
						t.Fatal(err)
					}
					if err := os.Rename(root+in, root); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := os.Mkdir(root+".bare", 0o700); err != nil {
				t.Fatal(err)
			}
			testStoreReplaced(t, root, swap(".full", ".bare"), swap(".bare", ".full"))
		},
		"start without the disk":    testStartUnmounted,
		"disk that comes back over": testMountedOver,
	})
}

func testStoreReplaced(t *testing.T, root string, away, back func()) {
	at := place{store: "dir:" + root}
	p := &promises{}
	s := newStation(t, at, p, "a").start()
	s.take()
	s.rest()
	said := len(s.Log())
	away()
	begun := time.Now()
	taken := s.offers(3) // none if the ingester notices at once
	s.offerStored()
	reason := s.refuses()
	t.Logf("not ready after %v: %s", time.Since(begun), reason)
	if n := s.offers(3); n > 0 {
		t.Errorf("%d of 3 records acknowledged by an ingester whose store is another directory", n)
	}
	if s.flushesWithin(2*time.Second) && taken > 0 { // the store is away
		t.Error("/flush says that all is stored, in another directory than at the start")
	}
	if names := blobsBelow(t, root); len(names) > 0 {
		t.Errorf("in the other directory there are %q", names)
	}
	if !strings.Contains(s.Log()[said:], root) {
		t.Errorf("its own log does not say that %s was replaced: %q", root, s.Log()[said:])
	}
	read := newAudit(t, at, p)
	back()
	read.complete("the directory is back")
	if s.Gone() {
		s.start()
	}
	s.take()
	s.becomesReady()
	read.whole("the directory is back, and it works again")
	if !s.flushes() {
		t.Error("it does not flush")
	}
	s.kill()
	read.complete("killed")
	s.start()
	read.whole("started again")
}

// offerStored sends a record that is answered once it is in a blob. A long wait for
// the answer is no failure if the record cannot be stored.
func (s *station) offerStored() {
	s.t.Helper()
	id := s.promises.next(s.name)
	hasty := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	code, a, _, err := post(hasty, s.base+"/ingest/web", appendRecord(nil, time.Now().UnixNano(), id, "is what happened"), "Ack", "stored")
	if err == nil && code == http.StatusOK && a.Accepted == 1 {
		s.promises.ack(id)
	}
}

// The store's disk is not mounted when an ingester starts with a log of that store.
// The ingester does not mistake the bare directory for the store.
func testStartUnmounted(t *testing.T) {
	disk, mount := t.TempDir(), t.TempDir()
	bind(t, disk, mount)
	at := place{store: "dir:" + mount}
	p := &promises{}
	s := newStation(t, at, p, "a").start()
	s.take()
	s.rest()
	s.take()
	s.kill()
	unbind(t, mount)
	s.launch()
	if !s.Gone() {
		t.Logf("not ready: %s", s.refuses())
	}
	s.offers(3)
	if s.flushes() {
		t.Error("/flush says that all is stored, in the bare directory")
	}
	bind(t, disk, mount)
	read := newAudit(t, at, p)
	read.complete("mounted")
	s.kill()
	read.complete("killed")
	s.start()
	read.whole("started again")
}

// An ingester starts on the bare directory, which also holds its log. Then the disk
// is mounted over both.
func testMountedOver(t *testing.T) {
	disk, mount := t.TempDir(), t.TempDir()
	bind(t, disk, mount)
	at := place{store: "dir:" + mount}
	p := &promises{}
	s := newStation(t, at, p, "a")
	s.wal = filepath.Join(mount, ".wal")
	s.start().take()
	s.rest()
	if code, _ := s.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	unbind(t, mount)
	// The records it accepts there belong to that directory's store.
	s.promises, s.name = &promises{}, "bare"
	id := s.start().take()
	// A write of a table that has begun before the mount may end in either directory.
	testkit.Until(t, "the tail has the record", func() bool {
		out, _, _ := logquery(t, at, "tail", "web", "-n", "9", "--live", "off")
		return strings.Contains(string(out), id)
	})
	bind(t, disk, mount)
	s.promises, s.name = p, "a"
	testkit.Until(t, "it is not ready after the mount, or has ended", func() bool {
		code, _ := s.get("/readyz")
		return code == http.StatusServiceUnavailable || s.Gone()
	})
	if n := s.offers(3); n > 0 {
		t.Errorf("%d of 3 records acknowledged by an ingester whose store is below a mount", n)
	}
	read := newAudit(t, at, p)
	read.complete("mounted over it")
	s.kill()
	read.complete("killed")
	// A read may still name records that the other ingester announced to this store.
	s.start().take()
	read.complete("started on the disk")
}
