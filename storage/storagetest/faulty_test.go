package storagetest_test

import (
	"context"
	"errors"
	"testing"

	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

// Without faults a wrapped store is the store.
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
	if err := f.Delete(ctx, storage.Keys("web/1", "web/2")...); !errors.As(err, &ke) || ke.Key != "web/2" {
		t.Errorf("Delete: %v", err)
	}
}
