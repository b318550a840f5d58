package together_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/testkit"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/together"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// counted counts the listings of a store. Each element takes some time; the context may end it.
type counted struct {
	storage.BlobStore
	pause       time.Duration
	lists, dirs atomic.Int64
	elements    atomic.Int64
	fail        error // after 20 elements
}

func (c *counted) List(ctx context.Context, prefix, after string) iter.Seq2[storage.Blob, error] {
	c.lists.Add(1)
	return func(yield func(storage.Blob, error) bool) {
		n := 0
		for b, err := range c.BlobStore.List(context.WithoutCancel(ctx), prefix, after) {
			select {
			case <-time.After(c.pause):
			case <-ctx.Done():
				yield(storage.Blob{}, ctx.Err())
				return
			}
			c.elements.Add(1)
			if n++; c.fail != nil && n > 20 {
				yield(storage.Blob{}, c.fail)
				return
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

func (c *counted) Dirs(ctx context.Context, prefix string) iter.Seq2[string, error] {
	c.dirs.Add(1)
	return c.BlobStore.Dirs(ctx, prefix)
}

// stored is a store with n blobs of a service.
func stored(t *testing.T, n int) *counted {
	s := mem.New(mem.Options{})
	for i := range n {
		if err := s.Create(t.Context(), fmt.Sprintf("web/%04d", i), []byte("x"), storage.Attrs{}); err != nil {
			t.Fatal(err)
		}
	}
	return &counted{BlobStore: s, pause: 100 * time.Microsecond}
}

// expected says that so many readers will list below web.
func expected(n int) func(string) int {
	return func(top string) int { return map[string]int{"web": n, "api": 7}[top] }
}

func keys(list iter.Seq2[storage.Blob, error], most int) (out []string, err error) {
	for b, err := range list {
		if err != nil {
			return out, err
		}
		if out = append(out, b.Key); len(out) == most {
			break
		}
	}
	return out, nil
}

// Readers that come within the patience share one listing, from which each takes as many
// elements as it wants, at its own pace, and leaves when it wants.
func TestShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stored(t, 500)
		all, _ := keys(s.BlobStore.List(t.Context(), "web/", ""), 0)
		for round := range 50 {
			rng := rand.New(rand.NewPCG(uint64(round), 1))
			s.lists.Store(0)
			s.elements.Store(0)
			p, longest := together.New(expected(12)), 0
			var readers sync.WaitGroup
			for range 12 {
				late, most, slow := time.Duration(rng.IntN(4000))*time.Microsecond, 1+rng.IntN(600), rng.IntN(3) == 0
				gives := rng.IntN(4) == 0
				if longest = max(longest, most); gives {
					late = 0
				}
				readers.Go(func() {
					time.Sleep(late)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if gives {
						time.AfterFunc(time.Duration(round)*time.Millisecond, cancel)
					}
					var got []string
					for b, err := range p.Store(s).List(ctx, "web/", "") {
						if err != nil {
							if !errors.Is(err, context.Canceled) || !gives {
								t.Error(err)
							}
							return
						}
						if got = append(got, b.Key); len(got) == most {
							break
						}
						if slow {
							time.Sleep(time.Millisecond)
						}
					}
					if !slices.Equal(got, all[:min(len(all), most)]) {
						t.Errorf("a reader of %d got %d elements", most, len(got))
					}
				})
			}
			readers.Wait()
			if n := s.lists.Load(); n != 1 {
				t.Errorf("round %d: %d listings", round, n)
			}
			if n := s.elements.Load(); n > int64(longest)+64 {
				t.Errorf("round %d: %d elements were taken for a reader of %d", round, n, longest)
			}
		}
	})
}

// A reader never gets a listing that began before it asked.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stored(t, 300)
		p := together.New(expected(3))
		var first sync.WaitGroup
		for range 2 {
			first.Go(func() {
				if got, err := keys(p.Store(s).List(t.Context(), "web/", ""), 0); len(got) < 300 || err != nil {
					t.Error(len(got), err)
				}
			})
		}
		time.Sleep(6 * time.Millisecond) // the two go without the third
		if err := s.Create(t.Context(), "web/0000-new", []byte("x"), storage.Attrs{}); err != nil {
			t.Fatal(err)
		}
		if got, err := keys(p.Store(s).List(t.Context(), "web/", ""), 0); len(got) != 301 || err != nil {
			t.Errorf("%d elements, %v", len(got), err)
		}
		first.Wait()
		if n := s.lists.Load(); n != 2 {
			t.Errorf("%d listings", n)
		}
	})
}

// A reader does not wait if it is alone, or if no other reader lists there.
func TestAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stored(t, 3)
		s.pause = 0
		p := together.New(expected(1))
		begun := time.Now()
		if got, err := keys(p.Store(s).List(t.Context(), "web/", ""), 0); len(got) != 3 || err != nil {
			t.Error(got, err)
		}
		for range p.Store(s).Dirs(t.Context(), "") {
		}
		if time.Since(begun) > 0 {
			t.Errorf("it waited for %v", time.Since(begun))
		}
	})
}

// A reader that lists at another pace than its company waits a few milliseconds in all.
func TestOwnPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stored(t, 1)
		s.pause = 0
		p := together.New(expected(2))
		begun := time.Now()
		for i := range 20 {
			if _, err := keys(p.Store(s).List(t.Context(), fmt.Sprintf("web/%d", i), ""), 0); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(begun); took > 30*time.Millisecond {
			t.Errorf("it waited for %v", took)
		}
	})
}

// All readers get the error of a listing, in its place.
func TestErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stored(t, 100)
		s.fail = errors.New("no")
		p := together.New(expected(5))
		var readers sync.WaitGroup
		for range 5 {
			readers.Go(func() {
				if got, err := keys(p.Store(s).List(t.Context(), "web/", ""), 0); len(got) != 20 || !errors.Is(err, s.fail) {
					t.Error(len(got), err)
				}
				var dirs []string
				for d, err := range p.Store(s).Dirs(t.Context(), "") {
					if dirs = append(dirs, d); err != nil {
						t.Error(err)
					}
				}
				if !slices.Equal(dirs, []string{"web"}) {
					t.Error(dirs)
				}
			})
		}
		readers.Wait()
		if n := s.lists.Load(); n != 1 {
			t.Errorf("%d listings", n)
		}
	})
}
