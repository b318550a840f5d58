package dir_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"blobtail/storage"
	"blobtail/storage/dir"
	"blobtail/storage/fsys/simdisk"
	"blobtail/storage/storagetest"
)

// states opens the store in every state that a crash may leave.
type states struct {
	t      *testing.T
	there  map[string]bool // as answered
	gone   map[string]bool
	flight string // is being created or deleted
	ops    int
	count  map[string]int
}

// The power is cut and the process is killed before every operation, in every way.
// Answered objects are there and whole, and deleted objects stay away. Only requested
// objects exist, and they are whole.
func TestEveryCrash(t *testing.T) {
	d := simdisk.New(1)
	s := &states{t: t, there: map[string]bool{}, gone: map[string]bool{}, count: map[string]int{}}
	d.SetFault(func(op simdisk.Op) error {
		if op.Kind != "read" && op.Kind != "stat" { // those change nothing
			s.at(op)
		}
		return nil
	})
	for life := range 2 {
		store, err := dir.Open("/store", dir.Options{FS: d, Create: true})
		if err != nil {
			t.Fatal(err)
		}
		s.live(store, life)
	}
	t.Logf("%d operations; states by crash: %v", s.ops, s.count)
}

// live creates objects and deletes some: now and then all of a directory.
func (s *states) live(store *dir.Store, life int) {
	for i := range 10 {
		key := func(i int) string { return fmt.Sprintf("web/%d/%d", i/3, life*10+i) }
		s.flight = key(i)
		storagetest.Put(s.t, store, key(i), bodyOf(key(i)), storage.Attrs{Metadata: map[string]string{"batch": "x"}})
		s.there[key(i)], s.flight = true, ""
		if i%3 != 2 {
			continue
		}
		for k := i - 2 + life; k <= i; k++ {
			s.flight = key(k)
			if err := store.Delete(context.Background(), storage.Blob{Key: key(k)}); err != nil {
				s.t.Fatal(err)
			}
			delete(s.there, key(k))
			s.gone[key(k)], s.flight = true, ""
		}
	}
}

// at checks every state that a crash just before op may leave.
func (s *states) at(op simdisk.Op) {
	s.ops++
	for crash := range simdisk.Crashes {
		tries := uint64(1)
		if crash == simdisk.Prefix || crash == simdisk.Torn || crash == simdisk.Any { // chance decides these
			tries = 8
		}
		for seed := range tries {
			s.count[crash.String()]++
			if err := s.look(op.Fork(crash, seed)); err != nil {
				s.t.Fatalf("operation %d, %s of %s, crash %v, seed %d: %v", op.N, op.Kind, op.Path, crash, seed, err)
			}
		}
	}
}

func (s *states) look(d *simdisk.Disk) error {
	store, found, err := list(d)
	if err != nil {
		return err
	}
	for key, b := range found {
		if !s.there[key] && key != s.flight || s.gone[key] {
			return fmt.Errorf("%s is there", key)
		}
		if err := readWhole(store, b); err != nil {
			return err
		}
		if err := store.Create(context.Background(), key, nil, storage.Attrs{}); !errors.Is(err, storage.ErrExist) {
			return fmt.Errorf("create %s again: %w", key, err)
		}
	}
	for key := range s.there {
		if _, ok := found[key]; !ok && key != s.flight {
			return fmt.Errorf("%s is lost", key)
		}
	}
	_, again, err := list(d.Fork(simdisk.None, 1))
	for key := range found {
		if _, ok := again[key]; !ok && err == nil {
			err = fmt.Errorf("%s is lost, though a Create of it got ErrExist", key)
		}
	}
	return err
}

func list(d *simdisk.Disk) (*dir.Store, map[string]storage.Blob, error) {
	store, err := dir.Open("/store", dir.Options{FS: d, Create: true})
	if err != nil {
		return nil, nil, err
	}
	found := map[string]storage.Blob{}
	for b, err := range store.List(context.Background(), "", "") {
		if err != nil {
			return nil, nil, err
		}
		found[b.Key] = b
	}
	return store, found, nil
}
