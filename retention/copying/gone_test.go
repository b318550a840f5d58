package copying_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

// What an erasure has replaced and deleted goes in the copy at the next run, and what is left comes
// first. What is lost on the same day stays, and is named, however many erasures there are.
func TestErased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := settled(t)
		defer h.Stop()
		to := mem.New(mem.Options{})
		day := time.Now().UTC().Add(-50 * time.Hour).Truncate(24 * time.Hour)
		for i := range 3 {
			at := day.Add(time.Duration(i) * time.Minute)
			send(t, h, at, "web", "orders")
			send(t, h, at.Add(time.Second), "web")
			h.Flush()
		}
		closes(t, h.Store, h.Now())
		copied(t, h.Store, to, options(h))
		old := storagetest.KeysOf(t, h.Store, "web/")
		text := fmt.Sprintf("line of web at %s", day)
		erases(t, h, text, -1)
		left := slices.DeleteFunc(storagetest.KeysOf(t, h.Store, "web/"), func(key string) bool { return slices.Contains(old, key) })
		full := storagetest.Faulty(to, func(op storagetest.Op, key string) storagetest.Fault {
			if op == storagetest.Create && key == left[0] {
				return storagetest.Fault{Before: storagetest.ErrFault}
			}
			return storagetest.Fault{}
		})
		r, err := copying.Run(t.Context(), h.Store, full, options(h)) // what is left cannot come: all of it stays
		if err != nil || len(r.Problems) != 1 || r.Deleted != 0 || !r.Whole.Through.IsZero() {
			t.Errorf("%+v, %v", r, err)
		}
		directory := &swept{BlobStore: to}
		if r := copied(t, h.Store, directory, options(h)); r.Deleted != 1 {
			t.Errorf("%+v", r)
		}
		if want := "web/" + day.Format("2006/01/02/"); !slices.Contains(directory.dirs, want) {
			t.Errorf("swept are %q, want %s", directory.dirs, want)
		}
		equal(t, h.Store, to)
		without(t, to, map[string]bool{text: true})

		whole := content(t, to)
		lost := old[1] // of the same hour
		for _, key := range []string{lost, left[0]} {
			if err := h.Store.Delete(t.Context(), storage.Blob{Key: key}); err != nil {
				t.Fatal(err)
			}
		}
		r, err = copying.Run(t.Context(), h.Store, to, options(h))
		said := fmt.Sprint(r.Problems)
		if err != nil || r.Deleted != 0 || len(r.Problems) != 2 || !strings.Contains(said, lost) || !strings.Contains(said, left[0]) {
			t.Errorf("%+v, %v", r, err)
		}
		if !maps.Equal(content(t, to), whole) {
			t.Error("the copy has changed")
		}
	})
}

// A run with a first day takes earlier days too that were compacted or erased since the last run, also
// if they are open. Days before the copy begins stay out.
func TestEarlierDays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := settled(t)
		defer h.Stop()
		day := time.Now().UTC().Add(-74 * time.Hour).Truncate(24 * time.Hour)
		for i := range 3 {
			for ago := range 2 {
				at := day.Add(time.Duration(ago)*24*time.Hour + time.Duration(i)*time.Minute)
				send(t, h, at, "web", "orders")
			}
			h.Flush()
		}
		o := options(h)
		o.Since = horizon.DayOf(h.Now()) - 1
		time.Sleep(time.Minute) // until the floor is behind the late records
		all, since := mem.New(mem.Options{}), mem.New(mem.Options{})
		copied(t, h.Store, all, options(h))
		first := o
		first.Since = horizon.DayOf(day) + 1
		copied(t, h.Store, since, first)
		erased := map[string]bool{}
		for step, change := range []func(){
			func() {
				text := fmt.Sprintf("line of web at %s", day.Add(24*time.Hour)) // of an open day
				erased[text] = true
				erases(t, h, text, -1)
			},
			func() { upkeep(t, h.Store, h.Now()) },
			func() {
				text := fmt.Sprintf("line of web at %s", day.Add(24*time.Hour+time.Minute))
				erased[text] = true
				erases(t, h, text, -1)
			},
		} {
			change()
			copied(t, h.Store, all, o)
			sound(t, all)
			without(t, all, erased)
			want := content(t, h.Store)
			for key := range want {
				if _, ok := content(t, all)[key]; !ok {
					t.Errorf("step %d: the copy lacks %s", step, key)
				}
			}
			copied(t, h.Store, since, o)
			without(t, since, erased)
			if keys := storagetest.KeysOf(t, since, "web/"+day.Format("2006/01/02/")); len(keys) > 0 {
				t.Errorf("step %d: %v are from before the copy begins", step, keys)
			}
		}
	})
}
