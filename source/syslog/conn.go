package syslog

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"blobtail/internal/count"
	"blobtail/internal/signpost"
)

const (
	// smallSize is the buffer of a connection that is idle.
	smallSize = 2 << 10
	// readSize is the buffer of one that sends, and largest the one for the longest
	// message with its framing.
	readSize = 64 << 10
	largest  = longest + 64
	// linger is how long a connection keeps its large buffer without more bytes.
	linger = 50 * time.Millisecond
	// settled is how long a message without a line feed waits for more of it.
	settled = 2 * time.Second
	// handshake is how long one of TLS may take.
	handshake = 10 * time.Second
	// farewell is how long a connection is read after it was closed for writing: at the end of
	// Run, and after the answer to a sender of another protocol. Senders that look see that, and
	// send no more.
	farewell = 250 * time.Millisecond
)

// A peer is the sender at the other end of a connection.
type peer struct {
	source string // for rejected messages
	host   []byte // for messages without a host; nil: not known
	// messages counts those of the connection, so that a rejected one has a number.
	messages int
	// badStarts counts messages before the first one that may be syslog; known says that it has come.
	// Behind a bad one that is a message with a priority or a header.
	badStarts int
	known     bool
}

func newPeer(at net.Addr) *peer {
	p := &peer{source: "syslog"}
	if tcp, ok := at.(*net.TCPAddr); ok {
		ip := tcp.AddrPort().Addr().Unmap().String()
		p.source, p.host = "syslog "+ip, []byte(ip)
	}
	return p
}

// A conn reads one connection.
type conn struct {
	s      *Source
	nc     net.Conn
	from   *peer
	framer framer
	buf    []byte // all of it
	n      int    // bytes in it
	small  []byte
	large  *[]byte // of the pool, if buf is that
	held   int64   // bytes of memory that are taken for it

	any      bool          // bytes have come
	known    bool          // they are syslog, as far as their beginning shows
	patience time.Duration // that is left for the rest of a message

	mu   sync.Mutex
	last time.Time // when reading ends, if not zero
}

// serve reads a connection until it ends, or ctx does.
func (s *Source) serve(ctx context.Context, nc net.Conn) {
	defer nc.Close()
	from := newPeer(nc.RemoteAddr())
	if s.o.TLS != nil {
		secure, err := s.secure(ctx, nc)
		if err != nil {
			s.metrics.untrusted.Inc()
			s.refusals.Warn().Err(err).Str("source", from.source).Msg("a sender of syslog has no TLS connection")
			return
		}
		nc = secure
	}
	s.metrics.served.Inc()
	c := &conn{s: s, nc: nc, from: from, small: make([]byte, smallSize), patience: s.o.Slow}
	c.buf = c.small
	defer c.shrink()
	defer context.AfterFunc(ctx, c.finish)()
	why, closed, counter := c.read(ctx)
	counter.Inc()
	if rest := c.framer.rest(c.buf[:c.n], closed, why); len(rest.msg) > 0 || rest.bad != "" {
		s.batch.last(rest, from)
	}
}

// withoutTickets returns a configuration that sends no session tickets. Senders of syslog
// read nothing. If one closes a connection with unread tickets, its kernel resets the
// connection, and the last messages may be lost.
func withoutTickets(c *tls.Config) *tls.Config {
	c = c.Clone()
	c.SessionTicketsDisabled = true
	if choose := c.GetConfigForClient; choose != nil {
		c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			chosen, err := choose(hello)
			if chosen != nil {
				chosen = chosen.Clone()
				chosen.SessionTicketsDisabled = true
			}
			return chosen, err
		}
	}
	return c
}

// secure makes the handshake of TLS.
func (s *Source) secure(ctx context.Context, nc net.Conn) (net.Conn, error) {
	secure := tls.Server(nc, s.o.TLS)
	hasty, cancel := context.WithTimeout(ctx, handshake)
	defer cancel()
	if err := secure.HandshakeContext(hasty); err != nil {
		if bad, ok := errors.AsType[tls.RecordHeaderError](err); ok {
			switch signpost.SpeechOf(bad.RecordHeader[:]) {
			case signpost.HTTP:
				err = fmt.Errorf("it speaks HTTP, which goes to the listener for records%s: %w", s.o.elsewhere(), err)
			default:
				err = fmt.Errorf("it speaks without TLS, which the sender has to switch on: %w", err)
			}
		}
		return nil, err
	}
	if s.o.ClientCerts && len(secure.ConnectionState().VerifiedChains) == 0 {
		return nil, errors.New("the sender has shown no certificate")
	}
	return secure, nil
}

// finish tells the sender that nothing more is read after a short while.
func (c *conn) finish() {
	c.mu.Lock()
	c.last = time.Now().Add(farewell)
	c.mu.Unlock()
	if half, ok := c.nc.(interface{ CloseWrite() error }); ok {
		// A sender that reads nothing must not hold this up.
		_ = c.nc.SetWriteDeadline(time.Now().Add(farewell))
		_ = half.CloseWrite()
	}
	c.until(0)
}

// until lets reads wait for so long, or until the end of the connection.
func (c *conn) until(wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.last
	if at.IsZero() {
		at = time.Now().Add(wait)
	}
	_ = c.nc.SetReadDeadline(at) // it fails for a closed connection, as the read does
}

