package lease_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/internal/lease"
	"blobtail/storage"
	"blobtail/storage/fsys"
	"blobtail/storage/fsys/simdisk"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

// ward is a log with records or none, and tables that may fail, for announcers.
type ward struct {
	t     *testing.T
	store *mem.Store

	mu       sync.Mutex
	fault    storagetest.Script // nil: none
	swaps    int
	since    time.Time   // arrival of the oldest unflushed record; zero: there is none
	times    []time.Time // of unflushed records, for a row with a floor
	lost     lease.Loss
	storeErr error
}

func newWard(t *testing.T) *ward { return &ward{t: t, store: mem.New(mem.Options{})} }

// tables are the store with its faults.
func (w *ward) tables() storage.TableStore {
	return storagetest.FaultyTables(w.store, func(op storagetest.Op, key string) storagetest.Fault {
		w.mu.Lock()
		defer w.mu.Unlock()
		if op == storagetest.Swap {
			w.swaps++
		}
		if w.fault == nil {
			return storagetest.Fault{}
		}
		return w.fault(op, key)
	})
}

func (w *ward) setFault(s storagetest.Script) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault = s
}

// away makes all calls to the tables fail.
func (w *ward) away() {
	w.setFault(func(storagetest.Op, string) storagetest.Fault {
		return storagetest.Fault{Before: storagetest.ErrFault}
	})
}

// counted returns how often a row was to be written since the last time.
func (w *ward) counted() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.swaps
	w.swaps = 0
	return n
}

// took puts a record into the log, and stored removes it.
func (w *ward) took() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since.IsZero() {
		w.since = time.Now()
	}
}

func (w *ward) stored() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since = time.Time{}
}

// flushes stores all records, and their times up to one.
func (w *ward) flushes(upto time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.times = slices.DeleteFunc(w.times, func(t time.Time) bool { return !t.After(upto) })
	if len(w.times) == 0 {
		w.since = time.Time{}
	}
}

func (w *ward) lose(l lease.Loss) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost = l
}

// on is the options of an announcer of this ward with its notes in a directory.
func (w *ward) on(disk fsys.FS, dir string) func(*lease.Options) {
	return func(o *lease.Options) {
		o.FS, o.Dir, o.Auto, o.Lane = disk, dir, false, 3
		o.Oldest = func() (time.Time, bool) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.since, !w.since.IsZero()
		}
		o.Lost = func() lease.Loss {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.lost
		}
		o.StoreID = func() (string, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return "0123456789abcdef0123456789abcdef", w.storeErr
		}
	}
}

// launch runs an announcer and waits until it has tried to announce itself.
func (w *ward) launch(disk fsys.FS, change ...func(*lease.Options)) *peer {
	w.t.Helper()
	p := launch(w.t, w.tables(), identity{ID: "0badcafe"}, append([]func(*lease.Options){w.on(disk, logDir)}, change...)...)
	<-p.First()
	return p
}

// row is the only row.
func (w *ward) row() lease.Ingester {
	w.t.Helper()
	return one(w.t, w.store, "")
}

// says checks the state of the only row.
func (w *ward) says(want lease.State) {
	w.t.Helper()
	if got := w.row().State; got != want {
		w.t.Errorf("after %v the row says %s, want %s", time.Since(epoch), got, want)
	}
}

// epoch is when a bubble of testing/synctest begins.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// enter enters, so that a record may be accepted.
func (w *ward) enter(p *lease.Announcer) error {
	leave, err := p.Enter(context.Background(), math.MaxInt64)
	if err != nil {
		return err
	}
	w.took()
	leave()
	return nil
}

// refused checks that records are refused, and for how long that took.
func (w *ward) refused(p *lease.Announcer, most time.Duration) {
	w.t.Helper()
	begun := time.Now()
	if err := w.enter(p); err == nil || !strings.Contains(err.Error(), "cannot be announced, and readers would miss") {
		w.t.Errorf("Enter gives %v", err)
	}
	if took := time.Since(begun); took > most {
		w.t.Errorf("that took %v", took)
	}
}

// note is the content of the notes in a directory; "" if they are missing.
func note(t *testing.T, disk fsys.FS, dir string) (state, id string) {
	t.Helper()
	text, err := fsys.ReadFile(disk, filepath.Join(dir, "lease"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", ""
	}
	var n struct{ State, ID string }
	if err == nil {
		err = json.Unmarshal(text, &n)
	}
	if err != nil {
		t.Fatalf("the notes: %q, %v", text, err)
	}
	return n.State, n.ID
}

// end ends a process as a kill does, and returns its disk for the next.
func (p *peer) end(disk *simdisk.Disk) *simdisk.Disk {
	next := disk.Kill()
	p.kill()
	return next
}
