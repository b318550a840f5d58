package integration_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"blobtail/internal/testenv"
)

// proxy stands before Azurite and makes it fail.
type proxy struct {
	server *httptest.Server
	mode   atomic.Pointer[mode]
	lost   atomic.Int64 // requests that were carried out and not answered
	failed atomic.Int64 // requests that were not carried out

	closing chan struct{} // closed at the end, for what hangs
}

// mode says what becomes of a request.
type mode struct {
	refuse func(r *http.Request) bool // answered 503, not carried out
	lose   func(r *http.Request) bool // carried out; the connection is cut instead of an answer
	hang   func(r *http.Request) bool // never answered, not carried out
}

// proxied is a place behind a proxy, and the same place without it.
func proxied(t testing.TB) (through, direct place, p *proxy) {
	t.Helper()
	direct, _ = azureStore(t)
	a := shared.Azurite(t)
	u, err := url.Parse(a.BlobURL)
	if err != nil {
		t.Fatal(err)
	}
	p = &proxy{closing: make(chan struct{})}
	p.set(mode{})
	// The Host stays as the client sent it; a shared key does not sign it.
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = "http", u.Host
	}}
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, forward) }))
	t.Cleanup(func() {
		close(p.closing)
		p.server.CloseClientConnections()
		p.server.Close()
	})
	through = place{store: direct.store, env: []string{"AZURE_STORAGE_CONNECTION_STRING=" +
		strings.Replace(a.ConnectionString, a.BlobURL, p.server.URL+"/"+testenv.Account, 1)}}
	return through, direct, p
}

func (p *proxy) set(m mode) {
	never := func(*http.Request) bool { return false }
	for _, f := range []*func(*http.Request) bool{&m.refuse, &m.lose, &m.hang} {
		if *f == nil {
			*f = never
		}
	}
	p.mode.Store(&m)
}

func (p *proxy) serve(w http.ResponseWriter, r *http.Request, forward http.Handler) {
	m := p.mode.Load()
	switch {
	case m.refuse(r):
		p.failed.Add(1)
		w.Header().Set("x-ms-error-code", "ServerBusy")
		http.Error(w, "busy", http.StatusServiceUnavailable)
	case m.hang(r):
		p.failed.Add(1)
		_, _ = io.Copy(io.Discard, r.Body) // only then the server sees that the client goes
		select {
		case <-r.Context().Done():
		case <-p.closing:
		}
		panic(http.ErrAbortHandler)
	case m.lose(r):
		forward.ServeHTTP(httptest.NewRecorder(), r)
		p.lost.Add(1)
		panic(http.ErrAbortHandler)
	default:
		forward.ServeHTTP(w, r)
	}
}

func all(*http.Request) bool { return true }

func puts(r *http.Request) bool {
	return r.Method == http.MethodPut && !strings.Contains(r.URL.RawQuery, "restype")
}
