package complete_test

import (
	"context"
	"net/http"
	"sync"
	"time"

	"blobtail/internal/dev/testkit/box"
)

// wire carries questions to the ingesters of a world. Each takes some time, and
// anything may happen at both ends meanwhile.
type wire struct {
	box.Wire
	w *world
}

// listener is the handler of a process behind its gate.
type listener struct {
	http.Handler
	gate *gate
	sky  *sky
}

// ServeHTTP implements [http.Handler]. A dead process sends nothing until its connections break.
func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if l.gate.pass() == nil {
		l.Handler.ServeHTTP(&gated{w, l.gate, time.Duration(l.sky.drawl.Load())}, r)
	}
	if l.gate.pass() != nil {
		<-r.Context().Done()
	}
}

// gated is an answer behind the gate of its process.
type gated struct {
	http.ResponseWriter
	gate  *gate
	drawl time.Duration
}

func (g *gated) WriteHeader(status int) {
	if g.gate.pass() == nil {
		g.ResponseWriter.WriteHeader(status)
	}
}

func (g *gated) Flush() { g.WriteHeader(http.StatusOK) }

func (g *gated) Write(b []byte) (int, error) {
	g.Flush()
	if g.drawl > 0 {
		time.Sleep(g.drawl)
	}
	if g.gate.pass() != nil {
		return 0, errGone
	}
	return g.ResponseWriter.Write(b)
}

// end is a client on the wire: a reader, or a process with its gate.
type end struct {
	x    *wire
	name string
	gate *gate // nil: a reader, which is never stopped
}

func (x *wire) client(name string, g *gate) *http.Client {
	return &http.Client{Transport: end{x, name, g}}
}

// RoundTrip implements [http.RoundTripper].
func (e end) RoundTrip(r *http.Request) (*http.Response, error) {
	w := e.x.w
	rng := w.fate("wire " + e.name + " " + r.URL.Host)
	if e.gate.pass() != nil {
		return nil, errGone
	}
	if !pause(r.Context(), w.latency(rng)) {
		return nil, r.Context().Err()
	}
	port := e.x.At(r.URL.Host)
	if port == nil {
		return nil, box.ErrRefused
	}
	cut := -1
	switch port.Handler.(*listener).sky.fate(rng) {
	case fails:
		return nil, box.ErrRefused
	case hangs, late:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case loses:
		cut = rng.IntN(600)
	}
	resp, err := port.Serve(r, cut)
	if err == nil && !pause(r.Context(), w.latency(rng)) {
		resp.Body.Close()
		return nil, r.Context().Err()
	}
	if e.gate.pass() != nil {
		return nil, errGone
	}
	return resp, err
}

// gate is passed by every action of a process on the outside world. It is shut while
// the process is stopped, as by SIGSTOP.
type gate struct {
	dead chan struct{}

	mu   sync.Mutex
	open chan struct{} // closed while the process runs
}

func newGate() *gate {
	g := &gate{dead: make(chan struct{}), open: make(chan struct{})}
	close(g.open)
	return g
}

// pass waits while the process is stopped. It returns [errGone] if the process is dead.
func (g *gate) pass() error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-g.dead:
		return errGone
	default:
	}
	select {
	case <-open:
		return nil
	case <-g.dead:
		return errGone
	}
}

func (g *gate) shut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
		return false
	default:
		return true
	}
}

// stop and cont are SIGSTOP and SIGCONT.
func (g *gate) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
}

func (g *gate) cont() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.open)
}

// pause reports whether ctx lasted for d.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
