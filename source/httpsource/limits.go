package httpsource

import (
	"container/list"
	"context"
	"net/http"
	"sync"
	"time"
)

const (
	// minRate is how many bytes a second a body must bring on average.
	minRate = 1 << 10
	// maxAhead is how far in the future a record may lie.
	maxAhead = 24 * time.Hour
	maxKey   = 255
	// firstGrace is the longest silence of a body that has sent next to nothing.
	firstGrace = 5 * time.Second
	// entrance is the initial hold of a request: its first buffer, and as much again
	// for the connection's own. A body must arrive before it is counted, otherwise a
	// few lines of header could hold the whole budget.
	entrance = 2 * least
)

// A budget counts the bytes that the bodies of all requests hold.
//
// New requests are admitted in order of arrival, while no more than three quarters of
// it are taken. The rest is for admitted requests to grow. Growing never waits, so no
// two requests can wait for each other. A request that is alone is always admitted
// and may always grow: its own limits bound it.
type budget struct {
	size, entry int64

	mu      sync.Mutex
	used    int64
	waiting list.List // of *waiter
}

type waiter struct {
	n  int64
	in chan struct{} // closed, under mu, when the waiter has got its bytes
}

func newBudget(size int64) *budget { return &budget{size: size, entry: size / 4 * 3} }

// A hold is the share of one request in a budget. It belongs to one goroutine.
type hold struct {
	of *budget
	n  int64
}

// enter waits until n bytes are available, but no longer than patience.
func (b *budget) enter(ctx context.Context, n int64, patience time.Duration) (*hold, error) {
	b.mu.Lock()
	if b.waiting.Len() == 0 && b.admits(n) {
		b.used += n
		b.mu.Unlock()
		return &hold{of: b, n: n}, nil
	}
	w := &waiter{n: n, in: make(chan struct{})}
	place := b.waiting.PushBack(w)
	b.mu.Unlock()

	timer := time.NewTimer(patience)
	defer timer.Stop()
	var err error
	select {
	case <-w.in:
		return &hold{of: b, n: n}, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = errNoMemory()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-w.in: // admitted at the last moment
		return &hold{of: b, n: n}, nil
	default:
	}
	b.waiting.Remove(place)
	b.admitWaiting() // the next one may be smaller
	return nil, err
}

func (b *budget) admits(n int64) bool { return b.used == 0 || b.used+n <= b.entry }

// admitWaiting admits waiting requests that fit, in order. b.mu is held.
func (b *budget) admitWaiting() {
	for e := b.waiting.Front(); e != nil && b.admits(e.Value.(*waiter).n); e = b.waiting.Front() {
		w := b.waiting.Remove(e).(*waiter)
		b.used += w.n
		close(w.in)
	}
}

func (b *budget) inUse() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// atLeast makes the hold n bytes or more, at once or not at all.
func (h *hold) atLeast(n int64) error {
	if n <= h.n {
		return nil
	}
	b := h.of
	b.mu.Lock()
	defer b.mu.Unlock()
	if more := n - h.n; b.used+more <= b.size || b.used == h.n {
		b.used += more
		h.n = n
		return nil
	}
	return errNoMemory()
}

// release returns everything; the second call has no effect.
func (h *hold) release() {
	b := h.of
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= h.n
	h.n = 0
	b.admitWaiting()
}

func errNoMemory() error {
	return &refusal{status: http.StatusTooManyRequests, retry: true,
		reason: "the requests in flight hold all the memory meant for them; send it again later, or smaller bodies"}
}
