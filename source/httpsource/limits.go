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

// A budget counts the bytes that the bodies of all requests hold.
//
// New requests are admitted in order of arrival, while no more than three quarters of
// it are taken. The rest is for admitted requests to grow. Growing never waits, so no
// two requests can wait for each other. A request that is alone is always admitted
// and may always grow: its own limits bound it.
type budget struct {
	size, entry int64
	turn        chan struct{} // holds the one request that may be admitted next
	freed       chan struct{} // that request should try again

	mu   sync.Mutex
	used int64
}

func newBudget(size int64) *budget {
	return &budget{size: size, entry: size / 4 * 3, turn: make(chan struct{}, 1), freed: make(chan struct{}, 1)}
}

// A hold is the share of one request in a budget. It belongs to one goroutine.
type hold struct {
	of *budget
	n  int64
}

// enter waits until entrance bytes are available, but no longer than patience.
func (b *budget) enter(ctx context.Context, patience time.Duration) (*hold, error) {
	h := &hold{of: b}
	select {
	case b.turn <- struct{}{}: // nobody waits
		admitted := h.admitted()
		<-b.turn
		if admitted {
			return h, nil
		}
	default:
	}
	late := time.After(patience)
	turn, freed := b.turn, (chan struct{})(nil)
	for {
		select {
		case turn <- struct{}{}:
			defer func() { <-b.turn }()
			turn, freed = nil, b.freed
		case <-freed:
		case <-late:
			return nil, errNoMemory()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if h.admitted() {
			return h, nil
		}
	}
}

// admitted gives a request its first bytes, if they are available.
func (h *hold) admitted() bool {
	b := h.of
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used > 0 && b.used+entrance > b.entry {
		return false
	}
	b.used += entrance
	h.n = entrance
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
	select {
	case b.freed <- struct{}{}:
	default:
	}
}

func errNoMemory() error {
	return Refuse(http.StatusTooManyRequests,
		"the requests in flight hold all the memory meant for them; send it again later, or smaller bodies")
}
