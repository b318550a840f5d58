package reading

import (
	"context"
	"sync"
	"time"
)

// listAge is how long a list of all services is used.
const listAge = 5 * time.Second

// A list is the services of a store, in order.
type list struct {
	names []string
	whole bool // all ingesters named theirs
}

// lists keeps the last list of all services. Those that come at once wait for one list.
type lists struct {
	mu     sync.Mutex
	at     time.Time // when the list was begun
	all    *list
	coming chan struct{} // closed when the list that is being made is there; nil: none is
}

// get returns the list that is kept, or a fresh one. A list that is not whole is not kept,
// nor is an error.
func (l *lists) get(ctx context.Context, fresh func(context.Context) (*list, error)) (*list, error) {
	for {
		l.mu.Lock()
		if all := l.all; all != nil && time.Since(l.at) < listAge {
			l.mu.Unlock()
			return all, nil
		}
		coming := l.coming
		if coming == nil {
			break
		}
		l.mu.Unlock()
		select {
		case <-coming:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	coming := make(chan struct{})
	l.coming = coming
	l.mu.Unlock()
	begun := time.Now()
	all, err := fresh(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && all.whole {
		l.all, l.at = all, begun
	}
	l.coming = nil
	close(coming)
	return all, err
}
