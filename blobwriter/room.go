package blobwriter

import (
	"context"
	"sync"
	"time"
)

const (
	maxBodies = 64 << 20 // bytes of encoded bodies in memory at once, but for small ones
	smallBody = 64 << 10 // a body up to this size always has room: the caller bounds their number
	// soon is the time from which on a service without a body in the room may take more of it, so that
	// bodies of others that come and go do not pass a large one for ever.
	soon = 5 * time.Second
)

// A room bounds the memory of bodies, and shares it out by service. A service gets at most half of
// the room that others leave. So uploads that hang take less and less, by service and by body, and
// some room is left for a service with uploads that work.
type room struct {
	mu    sync.Mutex
	of    map[string]int64 // bytes of each service
	all   int64
	freed chan struct{} // closed when a body leaves
}

func newRoom() *room { return &room{of: map[string]int64{}, freed: make(chan struct{})} }

// weight is the size of a body in the room. The largest body must still get in.
func weight(size int) int64 {
	if size <= smallBody {
		return 0
	}
	return min(int64(size), maxBodies/2)
}

// try takes room for a body, if the share of its service has it.
func (r *room) try(service string, size int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.take(service, weight(size), false)
}

// take is try, with mu held.
func (r *room) take(service string, weight int64, late bool) bool {
	own := r.of[service]
	free := maxBodies - r.all
	share := (free + own) / 2
	if late && own == 0 {
		share = free / 4 * 3
	}
	switch {
	case weight == 0:
		return true
	case own+weight > share:
		return false
	}
	r.of[service] += weight
	r.all += weight
	return true
}

// wait takes room for a body when there is some. The error is that of ctx.
func (r *room) wait(ctx context.Context, service string, size int) error {
	late := time.NewTimer(soon)
	defer late.Stop()
	for isLate := false; ; {
		r.mu.Lock()
		took, freed := r.take(service, weight(size), isLate), r.freed
		r.mu.Unlock()
		if took {
			return nil
		}
		select {
		case <-freed:
		case <-late.C:
			isLate = true
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// giveBack gives back the room of a body.
func (r *room) giveBack(service string, size int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if weight(size) == 0 {
		return
	}
	r.all -= weight(size)
	if r.of[service] -= weight(size); r.of[service] == 0 {
		delete(r.of, service)
	}
	close(r.freed)
	r.freed = make(chan struct{})
}
