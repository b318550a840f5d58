package door

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// errEnding is the cause of a tail's end when the server ends.
var errEnding = errors.New("the server is ending")

// connections are the tails under way.
type connections struct {
	mu     sync.Mutex
	all    map[*connection]struct{}
	ending bool
}

// connection is one tail: its WebSocket, or the function that ends it.
type connection struct {
	conn net.Conn // nil: a plain answer
	end  context.CancelCauseFunc
}

// add keeps the connection of a WebSocket.
func (c *connections) add(conn net.Conn) *connection {
	return c.keep(&connection{conn: conn})
}

func (c *connections) keep(one *connection) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[one] = struct{}{}
	if c.ending {
		one.drop()
	}
	return one
}

func (c *connections) remove(one *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, one)
}

// drop ends a tail at once.
func (one *connection) drop() {
	if one.conn != nil {
		_ = one.conn.Close()
		return
	}
	one.end(errEnding)
}

// DropTails ends all tails, and each later one. The connections of WebSockets are closed
// first, without a close frame: by that a client knows that it should come again.
func (s *Reads) DropTails() {
	c := &s.open
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending = true
	for _, sockets := range []bool{true, false} {
		for one := range c.all {
			if (one.conn != nil) == sockets {
				one.drop()
			}
		}
	}
}

// tail answers a request that goes on until its client leaves, its token ends, or the server
// does.
func (s *Reads) tail(a *answer, r *http.Request, v *visit, next http.Handler) {
	place, err := s.tails.enter(r.Context(), v.client(r))
	if err != nil {
		a.refuse(r, s.crowded(err, "too many tails at once"))
		return
	}
	defer place.leave()
	ctx, end := context.WithCancelCause(r.Context())
	defer end(nil)
	one := s.open.keep(&connection{end: end})
	defer s.open.remove(one)
	if v.token != nil {
		stop := s.recheck(ctx, r, a, end)
		defer stop()
	}
	s.budgeted(a, r.WithContext(ctx), next)
}

// recheck ends a tail once its token is not valid any more.
func (s *Reads) recheck(ctx context.Context, r *http.Request, a *answer, end context.CancelCauseFunc) (stop func()) {
	var watching sync.WaitGroup
	over, stopped := context.WithCancel(ctx)
	watching.Go(func() {
		tick := time.NewTicker(s.o.Recheck)
		defer tick.Stop()
		for {
			select {
			case <-over.Done():
				return
			case <-tick.C:
			}
			if _, _, err := s.guard.holder(r); err != nil {
				end(err)
				return
			}
		}
	})
	return func() { stopped(); watching.Wait() }
}
