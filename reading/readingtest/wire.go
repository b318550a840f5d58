package readingtest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"blobtail/reading/unflushed/live"
)

// wire carries requests to handlers in this process, without delay.
type wire struct {
	mu    sync.Mutex
	hosts map[string]*host
}

type host struct {
	mux  *http.ServeMux
	gone chan struct{}
}

func (w *wire) up(name string, h http.Handler) {
	w.mu.Lock()
	defer w.mu.Unlock()
	mux := http.NewServeMux()
	mux.Handle(live.Pattern, h)
	w.hosts[name] = &host{mux, make(chan struct{})}
}

func (w *wire) down(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h := w.hosts[name]; h != nil {
		close(h.gone)
		delete(w.hosts, name)
	}
}

// RoundTrip implements [http.RoundTripper].
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	h := w.hosts[r.URL.Host]
	w.mu.Unlock()
	if h == nil {
		return nil, errors.New("connection refused")
	}
	ctx, cancel := context.WithCancel(r.Context())
	body, out := io.Pipe()
	resp := &response{header: http.Header{}, status: http.StatusOK, out: out, sent: make(chan struct{})}
	go func() {
		defer cancel()
		h.mux.ServeHTTP(resp, r.Clone(ctx))
		resp.Flush()
		out.Close()
	}()
	go func() {
		select {
		case <-h.gone:
			out.CloseWithError(errors.New("connection reset"))
		case <-ctx.Done():
			out.CloseWithError(ctx.Err())
		}
		cancel()
	}()
	select {
	case <-resp.sent:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-h.gone:
		return nil, errors.New("connection reset")
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
	return r.out.Write(b)
}
