package integration_test

import (
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// cable leads to a server and can be cut, or let everything wait.
type cable struct {
	listener net.Listener
	target   string
	state    atomic.Int32

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// States of a cable.
const (
	joined int32 = iota
	cut          // connections are closed at once
	silent       // connections are accepted, and no data arrives
)

func newCable(t testing.TB, target string) *cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{listener: l, target: target, conns: map[net.Conn]bool{}}
	go c.serve()
	t.Cleanup(func() {
		l.Close()
		c.set(cut)
	})
	return c
}

// set changes the state. Connections of the old one end.
func (c *cable) set(state int32) {
	c.state.Store(state)
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.conns {
		conn.Close()
	}
	clear(c.conns)
}

// keep notes a connection, which the next change of state closes.
func (c *cable) keep(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns[conn] = true
}

func (c *cable) drop(conn net.Conn) {
	conn.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, conn)
}

func (c *cable) serve() {
	for {
		in, err := c.listener.Accept()
		if err != nil {
			return
		}
		switch c.state.Load() {
		case cut:
			in.Close()
		case silent:
			c.keep(in)
		default:
			go c.join(in)
		}
	}
}

func (c *cable) join(in net.Conn) {
	c.keep(in)
	defer c.drop(in)
	out, err := net.Dial("tcp", c.target)
	if err != nil {
		return
	}
	c.keep(out)
	defer c.drop(out)
	go func() {
		_, _ = io.Copy(out, in) // it ends when either side closes
		out.Close()
	}()
	_, _ = io.Copy(in, out)
}

// laid lays cables to the blobs and the tables of a place of Azurite.
func laid(t testing.TB, at place) (through place, blobs, tables *cable) {
	t.Helper()
	a := shared.Azurite(t)
	text := at.env[0]
	lay := func(endpoint string) *cable {
		u, err := url.Parse(endpoint)
		if err != nil {
			t.Fatal(err)
		}
		c := newCable(t, u.Host)
		text = strings.ReplaceAll(text, u.Host, c.listener.Addr().String())
		return c
	}
	blobs, tables = lay(a.BlobURL), lay(a.TableURL)
	through = place{store: at.store, env: slices.Clone(at.env)}
	through.env[0] = text
	return through, blobs, tables
}

// cabled returns a place that can be away as a whole.
func cabled(t testing.TB, at place) (through place, away func(bool)) {
	t.Helper()
	through, blobs, tables := laid(t, at)
	return through, func(gone bool) {
		state := joined
		if gone {
			state = cut
		}
		blobs.set(state)
		tables.set(state)
	}
}
