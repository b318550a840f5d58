package door

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"
)

// A gate lets so many requests in at once, and some more wait. It goes by the clients that sent them,
// so that no client locks others out:
//
//   - A client gets one more place only while it has fewer than are free. So one alone has half of
//     them at most, two a third each, and a client that comes later finds one. The same rule holds
//     for those that wait.
//   - A free place goes to each client that waits in turn. The requests of one client keep their
//     order.
//   - A request whose client takes nothing gives its place away until it does, see [stay.park].
type gate struct {
	places, most int           // that are in, and that wait
	patience     time.Duration // of one that waits

	mu      sync.Mutex
	taken   int
	waiting int
	clients map[string]*client // that have a place, or want one
	turns   []*client          // that want one; the first one is next
	parked  []*stay            // the oldest first
}

// client is the requests of one token, or of one address, at a gate.
type client struct {
	name                   string
	taken, waiting, parked int
	line                   []*stay // that want a place: those that wait, and parked ones that may go on
}

// stay is one request at a gate. One goroutine at a time calls its methods.
type stay struct {
	gate   *gate
	client *client
	end    context.CancelCauseFunc // ends the request; nil: it is never parked
	cut    func()                  // lets a write that is under way fail

	in      chan struct{} // gets a value with a place that it has waited for
	has     bool          // a place
	waiting bool          // it has not begun
	parked  bool          // its place went to others
	writing bool          // its client has to take bytes
	stalled *time.Timer   // parks it
}

const (
	// takesNothing is how long a client may take nothing before its request gives its place away.
	takesNothing = time.Second
	// mostParked is how many requests wait for their clients without a place, at most. Each
	// holds the blocks that it has decoded.
	mostParked = 16
)

var (
	// errCrowded says that there are too many requests at once.
	errCrowded = errors.New("too many at once")
	// errStalled says that too many requests wait for clients that take nothing.
	errStalled = errors.New("the client takes nothing, and too many others wait like that")
)

func newGate(places, most int, patience time.Duration) *gate {
	return &gate{places: places, most: most, patience: patience, clients: make(map[string]*client)}
}

