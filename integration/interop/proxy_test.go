package interop_test

import (
	"bufio"
	"bytes"
	"io"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A proxy passes the bytes between a client and an ingester on, unchanged. It reads along,
// and so knows the records that the client was told are taken. It can cut connections in
// place of an answer.
type proxy struct {
	addr string // of the proxy, for clients
	to   string // of the ingester
	http bool   // false: a protocol without answers

	rate     int          // bytes a second that clients may send; 0: any
	cutEvery atomic.Int64 // one of so many answers of success is cut, the first too; 0: none is
	answers  atomic.Int64 // of success since then

	bounces atomic.Int64 // restarts of the ingester
	filled  atomic.Bool  // the log was full

	mu        sync.Mutex
	listener  net.Listener // nil while the ingester is down
	conns     map[net.Conn]bool
	seen      map[string]bool   // marks in requests
	delivered map[string]bool   // marks in requests with an answer of success, for its client to see
	codes     map[int]int       // answers by status
	cuts      int               // connections that the proxy cut
	slowest   float64           // seconds until an answer
	samples   map[string]string // requests and their answers of no success, one of each kind
}

// newProxy listens on a free port. to may have no listener yet.
func newProxy(t testing.TB, to string, http bool) *proxy {
	t.Helper()
	p := &proxy{to: to, http: http, conns: map[net.Conn]bool{}, seen: map[string]bool{}, delivered: map[string]bool{},
		codes: map[int]int{}, samples: map[string]string{}, addr: "127.0.0.1:0"}
	if err := p.up(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.down)
	return p
}

// up listens, on the same port each time.
func (p *proxy) up() error {
	l, err := net.Listen("tcp", p.addr)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.listener, p.addr = l, l.Addr().String()
	p.mu.Unlock()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return nil
}

// refuse takes no more connections, as a host without the ingester does.
func (p *proxy) refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
}

// down also closes the connections that there are.
func (p *proxy) down() {
	p.refuse()
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

// serve passes one connection on.
func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer server.Close()
	p.mu.Lock()
	p.conns[client] = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.conns, client)
		p.mu.Unlock()
	}()
	asked, told := newSpool(), newSpool()
	var reading sync.WaitGroup
	reading.Go(func() { p.read(asked, told) })
	go func() {
		_, _ = io.Copy(io.MultiWriter(server, asked), p.slowed(client))
		asked.Close()
		_ = server.(*net.TCPConn).CloseWrite()
	}()
	p.answer(client, server, told)
	client.Close()
	told.Close()
	reading.Wait()
}

// slowed reads no faster than the rate.
func (p *proxy) slowed(r io.Reader) io.Reader {
	if p.rate == 0 {
		return r
	}
	return readerFunc(func(b []byte) (int, error) {
		n, err := r.Read(b[:min(len(b), p.rate/20)])
		time.Sleep(time.Duration(n) * time.Second / time.Duration(p.rate))
		return n, err
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// answer passes the answers on, or cuts the connection in the place of one. Half of
// the cuts leave the client a part of the first line.
func (p *proxy) answer(client net.Conn, server io.Reader, told io.Writer) {
	b := bufio.NewReaderSize(server, 64<<10)
	for {
		if _, err := b.Peek(1); err != nil {
			return
		}
		part, _ := b.Peek(b.Buffered())
		if every := p.cutEvery.Load(); every > 0 && bytes.HasPrefix(part, []byte("HTTP/1.1 2")) {
			if n := p.answers.Add(1) - 1; n%every == 0 { // the first, too
				if n/every%2 == 0 {
					_, _ = client.Write(part[:len("HTTP/1.1 2")])
				}
				p.mu.Lock()
				p.cuts++
				p.mu.Unlock()
				_ = client.(*net.TCPConn).SetLinger(0)
				return
			}
		}
		if _, err := client.Write(part); err != nil {
			return
		}
		_, _ = told.Write(part)
		_, _ = b.Discard(len(part))
	}
}

// believed returns the records that the client was told are taken. Without answers it
// believes all that it sent.
func (p *proxy) believed() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.http {
		return maps.Clone(p.delivered)
	}
	return maps.Clone(p.seen)
}
