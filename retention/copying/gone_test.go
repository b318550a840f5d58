package copying_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/catalog/horizon"
	"blobtail/internal/storeid"
	"blobtail/retention/copying"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

// unmounted is a store that is another one after its first blob.
type unmounted struct{ storage.BlobStore }

// Create implements [storage.BlobStore].
func (u *unmounted) Create(ctx context.Context, key string, body []byte, a storage.Attrs) error {
	err := u.BlobStore.Create(ctx, key, body, a)
	if strings.HasSuffix(key, ".log") {
		u.BlobStore = mem.New(mem.Options{})
	}
	return err
}

// A store whose disk goes during a run is not made a copy that is whole.
func TestUnmounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := settled(t)
		defer h.Stop()
		send(t, h, h.Now(), "web")
		h.Flush()
		to := &unmounted{mem.New(mem.Options{})}
		if _, err := copying.Run(t.Context(), h.Store, to, options(h)); !errors.Is(err, storeid.ErrNoCopy) {
			t.Error(err)
		}
		if keys := storagetest.KeysOf(t, to, ""); len(keys) > 0 {
			t.Errorf("%v", keys)
		}
	})
}

// swept is a store that notes what it is to sweep.
type swept struct {
	storage.BlobStore
	dirs []string
}

func (s *swept) Sweep(_ context.Context, dir string) error {
	s.dirs = append(s.dirs, dir)
	return nil
}

// What an erasure has replaced and deleted goes in the copy at the next run: the mark of the day says
// why, and the blob that is left is there first.
func TestErased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := settled(t)
		defer h.Stop()
		to := mem.New(mem.Options{})
		day := time.Now().UTC().Add(-50 * time.Hour).Truncate(24 * time.Hour)
		send(t, h, day, "web", "orders")
		h.Flush()
		copied(t, h.Store, to, options(h))
		old := storagetest.Objects(t, h.Store, "web/")[0]
		storagetest.Put(t, h.Store, "_erase/web/"+day.Format("20060102")+".0123456789abcdef", nil)
		left := strings.Replace(old.Key, "000001", "990001", 1)
		storagetest.Put(t, h.Store, left, []byte("left"), storage.Attrs{Metadata: map[string]string{"format": "2"}})
		if err := h.Store.Delete(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		o := options(h)
		o.Since = horizon.DayOf(day) + 1 // a run that does not look at the day leaves it
		if r := copied(t, h.Store, to, o); r.Deleted != 0 {
			t.Errorf("%+v", r)
		}
		full := storagetest.Faulty(to, func(op storagetest.Op, key string) storagetest.Fault {
			if op == storagetest.Create && key == left {
				return storagetest.Fault{Before: storagetest.ErrFault}
			}
			return storagetest.Fault{}
		})
		r, err := copying.Run(t.Context(), h.Store, full, options(h)) // what is left cannot come: all of it stays
		if err != nil || len(r.Problems) != 1 || r.Deleted != 0 || !r.Whole.Through.IsZero() {
			t.Errorf("%+v, %v", r, err)
		}
		directory := &swept{BlobStore: to}
		if r := copied(t, h.Store, directory, options(h)); r.Deleted != 1 || r.Copied != 1 {
			t.Errorf("%+v", r)
		}
		if want := "web/" + day.Format("2006/01/02/"); !slices.Contains(directory.dirs, want) {
			t.Errorf("swept are %q, want %s", directory.dirs, want)
		}
		equal(t, h.Store, to)
	})
}
