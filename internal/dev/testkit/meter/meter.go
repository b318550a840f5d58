// Package meter has a proxy that stands before a store: it delays requests, as a network
// would, and records them.
package meter

import (
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Request is a request that came to its end.
type Request struct {
	Method, Path string
	Query        string // unescaped
	Bytes        int64  // of the answer's body
	// Begun is the time at which the request arrived. Ended is the time just before the
	// last part of the answer was written, so that the client's next request is later.
	Begun, Ended time.Time
}

// String returns method, path and query.
func (r Request) String() string { return r.Method + " " + r.Path + "?" + r.Query }

// Proxy forwards requests to one server. Any number of them are in progress at once.
type Proxy struct {
	listener net.Listener
	server   *http.Server
	delay    atomic.Int64 // ns
	forward  *httputil.ReverseProxy

	active sync.RWMutex // held for reading by each request in progress
	mu     sync.Mutex
	seen   []Request
}

// New returns a proxy for the server at an address, on a free port of loopback.
func New(address string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l}
	// The Host stays as the client sent it; a shared key does not sign it.
	p.forward = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", address },
		// Node closes idle connections after five seconds, and must not do so under a request.
		Transport:    &http.Transport{MaxIdleConnsPerHost: 256, IdleConnTimeout: 2 * time.Second, DisableCompression: true},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, // the client has gone
	}
	p.server = &http.Server{Handler: p}
	go p.server.Serve(l)
	return p, nil
}

// Address returns the address of the proxy.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Close ends the proxy and cuts its connections.
func (p *Proxy) Close() { p.server.Close() }

// Delay has each request from now on wait for so long before it is forwarded.
func (p *Proxy) Delay(d time.Duration) { p.delay.Store(int64(d)) }

// Take returns the requests since the last Take. It waits for those in progress.
func (p *Proxy) Take() (seen []Request) {
	p.active.Lock()
	defer p.active.Unlock()
	seen, p.seen = p.seen, nil
	return seen
}

// ServeHTTP forwards a request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.active.RLock()
	defer p.active.RUnlock()
	query, _ := url.QueryUnescape(r.URL.RawQuery)
	a := &answer{ResponseWriter: w, request: Request{Method: r.Method, Path: r.URL.Path, Query: query, Begun: time.Now()}}
	defer func() { // also if the client has gone
		p.mu.Lock()
		p.seen = append(p.seen, a.request)
		p.mu.Unlock()
	}()
	time.Sleep(time.Duration(p.delay.Load()))
	p.forward.ServeHTTP(a, r)
}

// answer notes the time and the size of an answer.
type answer struct {
	http.ResponseWriter
	request Request
}

func (a *answer) WriteHeader(code int) {
	a.request.Ended = time.Now()
	a.ResponseWriter.WriteHeader(code)
}

func (a *answer) Write(b []byte) (int, error) {
	a.request.Ended = time.Now()
	a.request.Bytes += int64(len(b))
	return a.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Chain returns the length of the longest sequence of requests in which each began after
// the one before had ended. It is how often a read had to wait for an answer before it
// could go on.
func Chain(requests []Request) (n int) {
	byEnd := slices.SortedFunc(slices.Values(requests), func(a, b Request) int { return a.Ended.Compare(b.Ended) })
	var last time.Time
	for _, r := range byEnd {
		if n == 0 || r.Begun.After(last) {
			n, last = n+1, r.Ended
		}
	}
	return n
}
