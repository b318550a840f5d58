// Package together lets readers of a store that begin at the same time share their listings.
//
// The readers form a [Party]. Each lists through the store of its [Reader]. A listing is made once
// for all readers for which it is young enough: each says by [Reader.Ready] from when on, and gets no
// listing that began before that. So it sees all that it would have seen alone. All else of the store
// passes unchanged.
//
// A reader that asks for the same listing once more wants to know of changes, and gets another one.
// Listings below names that begin with "_" are not shared: the horizons of services are there, and
// a read looks at them again when it ends.
//
// A reader that is ready waits for the others a little, so that one listing is young enough for all
// of them. A listing is kept until the last reader leaves, as long as it is not too much.
package together

import (
	"context"
	"iter"
	"strings"
	"sync"
	"time"

	"blobtail/storage"
)

const (
	// patience is how long a reader that is ready waits for the others before it lists.
	patience = 50 * time.Millisecond
	// mostKept is how many elements of listings a party keeps for readers that come later.
	mostKept = 20_000
)

// A Party is some readers that began together.
type Party struct {
	mu      sync.Mutex
	clock   int // counts readers that got ready, and listings that began
	waiting int // readers that are not ready
	left    int // readers that have not left
	kept    int // elements
	ready   chan struct{}
	objects map[call]*flight[storage.Blob]
	dirs    map[call]*flight[string]
	ends    []func() // of all listings
}

// call is a listing that was asked for.
type call struct{ prefix, after string }

// New returns a party of so many readers.
func New(readers int) *Party {
	return &Party{
		waiting: readers, left: readers, ready: make(chan struct{}), objects: make(map[call]*flight[storage.Blob]), dirs: make(map[call]*flight[string]),
	}
}

// Reader is one reader of a party. It may be used by several goroutines at once.
type Reader struct {
	p     *Party
	isOut sync.Once
	since int           // on the clock of the party; 0: it is not ready
	until chan struct{} // closed when it has waited for the others long enough
	had   map[any]bool  // listings that it has had, by their flights
}

// Reader returns one of the readers. Each must leave.
func (p *Party) Reader() *Reader {
	return &Reader{p: p, until: make(chan struct{}), had: make(map[any]bool)}
}

// Ready says that listings that begin from now on are young enough. It is called before the first
// listing.
func (r *Reader) Ready() {
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	r.ready()
}

// ready is Ready for a caller that holds the lock.
func (r *Reader) ready() {
	if r.since > 0 {
		return
	}
	p := r.p
	p.clock++
	r.since = p.clock
	time.AfterFunc(patience, func() { close(r.until) })
	if p.waiting--; p.waiting == 0 {
		close(p.ready)
	}
}

// Leave says that the reader lists nothing any more. The listings end when the last one leaves.
func (r *Reader) Leave() {
	r.isOut.Do(func() {
		p := r.p
		p.mu.Lock()
		r.ready() // nobody waits for it
		p.left--
		ends := p.ends
		if p.left > 0 {
			ends = nil
		}
		p.mu.Unlock()
		for _, end := range ends {
			end()
		}
	})
}

// wait waits until all readers are ready, or too long.
func (r *Reader) wait(ctx context.Context) error {
	select {
	case <-r.p.ready:
	case <-r.until:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// Store returns the store for the reader. All readers must pass the same store.
func (r *Reader) Store(s storage.BlobStore) storage.BlobStore {
	shared := &store{s, r}
	if opener, ok := s.(storage.Opener); ok {
		return &openStore{shared, opener}
	}
	return shared
}

type store struct {
	storage.BlobStore
	reader *Reader
}

// openStore is a store that can open objects.
type openStore struct {
	*store
	storage.Opener
}

// Unshared is the store itself, for a listing that has to begin now: one that is shared may have begun
// when the reader was ready.
func (s *store) Unshared() storage.BlobStore { return s.BlobStore }

// List implements [storage.BlobStore].
func (s *store) List(ctx context.Context, prefix, startAfter string) iter.Seq2[storage.Blob, error] {
	return shared(ctx, s.reader, s.reader.p.objects, call{prefix, startAfter}, func(ctx context.Context) iter.Seq2[storage.Blob, error] {
		return s.BlobStore.List(ctx, prefix, startAfter)
	})
}

// Dirs implements [storage.BlobStore].
func (s *store) Dirs(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return shared(ctx, s.reader, s.reader.p.dirs, call{prefix: prefix}, func(ctx context.Context) iter.Seq2[string, error] {
		return s.BlobStore.Dirs(ctx, prefix)
	})
}

// shared is a walk over a listing with other readers. list begins the listing, with a context that
// ends when the last reader leaves.
func shared[T any](ctx context.Context, r *Reader, flights map[call]*flight[T], c call, list func(context.Context) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if strings.HasPrefix(c.prefix, "_") {
			list(ctx)(yield)
			return
		}
		if err := r.wait(ctx); err != nil {
			yield(*new(T), err)
			return
		}
		f, at := board(ctx, r, flights, c, list)
		defer f.leave(at)
		f.walk(ctx, at, yield)
	}
}

// board returns a flight that is young enough, with the reader's number in it.
func board[T any](ctx context.Context, r *Reader, flights map[call]*flight[T], c call, list func(context.Context) iter.Seq2[T, error]) (f *flight[T], at int) {
	p := r.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if f = flights[c]; f != nil && f.began >= r.since && !r.had[f] {
		if at, ok := f.board(); ok {
			r.had[f] = true
			return f, at
		}
	}
	p.clock++
	f = begin(ctx, p, list)
	flights[c], p.ends, r.had[f] = f, append(p.ends, f.end), true
	at, _ = f.board()
	return f, at
}

// keep counts elements that are kept, or no longer, and reports whether they are too many.
func (p *Party) keep(n int) (tooMany bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept += n
	return p.kept > mostKept
}
