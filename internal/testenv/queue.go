package testenv

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"time"
)

const (
	// atOnce is how many requests the emulator has at a time. It is one thread.
	atOnce = 8
	// wholeBody is the size up to which a body is read before its request gets a place:
	// the server notices that a sender leaves only when it has read all it sent.
	wholeBody = 16 << 20
)

// A queue stands before the emulator. The emulator works on every request that arrives,
// also if its sender has given up and tries again. On a busy machine the waiting ones can
// become so many that each sender gives up before its turn, and none gets an answer for
// minutes. In the queue a request ends with its sender.
type queue struct {
	places  chan struct{}
	forward http.Handler
}

// newQueue serves on a free port for one of the emulator's ports. Its queues share places.
func newQueue(port string, places chan struct{}) (own string, stop func() error, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: &queue{places, &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", "127.0.0.1:"+port },
		// Node closes idle connections after five seconds, and must not do so under a request.
		Transport:    &http.Transport{MaxIdleConnsPerHost: atOnce, IdleConnTimeout: 2 * time.Second, DisableCompression: true},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}}}
	go server.Serve(l)
	_, own, err = net.SplitHostPort(l.Addr().String())
	return own, server.Close, err
}

func (q *queue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength > 0 && r.ContentLength <= wholeBody {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	select {
	case q.places <- struct{}{}:
	case <-r.Context().Done():
		panic(http.ErrAbortHandler)
	}
	defer func() { <-q.places }()
	// The emulator does not notice that a sender leaves, so the place is taken until it ends.
	q.forward.ServeHTTP(w, r.WithContext(context.WithoutCancel(r.Context())))
}
