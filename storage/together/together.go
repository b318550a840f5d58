// Package together lets readers of a store that begin at the same time share their listings.
//
// The readers form a [Party], which knows how many of them will list below each directory.
// Each reads through its [Party.Store]. If several of them ask for the same listing, the party
// waits until all have asked, for a few milliseconds at most, and then asks the store once.
//
// A reader gets a listing only if that began after it asked. So it sees all that it would have
// seen alone. All else of the store passes unchanged.
package together

import (
	"context"
	"iter"
	"strings"
	"sync"
	"time"

	"blobtail/storage"
)

// patience is how long a listing waits for the readers that have not asked for it yet. After
// mostVain waits in vain, the readers of a party go on at different paces, and further listings
// wait for littlePatience only.
const (
	patience       = 5 * time.Millisecond
	littlePatience = time.Millisecond
	mostVain       = 2
)

// A Party is some readers that began together. Any number of goroutines may use it.
type Party struct {
	expected func(top string) int

	mu      sync.Mutex
	vain    int // listings that began without some of their readers
	objects map[call]*flight[storage.Blob]
	dirs    map[call]*flight[string]
}

// call is a listing that was asked for.
type call struct{ prefix, after string }

// New returns a party. expected says how many of its readers will list below a name at the top
// of the store, or the top itself if the name is "". It is called by one goroutine at a time.
func New(expected func(top string) int) *Party {
	return &Party{expected: expected, objects: make(map[call]*flight[storage.Blob]), dirs: make(map[call]*flight[string])}
}

// Store returns the store for one reader of the party. All readers must pass the same store.
func (p *Party) Store(s storage.BlobStore) storage.BlobStore {
	shared := &store{s, p}
	if opener, ok := s.(storage.Opener); ok {
		return &openStore{shared, opener}
	}
	return shared
}

// of is how many readers will list below a prefix.
func (p *Party) of(prefix string) int {
	top, _, _ := strings.Cut(prefix, "/")
	return p.expected(top)
}

type store struct {
	storage.BlobStore
	party *Party
}

// openStore is a store that can open objects.
type openStore struct {
	*store
	storage.Opener
}

// List implements [storage.BlobStore].
func (s *store) List(ctx context.Context, prefix, startAfter string) iter.Seq2[storage.Blob, error] {
	return shared(ctx, s.party, s.party.objects, call{prefix, startAfter}, func(ctx context.Context) iter.Seq2[storage.Blob, error] {
		return s.BlobStore.List(ctx, prefix, startAfter)
	})
}

// Dirs implements [storage.BlobStore].
func (s *store) Dirs(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return shared(ctx, s.party, s.party.dirs, call{prefix: prefix}, func(ctx context.Context) iter.Seq2[string, error] {
		return s.BlobStore.Dirs(ctx, prefix)
	})
}

// shared is a walk over a listing, alone or with other readers. list begins the listing.
func shared[T any](ctx context.Context, p *Party, flights map[call]*flight[T], c call, list func(context.Context) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		f := join(p, flights, c)
		if f == nil {
			list(ctx)(yield)
			return
		}
		select {
		case <-f.began:
		case <-ctx.Done():
			abandon(ctx, p, f, list)
			yield(*new(T), ctx.Err())
			return
		}
		if f.readers == 1 {
			list(ctx)(yield)
			return
		}
		reader := f.board(ctx, list)
		defer f.leave(reader)
		f.walk(ctx, reader, yield)
	}
}

// abandon takes out a reader that gave up before the flight began.
func abandon[T any](ctx context.Context, p *Party, f *flight[T], list func(context.Context) iter.Seq2[T, error]) {
	p.mu.Lock()
	late := f.begun
	if !late {
		f.readers--
	}
	p.mu.Unlock()
	if late && f.readers > 1 { // it counts as one of the readers
		f.leave(f.board(ctx, list))
	}
}

// join returns the flight of a listing that has not begun, with one more reader; nil if the
// reader goes alone, because it is the only one, or because the listing has begun already.
func join[T any](p *Party, flights map[call]*flight[T], c call) *flight[T] {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := flights[c]
	if f == nil {
		want := p.of(c.prefix)
		if want < 2 {
			return nil
		}
		f = &flight[T]{want: want, began: make(chan struct{})}
		wait := patience
		if p.vain >= mostVain {
			wait = littlePatience
		}
		f.timer = time.AfterFunc(wait, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			if !f.begun {
				p.vain++
				f.begin()
			}
		})
		flights[c] = f
	}
	if f.begun {
		return nil
	}
	if f.readers++; f.readers == f.want {
		f.begin()
	}
	return f
}
