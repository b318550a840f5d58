package testenv

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"time"
)

// atOnce is how many requests the emulator has at a time. It is one thread.
const atOnce = 8

// A queue stands before the emulator. The emulator works on every request that arrives,
// also if its sender has given up and tries again. On a busy machine the waiting ones can
// become so many that each sender gives up before its turn, and none gets an answer for
// minutes. In the queue a request ends with its sender.
//
// A request has a place only while the emulator works on it. Its body is read before, and
// its answer is passed on afterwards: a sender or a reader that is stopped holds no place.
type queue struct {
	places  chan struct{} // one for each request that the emulator has
	ports   []string      // of the queue, in the order of the emulator's
	servers []*http.Server
}

// newQueue serves on a free port for each of the emulator's ports.
func newQueue(ports ...string) (*queue, error) {
	q := &queue{places: make(chan struct{}, atOnce)}
	for _, port := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			q.stop()
			return nil, err
		}
		server := &http.Server{Handler: q.before(port)}
		q.servers = append(q.servers, server)
		q.ports = append(q.ports, strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
		go server.Serve(l)
	}
	return q, nil
}

func (q *queue) stop() {
	for _, s := range q.servers {
		s.Close()
	}
}

// before handles requests to a port of the emulator. If one cannot be forwarded, it cuts the
// connection, as the emulator would.
func (q *queue) before(port string) http.Handler {
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", "127.0.0.1:"+port },
		// Node closes idle connections after five seconds, and must not do so under a request.
		Transport:    inTurn{q, &http.Transport{MaxIdleConnsPerHost: atOnce, IdleConnTimeout: 2 * time.Second, DisableCompression: true}},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The server notices that a sender leaves only when it has read all it sent.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		if len(body) > 0 {
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		forward.ServeHTTP(w, r)
	})
}

// inTurn sends requests that have a place.
type inTurn struct {
	q        *queue
	emulator http.RoundTripper
}

// RoundTrip waits for a place and keeps it until the whole answer is there.
func (t inTurn) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case t.q.places <- struct{}{}:
		defer func() { <-t.q.places }()
	case <-r.Context().Done():
		return nil, r.Context().Err() // its sender has left
	}
	// The emulator does not notice that a sender leaves: its place is taken until it ends.
	resp, err := t.emulator.RoundTrip(r.WithContext(context.WithoutCancel(r.Context())))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(answer))
	return resp, nil
}
