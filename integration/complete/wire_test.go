package complete_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"blobtail/reading/unflushed/live"
)

var (
	errRefused = errors.New("connection refused")
	errReset   = errors.New("connection reset")
)

// wire carries questions to the ingesters of a world. Each takes some time, and
// anything may happen at both ends meanwhile.
type wire struct {
	w *world

	mu    sync.Mutex
	hosts map[string]*listener // by the name in an address
}

// listener is the listening port of a process.
type listener struct {
	mux    *http.ServeMux
	gate   *gate
	closed chan struct{} // connections break
	ending bool          // no new ones
	sky    *sky
}

// up makes a process reachable at a host, in place of the previous process there.
func (x *wire) up(host string, h http.Handler, g *gate, s *sky) *listener {
	mux := http.NewServeMux()
	mux.Handle(live.Pattern, h)
	l := &listener{mux: mux, gate: g, closed: make(chan struct{}), sky: s}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.hosts[host] = l
	return l
}

// close refuses new requests; with cut, open connections break too.
func (x *wire) close(l *listener, cut bool) {
	if l == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	l.ending = true
	for name, there := range x.hosts {
		if there == l {
			delete(x.hosts, name)
		}
	}
	if cut {
		select {
		case <-l.closed:
		default:
			close(l.closed)
		}
	}
}

func (x *wire) at(host string) *listener {
	x.mu.Lock()
	defer x.mu.Unlock()
	if l := x.hosts[host]; l != nil && !l.ending {
		return l
	}
	return nil
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
	l := e.x.at(r.URL.Host)
	if l == nil {
		return nil, errRefused
	}
	cut := -1
	switch l.sky.fate(rng) {
	case fails:
		return nil, errRefused
	case hangs, late:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case loses:
		cut = rng.IntN(600)
	}
	resp, err := l.serve(r, cut)
	if err == nil && !pause(r.Context(), w.latency(rng)) {
		resp.Body.Close()
		return nil, r.Context().Err()
	}
	if e.gate.pass() != nil {
		return nil, errGone
	}
	return resp, err
}

// serve has the handler answer, and breaks the connection after cut bytes unless cut is
// negative.
func (l *listener) serve(r *http.Request, cut int) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	body, out := io.Pipe()
	resp := &response{header: http.Header{}, status: http.StatusOK, out: out, sent: make(chan struct{}), gate: l.gate, left: cut, drawl: time.Duration(l.sky.drawl.Load())}
	go func() {
		defer cancel()
		if l.gate.pass() == nil {
			l.mux.ServeHTTP(resp, r.Clone(ctx))
			resp.Flush()
		}
		out.Close()
	}()
	go func() {
		select {
		case <-l.closed:
			out.CloseWithError(errReset)
		case <-ctx.Done():
			out.CloseWithError(ctx.Err())
		}
		cancel()
	}()
	select {
	case <-resp.sent:
	case <-ctx.Done():
		return nil, errReset
	case <-l.closed:
		return nil, errReset
	}
	return &http.Response{StatusCode: resp.status, Header: resp.first, Body: body, Request: r, ProtoMajor: 1, ProtoMinor: 1}, nil
}

// response is an [http.ResponseWriter] into a pipe.
type response struct {
	header, first http.Header
	status        int
	out           *io.PipeWriter
	once          sync.Once
	sent          chan struct{}
	gate          *gate
	left          int // bytes until the connection breaks; negative: it does not
	drawl         time.Duration
}

func (r *response) Header() http.Header { return r.header }

func (r *response) WriteHeader(status int) {
	r.once.Do(func() {
		if r.gate.pass() != nil {
			return
		}
		r.status, r.first = status, r.header.Clone()
		close(r.sent)
	})
}

func (r *response) Flush() { r.WriteHeader(http.StatusOK) }

func (r *response) Write(b []byte) (int, error) {
	r.Flush()
	if r.drawl > 0 {
		time.Sleep(r.drawl)
	}
	if r.gate.pass() != nil {
		return 0, errGone
	}
	if r.left >= 0 && len(b) > r.left {
		n, _ := r.out.Write(b[:r.left]) // it breaks anyway
		r.out.CloseWithError(errReset)
		return n, errReset
	}
	if r.left >= 0 {
		r.left -= len(b)
	}
	return r.out.Write(b)
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
