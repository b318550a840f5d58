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

	"blobtail/internal/dev/testkit"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
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
		storagetest.Put(t, s, fmt.Sprintf("web/%04d", i), []byte("x"))
	}
	return &counted{BlobStore: s, pause: 100 * time.Microsecond}
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

// Readers that get ready within the patience share one listing, from which each takes as many
// elements as it wants, when it wants, at its own pace.
func TestShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stored(t, 500)
		all, _ := keys(s.BlobStore.List(t.Context(), "web/", ""), 0)
		for round := range 50 {
			rng := rand.New(rand.NewPCG(uint64(round), 1))
			s.lists.Store(0)
			s.elements.Store(0)
			p, longest := together.New(12), 0
			var readers sync.WaitGroup
			for range 12 {
				late, most, slow := time.Duration(rng.IntN(40_000))*time.Microsecond, 1+rng.IntN(600), rng.IntN(3) == 0
				gives, busy := rng.IntN(4) == 0, time.Duration(rng.IntN(2)*rng.IntN(200))*time.Millisecond
				longest = max(longest, most)
				readers.Go(func() {
					r := p.Reader()
					defer r.Leave()
					time.Sleep(late)
					r.Ready()
					time.Sleep(busy)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if gives {
						time.AfterFunc(time.Duration(round)*time.Millisecond, cancel)
					}
					var got []string
					for b, err := range r.Store(s).List(ctx, "web/", "") {
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

// A reader never gets a listing that began before it was ready.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stored(t, 300)
		p := together.New(3)
		var first sync.WaitGroup
		for range 2 {
			first.Go(func() {
				r := p.Reader()
				defer r.Leave()
				r.Ready()
				if got, err := keys(r.Store(s).List(t.Context(), "web/", ""), 0); len(got) < 300 || err != nil {
					t.Error(len(got), err)
				}
				time.Sleep(time.Second)
			})
		}
		time.Sleep(60 * time.Millisecond) // the two go without the third
		storagetest.Put(t, s, "web/0000-new", []byte("x"))
		r := p.Reader()
		defer r.Leave()
		r.Ready()
		if got, err := keys(r.Store(s).List(t.Context(), "web/", ""), 0); len(got) != 301 || err != nil {
			t.Errorf("%d elements, %v", len(got), err)
		}
		first.Wait()
		if n := s.lists.Load(); n != 2 {
			t.Errorf("%d listings", n)
		}
	})
}

// A reader that lists once more sees the changes. Listings of the system's own names are not
// shared.
func TestAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stored(t, 3)
		p := together.New(2)
		a, b := p.Reader(), p.Reader()
		defer a.Leave()
		defer b.Leave()
		a.Ready()
		b.Ready()
		for n, r := range []*together.Reader{a, b, a, b} {
			if got, err := keys(r.Store(s).List(t.Context(), "web/", ""), 0); len(got) != 3+n/2 || err != nil {
				t.Errorf("ask %d: %d elements, %v", n, len(got), err)
			}
			if n == 1 {
				storagetest.Put(t, s, "web/new", []byte("x"))
			}
			_, _ = keys(r.Store(s).List(t.Context(), "_horizon/", ""), 0)
		}
		if n := s.lists.Load(); n != 2+4 {
			t.Errorf("%d listings", n)
		}
	})
}

// The last reader that is ready does not wait.
func TestReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stored(t, 3)
		s.pause = 0
		p := together.New(2)
		a, b := p.Reader(), p.Reader()
		a.Ready()
		b.Leave()
		begun := time.Now()
		if got, err := keys(a.Store(s).List(t.Context(), "web/", ""), 0); len(got) != 3 || err != nil {
			t.Error(got, err)
		}
		for range a.Store(s).Dirs(t.Context(), "") {
		}
		if time.Since(begun) > 0 {
			t.Errorf("it waited for %v", time.Since(begun))
		}
		a.Leave()
		a.Leave()
	})
}

// The listings that a party keeps for later readers are bounded.
func TestBounded(t *testing.T) {
	s := stored(t, 25_000)
	s.pause = 0
	p := together.New(2)
	a, b := p.Reader(), p.Reader()
	defer a.Leave()
	defer b.Leave()
	a.Ready()
	b.Ready()
	for _, r := range []*together.Reader{a, b} {
		if got, err := keys(r.Store(s).List(t.Context(), "web/", ""), 0); len(got) != 25_000 || err != nil {
			t.Error(len(got), err)
		}
	}
	if n := s.lists.Load(); n != 2 {
		t.Errorf("%d listings", n)
	}
}

// All readers that have begun get the error of a listing, in its place; a later one has another try.
func TestErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stored(t, 100)
		s.fail = errors.New("no")
		p := together.New(6)
		var readers sync.WaitGroup
		for n := range 6 {
			readers.Go(func() {
				r := p.Reader()
				defer r.Leave()
				r.Ready()
				if n == 5 {
					time.Sleep(time.Minute)
				}
				if got, err := keys(r.Store(s).List(t.Context(), "web/", ""), 0); len(got) != 20 || !errors.Is(err, s.fail) {
					t.Error(len(got), err)
				}
				var dirs []string
				for d, err := range r.Store(s).Dirs(t.Context(), "") {
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
		if n := s.lists.Load(); n != 2 {
			t.Errorf("%d listings", n)
		}
	})
}
