package together

import (
	"context"
	"iter"
	"sync"

	"blobtail/storage/fanout"
)

// At first so few elements are taken from a listing at once, and later so many. Readers may
// stop early, so elements ahead of them may be in vain.
const (
	firstStride = 8
	lastStride  = 64
)

// flight is a listing for several readers. Elements are taken when the first of the readers
// needs them. They are kept for readers that board later, or if those kept are too many until the
// last one that has boarded has passed them.
type flight[T any] struct {
	party  *Party
	began  int // on the clock of the party
	cancel context.CancelFunc
	next   func() (T, error, bool)
	stop   func()

	mu     sync.Mutex
	closed bool  // nobody boards any more
	over   bool  // the party is
	places []int // of the readers that have boarded: the number of the next element
	buffer []T
	first  int // the number of the first element in buffer
	taken  int
	err    error
	fault  *fanout.Panic
	ended  bool
	more   chan struct{} // closed when the elements that are being taken have come; nil: none are
}

// begin begins a listing. The caller holds the lock of the party.
func begin[T any](ctx context.Context, p *Party, list func(context.Context) iter.Seq2[T, error]) *flight[T] {
	f := &flight[T]{party: p, began: p.clock}
	ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
	f.next, f.stop = iter.Pull2(list(ctx))
	return f
}

// board returns the number of a reader; false: it is too late.
func (f *flight[T]) board() (reader int, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.err != nil || f.fault != nil {
		return 0, false
	}
	f.places = append(f.places, 0)
	return len(f.places) - 1, true
}

// walk yields the elements to a reader that has boarded.
func (f *flight[T]) walk(ctx context.Context, reader int, yield func(T, error) bool) {
	for i := 0; ; i++ {
		v, err, ok := f.get(ctx, reader, i)
		if !ok || !yield(v, err) || err != nil {
			return
		}
	}
}

// get returns element i to a reader, which has passed all before; false if there is none.
func (f *flight[T]) get(ctx context.Context, reader, i int) (v T, err error, ok bool) {
	for {
		f.mu.Lock()
		f.places[reader] = i
		if n := i - f.first; n < len(f.buffer) {
			defer f.mu.Unlock()
			return f.buffer[n], nil, true
		}
		if f.ended {
			defer f.mu.Unlock()
			f.fault.Again()
			return v, f.err, f.err != nil
		}
		if f.more == nil {
			f.more = make(chan struct{})
			go f.take(f.more, max(firstStride, min(lastStride, f.taken)))
		}
		more := f.more
		f.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			return v, ctx.Err(), true
		}
	}
}

// take takes elements from the listing, while no other call does.
func (f *flight[T]) take(more chan struct{}, most int) {
	var got []T
	var err error
	ok := true
	fault := fanout.Keep(func() {
		for len(got) < most && ok && err == nil {
			var v T
			if v, err, ok = f.next(); ok && err == nil {
				got = append(got, v)
			}
		}
	})
	tooMany := f.party.keep(len(got))
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed = f.closed || tooMany; f.closed {
		f.trim()
	}
	f.buffer = append(f.buffer, got...)
	f.taken += len(got)
	f.ended, f.err, f.fault, f.more = !ok || err != nil || fault != nil, err, fault, nil
	close(more)
	f.settle()
}

// trim drops the elements that all readers have passed.
func (f *flight[T]) trim() {
	passed := f.first + len(f.buffer)
	for _, place := range f.places {
		passed = min(passed, place)
	}
	f.buffer = append([]T(nil), f.buffer[passed-f.first:]...)
	f.first = passed
}

// leave notes that a reader needs no more.
func (f *flight[T]) leave(reader int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.places[reader] = int(^uint(0) >> 1)
}

// end ends the listing.
func (f *flight[T]) end() {
	f.cancel()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over, f.closed = true, true
	f.settle()
}

// settle ends the listing if the party is over.
func (f *flight[T]) settle() {
	if f.over && f.more == nil {
		f.stop()
	}
}
