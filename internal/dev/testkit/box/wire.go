package box

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"blobtail/reading/unflushed/live"
)

// The errors of connections on a [Wire].
var (
	ErrRefused = errors.New("connection refused")
	ErrReset   = errors.New("connection reset")
)

// Wire carries questions to ingesters in this process, without delay. The zero Wire has none.
type Wire struct {
	mu     sync.Mutex
	ports  map[string]*Port
	refuse func(host string) bool // nil: no host is refused
	cuts   map[string]int         // bytes after which the answers of a host break off
}

// Port is where a process listens on a wire.
type Port struct {
	// Handler is the one that the process listens with.
	Handler http.Handler

	wire   *Wire
	mux    *http.ServeMux
	closed chan struct{} // connections break
}

// Up has the handler of an ingester answer at a host, in place of the one before it.
func (w *Wire) Up(host string, h http.Handler) *Port { return w.UpAt(host, live.Pattern, h) }

// UpAt has a handler answer questions of a pattern at a host, in place of the one before it.
func (w *Wire) UpAt(host, pattern string, h http.Handler) *Port {
	p := &Port{Handler: h, wire: w, mux: http.NewServeMux(), closed: make(chan struct{})}
	p.mux.Handle(pattern, h)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ports == nil {
		w.ports = map[string]*Port{}
	}
	w.ports[host] = p
	return p
}

// At is the port of a host; nil: nobody listens there.
func (w *Wire) At(host string) *Port {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ports[host]
}

// Leave ends listening: open connections go on.
func (p *Port) Leave() {
	p.wire.mu.Lock()
	defer p.wire.mu.Unlock()
	for host, there := range p.wire.ports {
		if there == p {
			delete(p.wire.ports, host)
		}
	}
}

// Close ends listening and breaks open connections. It may be called again.
func (p *Port) Close() {
	p.Leave()
	p.wire.mu.Lock()
	defer p.wire.mu.Unlock()
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
}

// Refuse refuses connections to some hosts from now on; nil: to none.
func (w *Wire) Refuse(refuse func(host string) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refuse = refuse
}

// Cut breaks off the answers of a host after so many bytes, and those of no other.
func (w *Wire) Cut(host string, after int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cuts = map[string]int{host: after}
}

// Client is a client on the wire.
func (w *Wire) Client() *http.Client { return &http.Client{Transport: w} }

// RoundTrip implements [http.RoundTripper].
func (w *Wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	p, refuse := w.ports[r.URL.Host], w.refuse
	after, cut := w.cuts[r.URL.Host]
	w.mu.Unlock()
	if p == nil || refuse != nil && refuse(r.URL.Host) {
		return nil, ErrRefused
	}
	if !cut {
		after = -1
	}
	return p.Serve(r, after)
}

// Serve has the process answer. The connection breaks after so many bytes; negative: it does not.
func (p *Port) Serve(r *http.Request, after int) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	body, out := io.Pipe()
	resp := &response{header: http.Header{}, status: http.StatusOK, out: out, sent: make(chan struct{}), left: after}
	go func() {
		defer cancel()
		defer func() {
			if v := recover(); v == http.ErrAbortHandler {
				out.CloseWithError(ErrReset)
			} else if v != nil {
				panic(v)
			}
		}()
		p.mux.ServeHTTP(resp, r.Clone(ctx))
		if ctx.Err() == nil {
			resp.Flush()
		}
		out.Close()
	}()
	go func() {
		select {
		case <-p.closed:
			out.CloseWithError(ErrReset)
		case <-ctx.Done():
			out.CloseWithError(ctx.Err())
		}
		cancel()
	}()
	select {
	case <-resp.sent:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.closed:
		return nil, ErrReset
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
	left          int // bytes until the connection breaks; negative: it does not
}

func (r *response) Header() http.Header { return r.header }

func (r *response) WriteHeader(status int) {
	r.once.Do(func() {
		r.status, r.first = status, r.header.Clone()
		close(r.sent)
	})
}

func (r *response) Flush() { r.WriteHeader(http.StatusOK) }

func (r *response) Write(b []byte) (int, error) {
	r.Flush()
	if r.left >= 0 && len(b) > r.left {
		n, _ := r.out.Write(b[:r.left]) // it breaks anyway
		r.out.CloseWithError(ErrReset)
		return n, ErrReset
	}
	if r.left >= 0 {
		r.left -= len(b)
	}
	return r.out.Write(b)
}
