package storagetest_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

// While a deletion lasts (40 s here), the table is neither there nor gone.
func TestDropsTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := mem.New(mem.Options{})
		s := storagetest.DropsTake(inner, 40*time.Second)
		rows := []storage.Row{{Key: "k"}}
		upsert := func() error { return s.Upsert(t.Context(), "tail20261120", "p", rows) }
		if err := s.Drop(t.Context(), "tail20261120"); err != nil {
			t.Errorf("Drop of nothing: %v", err)
		}
		if err := upsert(); err != nil {
			t.Fatal(err)
		}
		for range 40 {
			if err := s.Drop(t.Context(), "tail20261120"); !errors.Is(err, storage.ErrBeingDeleted) {
				t.Errorf("Drop: %v", err)
			}
			if err := upsert(); !errors.Is(err, storage.ErrBeingDeleted) {
				t.Errorf("Upsert: %v", err)
			}
			for _, err := range s.Scan(t.Context(), "tail20261120", "p", "", "", 0) {
				if !errors.Is(err, storage.ErrNotExist) {
					t.Errorf("Scan: %v", err)
				}
			}
			if got := tables(t, s); !slices.Equal(got, []string{"tail20261120"}) {
				t.Errorf("Tables = %q", got)
			}
			time.Sleep(time.Second)
		}
		if got := tables(t, s); len(got) > 0 {
			t.Errorf("Tables = %q after 40 s", got)
		}
		if err := s.Drop(t.Context(), "tail20261120"); err != nil {
			t.Errorf("Drop after 40 s: %v", err)
		}
		if err := upsert(); err != nil {
			t.Errorf("Upsert after 40 s: %v", err)
		}
	})
}

func tables(t *testing.T, s storage.TableStore) []string {
	t.Helper()
	var names []string
	for name, err := range s.Tables(t.Context(), "tail") {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}
