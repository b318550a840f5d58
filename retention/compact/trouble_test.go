package compact_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/catalog/horizon"
	"blobtail/retention/compact"
	"blobtail/storage"
	"blobtail/storage/storagetest"
)

// Blobs that the store refuses to delete are reported, and the others are deleted.
func TestHeld(t *testing.T) {
	w := newWorld(t)
	w.minutes(5)
	w.run(compact.Options{})
	w.now = w.now.Add(time.Hour)
	held := errors.New("the blob is under legal hold")
	store := storagetest.Faulty(w.store, storagetest.Times(-1, storagetest.Delete, "000003", storagetest.Fault{Before: held}))
	got, err := w.compact(t.Context(), store, compact.Options{})
	if err != nil || got.Deleted != 4 || len(got.Problems) != 1 || !errors.Is(got.Problems[0], held) || !strings.Contains(got.Problems[0].Error(), "1500/000003.log") {
		t.Errorf("run: %+v, %v", got, err)
	}
}

// An unreachable store ends the run; a single failing hour does not.
func TestStoreAway(t *testing.T) {
	w := newWorld(t)
	w.minutes(2)
	for i := range 5 {
		later := time.Duration(i+1) * -time.Hour
		w.put(1, hour.Add(later), shifted(request(1, 5, 0, time.Minute), later))
		w.put(2, hour.Add(later), shifted(request(2, 5, 0, time.Minute), later))
	}
	one := storagetest.Faulty(w.store, storagetest.Times(-1, storagetest.Create, "/1300/", storagetest.Fault{Before: storagetest.ErrFault}))
	got, err := w.compact(t.Context(), one, compact.Options{})
	if err != nil || got.Out != 5 || len(got.Problems) != 1 || !errors.Is(got.Problems[0], storagetest.ErrFault) {
		t.Errorf("one hour: %+v, %v", got, err)
	}
	for _, op := range []storagetest.Op{storagetest.Dirs, storagetest.List, storagetest.Get, storagetest.Create} {
		w := newWorld(t)
		for i := range 5 {
			later := time.Duration(i+1) * -24 * time.Hour
			w.put(1, hour.Add(later), shifted(request(1, 5, 0, time.Minute), later))
			w.put(2, hour.Add(later), shifted(request(2, 5, 0, time.Minute), later))
		}
		gone := storagetest.Faulty(w.store, storagetest.Times(-1, storagetest.Dirs, "", storagetest.Fault{Before: storage.ErrNotExist}))
		if _, err := w.compact(t.Context(), gone, compact.Options{}); !errors.Is(err, storage.ErrNotExist) {
			t.Errorf("no store: %v", err)
		}
		away := storagetest.Faulty(w.store, storagetest.Times(-1, op, "", storagetest.Fault{Before: storagetest.ErrFault}))
		got, err := w.compact(t.Context(), away, compact.Options{})
		if !errors.Is(err, storagetest.ErrFault) || got.Out != 0 {
			t.Errorf("%s away: %+v, %v", op, got, err)
		}
	}
}

// If a day is dropped while its hour is being compacted, nothing of it is stored any
// more, or it is deleted again.
func TestDroppedMeanwhile(t *testing.T) {
	for _, when := range []storagetest.Op{storagetest.Get, storagetest.Create} {
		w := newWorld(t)
		w.minutes(3)
		var dropped sync.Once
		var c calls
		store := storagetest.Faulty(w.store, func(op storagetest.Op, key string) storagetest.Fault {
			if op == when {
				dropped.Do(func() { w.must(horizon.Drop(context.Background(), w.store, "web", horizon.DayOf(hour))) })
			}
			return storagetest.Fault{}
		})
		got, err := w.compact(t.Context(), c.of(store), compact.Options{})
		if err != nil || got.Out != 0 || len(got.Problems) > 0 || when == storagetest.Get && c.n[storagetest.Create] > 0 {
			t.Errorf("dropped at %s: %+v, %v", when, got, err)
		}
		for _, key := range w.keys() {
			if strings.Contains(key, "/99") {
				t.Errorf("dropped at %s: %s was stored", when, key)
			}
		}
	}
}

// Foreign objects are left alone and counted.
func TestForeign(t *testing.T) {
	w := newWorld(t)
	w.minutes(3)
	w.must(w.store.Create(t.Context(), "web/2026/11/20/1500/notes.txt", []byte("x"), storage.Attrs{}))
	w.must(w.store.Create(t.Context(), "web/README", []byte("x"), storage.Attrs{}))
	w.must(w.store.Create(t.Context(), "web/2026/11/20/1500/000900.log", []byte("x"), storage.Attrs{}))
	got := w.run(compact.Options{})
	if got.Foreign != 3 || got.Out != 1 {
		t.Errorf("run: %+v", got)
	}
	if n := len(w.keys()); n != 7 {
		t.Errorf("%d objects: %v", n, fmt.Sprint(w.keys()))
	}
}
