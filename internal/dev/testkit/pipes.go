package testkit

import (
	"context"
	"net"
	"sync"
	"syscall"
)

// Pipes is a listener within the process. Its connections take part in virtual time. They have no
// buffers: a write waits for its reader.
type Pipes struct {
	at     net.Addr
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// NewPipes returns a listener at an address; nil: one of this host.
func NewPipes(at net.Addr) *Pipes {
	if at == nil {
		at = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
	}
	return &Pipes{at: at, conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept implements [net.Listener].
func (p *Pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener]. It may be called again.
func (p *Pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr implements [net.Listener].
func (p *Pipes) Addr() net.Addr { return p.at }

// Dial makes a connection of a client on this host, wherever it should go to.
func (p *Pipes) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return p.DialFrom(ctx, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2})
}

// DialFrom makes a connection of a client at an address.
func (p *Pipes) DialFrom(ctx context.Context, from net.Addr) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- named{there, p.at, from}:
		return named{here, from, p.at}, nil
	case <-p.closed:
		return nil, syscall.ECONNREFUSED
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Offer has Accept return a connection of the test's own.
func (p *Pipes) Offer(c net.Conn) { p.conns <- c }

// named is an end of a connection that has addresses.
type named struct {
	net.Conn
	local, remote net.Addr
}

func (c named) LocalAddr() net.Addr  { return c.local }
func (c named) RemoteAddr() net.Addr { return c.remote }