// enter waits for a place, which leave gives back. The error is errCrowded, or that of ctx.
func (g *gate) enter(ctx context.Context, name string) (*stay, error) {
	s, in, err := g.come(name)
	if in || err != nil {
		return s, err
	}
	timer := time.NewTimer(g.patience)
	defer timer.Stop()
	select {
	case <-s.in:
		return s, nil
	case <-timer.C:
		err = errCrowded
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	s.leave()
	return nil, err
}

// come returns a request that is in, or waits for a place.
func (g *gate) come(name string) (s *stay, in bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.clients[name]
	if c == nil {
		c = &client{name: name}
		g.clients[name] = c
	}
	s = &stay{gate: g, client: c, in: make(chan struct{}, 1)}
	switch {
	case g.fits(c):
		g.admit(s)
		return s, true, nil
	case c.waiting < g.most-g.waiting:
		s.waiting = true
		g.waiting++
		c.waiting++
		g.join(s, len(c.line))
	default:
		g.forget(c)
		return nil, false, errCrowded
	}
	return s, false, nil
}

// Places are answers that a server has under way at once, shared by its clients like those of
// [Reads]. None waits for one.
type Places struct{ gate *gate }

// NewPlaces returns so many places.
func NewPlaces(n int) Places { return Places{newGate(n, 0, 0)} }

// Enter takes a place for a request, until leave is called. client is its token, or "" if it shows
// none: then its address counts. If there is no place for it, leave is nil, and n is how many its
// client has.
func (p Places) Enter(r *http.Request, client string) (leave func(), n int) {
	name := cmp.Or(client, origin(r.RemoteAddr))
	if s, _, err := p.gate.come(name); err == nil {
		return s.leave, 0
	}
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	if c := p.gate.clients[name]; c != nil {
		n = c.taken
	}
	return nil, n
}

// counts returns how many are in, and how many wait.
func (g *gate) counts() (in, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.taken, g.waiting
}

// The methods below are for callers that hold the lock.

// fits reports whether a client may have one more place.
func (g *gate) fits(c *client) bool { return c.taken < g.places-g.taken }

// admit gives a request a place.
func (g *gate) admit(s *stay) {
	g.settle(s)
	s.has = true
	g.taken++
	s.client.taken++
}

// settle notes that a request neither waits to begin nor is parked.
func (g *gate) settle(s *stay) {
	if s.waiting {
		s.waiting = false
		g.waiting--
		s.client.waiting--
	}
	if s.parked {
		s.parked = false
		s.client.parked--
		g.parked = slices.DeleteFunc(g.parked, func(one *stay) bool { return one == s })
	}
}

// join puts a request into the line of its client.
func (g *gate) join(s *stay, at int) {
	c := s.client
	if len(c.line) == 0 {
		g.turns = append(g.turns, c)
	}
	c.line = slices.Insert(c.line, at, s)
}

// part takes a request out of the line of its client, if it is there.
func (g *gate) part(s *stay) {
	c := s.client
	at := slices.Index(c.line, s)
	if at < 0 {
		return
	}
	if c.line = slices.Delete(c.line, at, at+1); len(c.line) == 0 {
		g.turns = slices.DeleteFunc(g.turns, func(one *client) bool { return one == c })
	}
}

// free takes the place of a request, and lets the next ones in.
func (g *gate) free(s *stay) {
	s.has = false
	g.taken--
	s.client.taken--
	for {
		at := slices.IndexFunc(g.turns, g.fits)
		if at < 0 {
			return
		}
		next := g.turns[at]
		first := next.line[0]
		g.part(first)
		g.admit(first)
		first.in <- struct{}{}
		if len(next.line) > 0 { // it had its turn
			g.turns = append(slices.Delete(g.turns, at, at+1), next)
		}
	}
}

// forget drops a client that has nothing here any more.
func (g *gate) forget(c *client) {
	if c.taken+c.waiting+c.parked+len(c.line) == 0 {
		delete(g.clients, c.name)
	}
}

// leave ends the stay, with or without a place.
func (s *stay) leave() {
	g := s.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.stalled != nil {
		s.stalled.Stop()
	}
	s.writing = false
	g.part(s)
	g.settle(s)
	if s.has {
		g.free(s)
	}
	g.forget(s.client)
}

// wait says that the client has to take bytes now.
func (s *stay) wait() {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	s.writing = true
	if s.stalled == nil {
		s.stalled = time.AfterFunc(takesNothing, s.park)
	} else {
		s.stalled.Reset(takesNothing)
	}
}

// park gives the place of a request away whose client takes nothing. The request goes on when the
// client does, see goOn. If too many are parked, the oldest one is ended of the client that has the
// most of them.
func (s *stay) park() {
	g := s.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if !s.writing || !s.has {
		return
	}
	g.free(s)
	s.parked = true
	s.client.parked++
	g.parked = append(g.parked, s)
	if len(g.parked) <= min(g.places, mostParked) {
		return
	}
	oldest := g.parked[0]
	for _, one := range g.parked {
		if one.client.parked > oldest.client.parked {
			oldest = one
		}
	}
	g.settle(oldest)
	oldest.end(errStalled)
	oldest.cut()
}

// goOn says that the client has taken the bytes. A request that was parked waits for a place, ahead
// of those of its client that have not begun. The error is that of ctx.
func (s *stay) goOn(ctx context.Context) error {
	if s.comeBack(ctx) {
		return nil
	}
	select {
	case <-s.in:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx) // the request leaves
	}
}

// comeBack reports whether a request has a place again. Otherwise it has begun to wait for one,
// unless ctx is over.
func (s *stay) comeBack(ctx context.Context) bool {
	g := s.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	s.writing = false
	s.stalled.Stop()
	switch {
	case s.has, ctx.Err() != nil:
	case g.fits(s.client):
		g.admit(s)
	default:
		at := slices.IndexFunc(s.client.line, func(one *stay) bool { return one.waiting })
		if at < 0 {
			at = len(s.client.line)
		}
		g.join(s, at)
	}
	return s.has
}
