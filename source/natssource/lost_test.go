package natssource_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit"
	"blobtail/record"
	"blobtail/source/natssource"
)

// A proxy that can cut all connections through it.
type proxy struct {
	url     string
	mu      sync.Mutex
	open    []net.Conn
	down    bool
	swallow int // acknowledgements
}

func newProxy(t *testing.T, to string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	p := &proxy{url: "nats://" + l.Addr().String()}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", strings.TrimPrefix(to, "nats://"))
			if err != nil {
				in.Close()
				continue
			}
			p.mu.Lock()
			p.open = append(p.open, in, out)
			if p.down {
				p.cutLocked()
			}
			p.mu.Unlock()
			go func() { io.Copy(in, out); in.Close() }()
			go func() { p.send(out, in); out.Close() }()
		}
	}()
	return p
}

// send forwards the client's bytes, except acknowledgements that are to be swallowed.
func (p *proxy) send(to, from net.Conn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if _, err := to.Write(p.filter(buf[:n])); err != nil {
			return
		}
	}
}

// filter removes an acknowledgement from the sent bytes.
func (p *proxy) filter(sent []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	const last = "+ACK\r\n"
	from := bytes.Index(sent, []byte("PUB $JS.ACK"))
	if p.swallow == 0 || from < 0 {
		return sent
	}
	to := bytes.Index(sent[from:], []byte(last))
	if to < 0 {
		return sent
	}
	p.swallow--
	return append(bytes.Clone(sent[:from]), sent[from+to+len(last):]...)
}

func (p *proxy) setSwallow(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.swallow = n
}

func (p *proxy) swallowed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.swallow == 0
}

func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutLocked()
}

func (p *proxy) cutLocked() {
	for _, c := range p.open {
		c.Close()
	}
	p.open = nil
}

// setDown blocks all traffic, or lets it through again.
func (p *proxy) setDown(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
	p.cutLocked()
}

// Acknowledgements that are lost with their connection are sent again, and messages
// on the way are delivered again.
func TestLostAcknowledgements(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	const n = 1500
	for i := range n {
		if _, err := e.js.PublishAsync("logs.web", fmt.Appendf(nil, `{"msg":"%d"}`, i)); err != nil {
			t.Fatal(err)
		}
	}
	<-e.js.PublishAsyncComplete()
	p := newProxy(t, e.nats.URL)
	m := &memory{}
	m.stored = func(reply string) {
		if len(m.requests)%500 == 99 {
			p.cut()
		}
		e.source.Stored(reply)
	}
	e.run(m, ackWait(2*time.Second), func(o *natssource.Options) { o.URL = p.url })
	e.left(0)
	e.stop()
	if len(m.known) != n {
		t.Errorf("%d different messages taken, of %d", len(m.known), n)
	}
}

// An acknowledgement that the server does not confirm is sent again, long before the
// server would deliver the message again.
func TestUnansweredAcknowledgement(t *testing.T) {
	for name, after := range map[string]func(*proxy){
		"on the same connection": func(*proxy) {},
		"on another connection":  (*proxy).cut,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			p := newProxy(t, e.nats.URL)
			m := &memory{}
			e.run(m, func(o *natssource.Options) { o.URL = p.url })
			e.publish("logs.web", `{"msg":"a"}`)
			r := m.await(t, 1)[0]
			p.setSwallow(1)
			e.source.Stored(r.Reply)
			testkit.Until(t, "swallowed", p.swallowed)
			after(p)
			e.left(0)
			testkit.Until(t, "confirmed", func() bool { return e.value("blobtail_nats_settled_total", "ack") == 1 })
		})
	}
}

// The log is full, and the stream is recreated while delivered messages wait. They
// are kept under their own identities, and acknowledge nothing of the new stream.
func TestStreamMadeAnewWhileFull(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	var full atomic.Bool
	full.Store(true)
	m := &memory{refuse: while(&full)}
	publish := func(word string) {
		for i := range 3 {
			e.publish("logs.web", fmt.Sprintf(`{"msg":"%s %d"}`, word, i))
		}
	}
	publish("old")
	e.run(m)
	testkit.Until(t, "all wait", func() bool { return e.consumer().NumAckPending == 3 })
	testkit.Until(t, "the log is full", func() bool { return strings.Contains(e.log.String(), "the log is full") })
	if err := e.js.DeleteStream(t.Context(), "LOGS"); err != nil {
		t.Fatal(err)
	}
	create(t, e.js, testenv.Stream("LOGS"))
	publish("new")
	testkit.Until(t, "somebody looks", func() bool { return strings.Contains(e.log.String(), "made anew") })
	full.Store(false)
	all := m.await(t, 6)
	seen := map[record.Origin]bool{}
	for _, r := range all {
		if seen[r.Origin] {
			t.Errorf("%v twice", r.Origin)
		}
		seen[r.Origin] = true
	}
	settle := func(word string) {
		for _, r := range all {
			if strings.Contains(string(r.Data), word) {
				e.source.Stored(r.Reply)
			}
		}
	}
	settle("old")
	e.publish("logs.web", `{"msg":"more"}`)
	last := m.await(t, 7)[6]
	e.left(4)
	settle("new")
	e.source.Stored(last.Reply)
	e.left(0)
}