// read passes messages on until the connection ends. closed says that the sender has
// closed it in good order.
func (c *conn) read(ctx context.Context) (why string, closed bool, counter *count.Counter) {
	m := c.s.metrics
	for {
		if !c.room(ctx) {
			if ctx.Err() != nil {
				return "the ingester ended", false, m.finished
			}
			return "there was no memory for the rest", false, m.crowded
		}
		begun := time.Now()
		wait := c.wait()
		c.until(wait)
		n, err := c.nc.Read(c.buf[c.n:])
		if n > 0 {
			c.any = true
			m.bytes.Add(int64(n))
			c.n += n
			full := c.n == len(c.buf)
			if c.foreign() {
				return "", false, m.foreign
			}
			c.pass(begun)
			if c.from.badStarts == mostBadStarts {
				c.n = 0
				return "", false, m.noise
			}
			if full {
				c.grow()
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() != nil:
			return "the ingester ended", false, m.finished
		case errors.Is(err, os.ErrDeadlineExceeded) && wait == linger:
			c.shrink()
		case errors.Is(err, os.ErrDeadlineExceeded) && c.framer.unended(c.buf[:c.n]):
			c.s.batch.last(frame{msg: bytes.TrimRight(c.buf[:c.n], "\r\n")}, c.from)
			c.n, c.framer.looked, c.framer.joined, c.framer.nul, c.patience = 0, 0, true, true, c.s.o.Slow
		case errors.Is(err, os.ErrDeadlineExceeded) && c.n > 0:
			return "the sender was too slow", false, m.slow
		case errors.Is(err, os.ErrDeadlineExceeded):
			return "", false, m.idle
		case errors.Is(err, io.EOF):
			return "the sender ended the connection", true, m.finished
		default:
			c.s.o.Log.Debug().Err(err).Str("source", c.from.source).Msg("a connection of syslog broke")
			return "the connection broke", false, m.broken
		}
	}
}

// foreign reports whether the connection begins as another protocol, and tells its sender so. Its
// bytes are no messages.
func (c *conn) foreign() bool {
	if c.known {
		return false
	}
	const most = 8 << 10 // of the first line of a request
	b := c.buf[:c.n]
	if b[0] == 0 && c.from.badStarts == 0 { // the length of a pickle, which has no end of its own
		c.from.badStarts++
	}
	end := bytes.IndexByte(b, '\n')
	speech := signpost.SpeechOf(b)
	c.known = end >= 0 || speech != signpost.HTTP && c.n > 2 || c.n > most
	text := ""
	switch {
	case speech == signpost.TLS && c.s.o.TLS == nil && c.known:
		text = "this listener speaks syslog without TLS: let the sender leave TLS out, or give syslog.cert and syslog.key"
	case speech == signpost.HTTP2, speech == signpost.HTTP && end >= 0 && signpost.IsRequest(b[:end]):
		text = "this listener speaks syslog: HTTP goes to the listener for records" + c.s.o.elsewhere()
	default:
		return false
	}
	c.n = 0
	c.s.refusals.Warn().Str("source", c.from.source).Msg("a sender spoke no syslog: " + text)
	_ = c.nc.SetWriteDeadline(time.Now().Add(farewell))
	fmt.Fprintf(c.nc, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s\n", len(text)+1, text)
	c.finish()
	_, _ = io.Copy(io.Discard, c.nc) // or a connection with unread bytes is reset, and the answer is lost
	return true
}

// wait is how long the next read may take.
func (c *conn) wait() time.Duration {
	switch {
	case c.n > 0 && c.framer.unended(c.buf[:c.n]):
		return min(settled, c.patience)
	case c.n > 0:
		return c.patience
	case c.large != nil || c.held > 0:
		return linger
	case !c.any:
		return c.s.o.First
	}
	return c.s.o.Idle
}

// pass passes on the messages in the buffer. The last read began at begun.
func (c *conn) pass(begun time.Time) {
	waited := time.Since(begun)
	used := c.s.batch.take(&c.framer, c.buf[:c.n], c.from)
	if used > 0 {
		c.patience = c.s.o.Slow
	} else {
		c.patience -= waited
	}
	c.n = copy(c.buf, c.buf[used:c.n])
	if c.n == 0 {
		c.patience = c.s.o.Slow
	}
}

// grow takes a large buffer for a sender that fills the small one, if there is memory.
func (c *conn) grow() {
	if len(c.buf) < readSize && c.s.memory.TryAcquire(readSize) {
		c.enlarge()
	}
}

func (c *conn) enlarge() {
	c.hold(readSize)
	c.large, _ = c.s.large.Get().(*[]byte)
	copy(*c.large, c.buf[:c.n])
	c.buf = *c.large
}

// room makes room for more bytes of a message that fills the buffer. It waits for memory as
// long as for a sender.
func (c *conn) room(ctx context.Context) bool {
	if c.n < len(c.buf) {
		return true
	}
	size := largest
	if len(c.buf) < readSize {
		size = readSize
	}
	// The end of Run ends the wait, and the message could not be complete then anyway.
	waiting, cancel := context.WithTimeout(ctx, c.s.o.Slow)
	defer cancel()
	if c.s.memory.Acquire(waiting, int64(size)) != nil {
		return false
	}
	if size == readSize {
		c.enlarge()
		return true
	}
	buf := make([]byte, size)
	n := copy(buf, c.buf[:c.n])
	c.shrink()
	c.hold(int64(size))
	c.buf, c.n = buf, n
	return true
}

func (c *conn) hold(n int64) {
	c.held += n
	c.s.held.Add(n)
}

// shrink gives the large buffer back. Its bytes are lost.
func (c *conn) shrink() {
	if c.large != nil {
		c.s.large.Put(c.large)
	}
	c.large, c.buf, c.n = nil, c.small, 0
	if c.held > 0 {
		c.s.memory.Release(c.held)
		c.hold(-c.held)
	}
}
