package integration_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fault is the treatment of a request to the store.
type fault int

const (
	none      fault = iota
	refuse          // answered 503, not carried out
	forbid          // answered 403, not carried out
	hang            // not carried out and not answered, for as long as the proxy is set to
	cutBody         // the connection to the store is cut amid the request's body
	lose            // carried out; the connection is cut instead of an answer
	fail            // carried out; answered 500
	cutAnswer       // carried out; the connection is cut amid the answer's body
	drip            // carried out; the answer comes byte by byte
	faults          // the number of faults
)

func (f fault) String() string {
	return [...]string{"none", "503", "403", "hang", "cut request", "lost answer", "500 after execution", "cut answer", "slow drip"}[f]
}

// executed reports whether the store carried out the request.
func (f fault) executed() bool { return f == none || f >= lose }

// mode decides the fault of a request.
type mode func(r *http.Request) fault

// healthy lets everything through.
func healthy(*http.Request) fault { return none }

// all applies one fault to every request.
func all(f fault) mode { return func(*http.Request) fault { return f } }

// some applies a fault to requests by a part of their path.
func some(by map[string]fault) mode {
	return func(r *http.Request) fault {
		for part, f := range by {
			if strings.Contains(r.URL.Path, part) {
				return f
			}
		}
		return none
	}
}

// proxy stands before Azurite and makes it fail.
type proxy struct {
	server  *httptest.Server
	forward http.Handler
	mode    atomic.Pointer[mode]
	refuses atomic.Pointer[func(http.ResponseWriter, *http.Request) bool] // answers some requests itself, nil: none
	hangs   atomic.Int64                                                  // how long hang does, in ns; 0: until the client gives up
	count   [faults]atomic.Int64                                          // requests by their fault
	creates [100]atomic.Int64                                             // requested creates of blobs, by lane
	closing chan struct{}                                                 // closed at the end, for hanging requests
}

// proxied returns a place behind a proxy, and the same place without it.
func proxied(t testing.TB) (through, direct place, p *proxy) {
	t.Helper()
	direct, _ = azureStore(t)
	a := shared.Azurite(t)
	u, err := url.Parse(a.BlobURL)
	if err != nil {
		t.Fatal(err)
	}
	p = &proxy{closing: make(chan struct{})}
	p.set(healthy)
	// The Host stays as the client sent it; a shared key does not sign it.
	p.forward = &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", u.Host },
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.server = httptest.NewServer(p)
	t.Cleanup(func() {
		close(p.closing)
		p.server.CloseClientConnections()
		p.server.Close()
	})
	through = place{store: direct.store, env: []string{"AZURE_STORAGE_CONNECTION_STRING=" +
		strings.Replace(a.ConnectionString, a.BlobURL, p.server.URL+"/"+a.Account, 1)}}
	return through, direct, p
}

func (p *proxy) set(m mode) { p.mode.Store(&m) }

// done counts the requests that met a fault.
func (p *proxy) done() (n int64) {
	for f := none + 1; f < faults; f++ {
		n += p.count[f].Load()
	}
	return n
}

// report lists the number of requests by fault.
func (p *proxy) report() string {
	var parts []string
	for f := range faults {
		if n := p.count[f].Load(); n > 0 {
			parts = append(parts, fmt.Sprintf("%v %d", f, n))
		}
	}
	return "requests to the store: " + strings.Join(parts, ", ")
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if refuses := p.refuses.Load(); refuses != nil && (*refuses)(w, r) {
		return
	}
	f := (*p.mode.Load())(r)
	p.count[f].Add(1)
	if puts(r) {
		p.creates[laneOf(r.URL.Path)].Add(1)
	}
	if f.executed() {
		p.execute(f, w, r)
		return
	}
	switch f {
	case refuse:
		w.Header().Set("x-ms-error-code", "ServerBusy")
		http.Error(w, "busy", http.StatusServiceUnavailable)
	case forbid:
		w.Header().Set("x-ms-error-code", "AuthorizationFailure")
		http.Error(w, "forbidden", http.StatusForbidden)
	case hang:
		p.hang(r)
		panic(http.ErrAbortHandler)
	case cutBody:
		if r.ContentLength > 1 { // else there is nothing to cut
			r.Body = &cutting{r.Body, r.ContentLength / 2}
			p.forward.ServeHTTP(httptest.NewRecorder(), r)
		}
		panic(http.ErrAbortHandler)
	}
}

// execute has the store answer and spoils the answer.
func (p *proxy) execute(f fault, w http.ResponseWriter, r *http.Request) {
	if f == none {
		p.forward.ServeHTTP(w, r)
		return
	}
	rec := httptest.NewRecorder()
	p.forward.ServeHTTP(rec, r)
	body := rec.Body.Bytes()
	switch f {
	case lose:
		panic(http.ErrAbortHandler)
	case fail:
		w.Header().Set("x-ms-error-code", "OperationTimedOut")
		http.Error(w, "timed out", http.StatusInternalServerError)
		return
	}
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	if r.Method != http.MethodHead {
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	}
	w.WriteHeader(rec.Code)
	out := http.NewResponseController(w)
	if f == cutAnswer {
		_, _ = w.Write(body[:len(body)/2])
		_ = out.Flush()
		panic(http.ErrAbortHandler)
	}
	for at, n := 0, 1+len(body)/8; at < len(body); at += n {
		_, _ = w.Write(body[at:min(at+n, len(body))])
		_ = out.Flush()
		time.Sleep(20 * time.Millisecond)
	}
}

func (p *proxy) hang(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // only then the server notices that the client leaves
	var over <-chan time.Time
	if d := p.hangs.Load(); d > 0 {
		over = time.After(time.Duration(d))
	}
	select {
	case <-over:
	case <-r.Context().Done():
	case <-p.closing:
	}
}

// cutting is a body that breaks off.
type cutting struct {
	io.ReadCloser
	left int64
}

func (c *cutting) Read(b []byte) (int, error) {
	if c.left <= 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := c.ReadCloser.Read(b[:min(int64(len(b)), c.left)])
	c.left -= int64(n)
	return n, err
}

// bad applies every fault to some in a thousand requests, from one seed.
func bad(seed uint64, perMille map[fault]int) mode {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 77))
	return func(*http.Request) fault {
		mu.Lock()
		defer mu.Unlock()
		n := rng.IntN(1000)
		for f := none + 1; f < faults; f++ {
			if n -= perMille[f]; n < 0 {
				return f
			}
		}
		return none
	}
}

func puts(r *http.Request) bool {
	return r.Method == http.MethodPut && !strings.Contains(r.URL.RawQuery, "restype")
}

// putsBlob leaves out the objects that a late start makes, such as the store's id.
func putsBlob(r *http.Request) bool { return puts(r) && strings.HasSuffix(r.URL.Path, ".log") }

// laneOf returns the lane of a blob's name, which ends in six digits and .log.
func laneOf(path string) int {
	digits, ok := strings.CutSuffix(path, ".log")
	if n, err := strconv.Atoi(digits[max(0, len(digits)-6):]); ok && err == nil && n >= 0 {
		return n / 10_000
	}
	return 0
}
