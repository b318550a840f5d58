package httpsource

import (
	"context"
	"net/http"
	"sync"
	"time"
)

const (
	// minRate is how many bytes a second a body must bring on average.
	minRate = 1 << 10
	maxKey  = 255
	// firstGrace is the longest silence of a body that has sent next to nothing.
	firstGrace = 5 * time.Second
	// entrance is the initial hold of a request: its first buffer, and as much again
	// for the connection's own. A body must arrive before it is counted, otherwise a
	// few lines of header could hold the whole budget.
	entrance = 2 * least
)

const (
	// smallBody is the longest body that may use the part of the budget for small ones.
	smallBody = 64 << 10
	// mostSmall is how much it may hold with its lines: tens of thousands.
	mostSmall = 8 << 20
)

// A budget counts the bytes that the bodies of all requests hold.
//
// A quarter of it is for small bodies, whatever large ones hold. A body is small until it grows
// beyond [smallBody], or its lines beyond mostSmall. From then on it is counted among the large ones.
// They are admitted in order of arrival, while they hold no more than five eighths. The rest is for
// admitted ones to grow. Growing never waits, and no large body waits, so no two requests can wait
// for each other. A request that is alone is always admitted and may always grow: its own limits
// bound it.
type budget struct {
	size       int64
	large, few queue // few is for small bodies

	mu    sync.Mutex
	used  int64
	small int64 // of used, by small bodies
}

// A queue has the requests of one kind that wait.
type queue struct {
	turn  chan struct{} // holds the one request that may be admitted next
	freed chan struct{} // that request should try again
}

func newQueue() queue { return queue{make(chan struct{}, 1), make(chan struct{}, 1)} }

func newBudget(size int64) *budget {
	return &budget{size: size, large: newQueue(), few: newQueue()}
}

// A hold is the share of one request in a budget. It belongs to one goroutine.
type hold struct {
	of    *budget
	n     int64
	small bool
}

// enter waits until entrance bytes are available, but no longer than patience. Each body is small at
// first.
func (b *budget) enter(ctx context.Context, patience time.Duration) (*hold, error) {
	h := &hold{of: b, small: true}
	return h, b.few.wait(ctx, patience, h.admitted)
}

// leave makes a small hold a large one. It waits for that, but no longer than patience, and not at all
// if small bodies hold half of their part: those that wait here must not fill it.
func (h *hold) leave(ctx context.Context, patience time.Duration) error {
	switch {
	case !h.small || h.left():
		return nil
	case h.of.crowded():
		return errNoMemory()
	}
	return h.of.large.wait(ctx, patience, h.left)
}

func (b *budget) crowded() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.small > b.size/8
}

// wait tries until ready is true, but no longer than patience, in order of arrival.
func (q *queue) wait(ctx context.Context, patience time.Duration, ready func() bool) error {
	select {
	case q.turn <- struct{}{}: // nobody waits
		done := ready()
		<-q.turn
		if done {
			return nil
		}
	default:
	}
	late := time.After(patience)
	turn, freed := q.turn, (chan struct{})(nil)
	for {
		select {
		case turn <- struct{}{}:
			defer func() { <-q.turn }()
			turn, freed = nil, q.freed
		case <-freed:
		case <-late:
			return errNoMemory()
		case <-ctx.Done():
			return ctx.Err()
		}
		if ready() {
			return nil
		}
	}
}

// admitted gives a request its first bytes, if they are available.
func (h *hold) admitted() bool {
	b := h.of
	b.mu.Lock()
	defer b.mu.Unlock()
	return h.take(entrance, b.size/8*5)
}

// left counts a small hold among the large ones, if there is room.
func (h *hold) left() bool {
	b := h.of
	b.mu.Lock()
	defer b.mu.Unlock()
	return h.change(h.n, b.size/8*5)
}

// take makes the hold n bytes, if that is allowed. Large bodies may hold most bytes. b.mu is held.
func (h *hold) take(n, most int64) bool {
	b, more := h.of, n-h.n
	if !h.small || n > mostSmall || b.small+more > b.size/4 {
		return h.change(n, most)
	}
	b.small += more
	b.used += more
	h.n = n
	return true
}

// change makes the hold a large one of n bytes, if that is allowed. b.mu is held.
func (h *hold) change(n, most int64) bool {
	b, large := h.of, h.of.used-h.of.small
	if !h.small {
		large -= h.n
	}
	if large+n > most && b.used > h.n {
		return false
	}
	if h.small {
		b.small -= h.n
		h.small = false
		b.few.wake()
	}
	b.used += n - h.n
	h.n = n
	return true
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
	if !h.take(n, b.size/4*3) {
		return errNoMemory()
	}
	return nil
}

// release returns everything; the second call has no effect.
func (h *hold) release() {
	b := h.of
	b.mu.Lock()
	defer b.mu.Unlock()
	if h.small {
		b.small -= h.n
	}
	b.used -= h.n
	h.n = 0
	b.large.wake()
	b.few.wake()
}

// wake lets the request that may be admitted next try again.
func (q *queue) wake() {
	select {
	case q.freed <- struct{}{}:
	default:
	}
}

func errNoMemory() error {
	return Refuse(http.StatusTooManyRequests,
		"the requests in flight hold all the memory meant for them; send it again later, or smaller bodies")
}
