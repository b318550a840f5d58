package storagetest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

// Without faults a wrapped store behaves like the store.
func TestFaultyPassesThrough(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) (storage.BlobStore, storage.TableStore) {
		s := mem.New(mem.Options{})
		none := storagetest.Times(0, storagetest.Create, "", storagetest.Fault{Before: storagetest.ErrFault})
		return storagetest.Faulty(s, none), storagetest.FaultyTables(s, none)
	})
}

func TestFaulty(t *testing.T) {
	ctx := t.Context()
	s := mem.New(mem.Options{})
	f := storagetest.Faulty(s, storagetest.InTurn(
		storagetest.Times(1, storagetest.Create, "web/", storagetest.Fault{Before: storagetest.ErrFault}),
		storagetest.Times(1, storagetest.Create, "web/", storagetest.Fault{After: storagetest.ErrFault}),
		storagetest.Times(-1, storagetest.Delete, "web/2", storagetest.Fault{Before: storagetest.ErrFault}),
		storagetest.Times(1, storagetest.List, "", storagetest.Fault{After: storagetest.ErrFault}),
		storagetest.Times(1, storagetest.Stat, "", storagetest.Fault{Block: make(chan struct{})}),
	))
	create := func(key string) error { return f.Create(ctx, key, nil, storage.Attrs{}) }
	if err := create("web/1"); !errors.Is(err, storagetest.ErrFault) {
		t.Errorf("lost request: %v", err)
	}
	if _, err := s.Stat(ctx, "web/1"); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("a lost request reached the store: %v", err)
	}
	if err := create("web/1"); !errors.Is(err, storagetest.ErrFault) {
		t.Errorf("lost response: %v", err)
	}
	if err := create("web/1"); !errors.Is(err, storage.ErrExist) {
		t.Errorf("after a lost response: %v", err)
	}
	n := 0
	for _, err := range f.List(ctx, "", "") {
		if n++; n == 2 && !errors.Is(err, storagetest.ErrFault) {
			t.Errorf("List: %v", err)
		}
	}
	if n != 2 {
		t.Errorf("List yields %d times", n)
	}
	short, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := f.Stat(short, "web/1"); !errors.Is(err, context.Canceled) {
		t.Errorf("blocked Stat: %v", err)
	}
	if err := create("web/2"); err != nil {
		t.Error(err)
	}
	var ke *storage.KeyError
	if err := f.Delete(ctx, storagetest.Keys("web/1", "web/2")...); !errors.As(err, &ke) || ke.Key != "web/2" {
		t.Errorf("Delete: %v", err)
	}
}

// A late write fails now and is carried out when it is let through, even if its caller
// has gone. Its condition is checked then.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.New(mem.Options{})
		through := make(chan struct{})
		f := storagetest.FaultyTables(s, storagetest.Times(2, storagetest.Swap, "", storagetest.Fault{Late: through}))
		ctx, cancel := context.WithCancel(t.Context())
		for _, key := range []string{"a", "b"} {
			row := storage.Row{Key: key, Props: map[string]any{"late": true}}
			if _, err := f.Swap(ctx, "t00", "p", row); !errors.Is(err, storagetest.ErrFault) {
				t.Errorf("a late write: %v", err)
			}
		}
		cancel()
		if _, err := f.Swap(t.Context(), "t00", "p", storage.Row{Key: "b", Props: map[string]any{}}); err != nil {
			t.Error(err)
		}
		list := func() (got []string) {
			for row, err := range s.Scan(t.Context(), "t00", "p", "", "", 0) {
				if err != nil {
					t.Error(err)
				}
				got = append(got, fmt.Sprint(row.Key, len(row.Props)))
			}
			return got
		}
		if got := list(); !slices.Equal(got, []string{"b0"}) {
			t.Errorf("before they are let through: %v", got)
		}
		close(through)
		synctest.Wait()
		if got := list(); !slices.Equal(got, []string{"a1", "b0"}) {
			t.Errorf("afterwards: %v", got)
		}
	})
}
