package door

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// Sockets bounds the connections of the servers of a process, so that clients cannot take all of its
// descriptors. Its methods may be called at once.
//
// An address has one more connection only while it has fewer than are free: half of them at most,
// and a third beside another one like it. Beyond that its own connection makes room that has been
// silent for longest among some at which nothing is worked for: without a request, or within one
// that the client has not sent whole. If it has none of these, the new one is closed. If none are
// free at all, another address makes room by the same rule. Looking at all of them would let a
// client that opens connections without end slow down all others.
type Sockets struct {
	most int
	log  zerolog.Logger

	mu    sync.Mutex
	all   map[*socket]struct{}
	share map[site]int
}

// site is an address at one listener.
type site struct{ listener, origin string }

const (
	// mostSockets is how many connections a process has at most, however many descriptors it may
	// have.
	mostSockets = 8192
	// halfSent is how long a client must be silent within a request, to be one that does not send
	// the rest.
	halfSent = time.Second
	// compared is how many silent connections are compared, to find one that makes room.
	compared = 16
)

// NewSockets returns Sockets for so many connections. 0: as many as half of the descriptors of the
// process, the others are for the store and the log, and at most 8,192.
func NewSockets(most int, log zerolog.Logger) *Sockets {
	if most == 0 {
		most = int(min(mostSockets, descriptors()/2))
	}
	return &Sockets{
		most: most, log: log.Sample(&zerolog.BurstSampler{Burst: 1, Period: time.Second}),
		all: make(map[*socket]struct{}), share: make(map[site]int),
	}
}

// socket is one connection.
type socket struct {
	net.Conn
	of   *Sockets
	site site

	heard     atomic.Int64 // when its client last sent something, in ns since 1970
	requests  atomic.Int32 // under way
	receiving atomic.Int32 // of these, those that wait for a part of their body
}

// Watch bounds the connections of a listener, and has a server tell at which it works. It returns
// the listener that the server has to serve; FirstBytes and TLS may be put on it.
func (s *Sockets) Watch(srv *http.Server, l net.Listener) net.Listener {
	srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		for {
			switch inner := c.(type) {
			case *socket:
				return context.WithValue(ctx, socketKey{}, inner)
			case interface{ NetConn() net.Conn }: // TLS, or first bytes
				c = inner.NetConn()
			default:
				return ctx
			}
		}
	}
	next := srv.Handler
	srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(socketKey{}).(*socket); ok {
			c.requests.Add(1)
			defer c.requests.Add(-1)
			if r.Body != nil && r.Body != http.NoBody {
				r.Body = &incoming{r.Body, c}
			}
		}
		next.ServeHTTP(w, r)
	})
	return &bounded{l, s}
}

// socketKey is the key of a connection in the context of its requests.
type socketKey struct{}

// bounded is a listener with bounded connections.
type bounded struct {
	net.Listener
	of *Sockets
}

// Accept implements [net.Listener].
func (l *bounded) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &socket{Conn: nc, of: l.of, site: site{l.Addr().String(), origin(nc.RemoteAddr().String())}}
		c.heard.Store(time.Now().UnixNano())
		idle, ok := l.of.admit(c)
		if idle != nil {
			_ = idle.Close() // its client goes by the next read
		}
		if ok {
			return c, nil
		}
		_ = nc.Close()
		l.of.log.Warn().Str("remote", c.site.origin).Int("connections", l.of.most).
			Msg("an address has as many connections as it may while others need some, and works at all of them; one more was closed")
	}
}

// admit counts a connection, if it may be. idle has to make room for it; nil: there is room.
func (s *Sockets) admit(c *socket) (idle *socket, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	free := s.most - len(s.all)
	if s.share[c.site] >= free {
		idle = s.silent(c.site, free > 0)
		if idle == nil {
			return nil, false
		}
		s.drop(idle)
	}
	s.all[c] = struct{}{}
	s.share[c.site]++
	return idle, true
}

// silent returns a connection that can make room, of one site or of any; nil: none. The caller holds
// the lock.
func (s *Sockets) silent(of site, alone bool) (longest *socket) {
	now, seen := time.Now().UnixNano(), 0
	for one := range s.all { // in random order
		if alone && one.site != of || !one.idle(now) {
			continue
		}
		if longest == nil || one.heard.Load() < longest.heard.Load() {
			longest = one
		}
		if seen++; seen == compared {
			break
		}
	}
	return longest
}

// drop no longer counts a connection. The caller holds the lock.
func (s *Sockets) drop(c *socket) {
	if _, ok := s.all[c]; !ok {
		return
	}
	delete(s.all, c)
	if s.share[c.site]--; s.share[c.site] == 0 {
		delete(s.share, c.site)
	}
}

// idle reports whether nothing is worked for at a connection.
func (c *socket) idle(now int64) bool {
	n := c.requests.Load()
	return n == 0 || n == c.receiving.Load() && now-c.heard.Load() >= int64(halfSent)
}

// Read implements [net.Conn].
func (c *socket) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.heard.Store(time.Now().UnixNano())
	}
	return n, err
}

// CloseWrite ends the sending half, which net/http does before it closes a connection.
func (c *socket) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close implements [net.Conn].
func (c *socket) Close() error {
	c.of.mu.Lock()
	c.of.drop(c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// incoming is the body of a request.
type incoming struct {
	io.ReadCloser
	c *socket
}

// Read implements [io.Reader].
func (b *incoming) Read(p []byte) (int, error) {
	b.c.receiving.Add(1)
	defer b.c.receiving.Add(-1)
	return b.ReadCloser.Read(p)
}
