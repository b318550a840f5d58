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
		Transport:    &http.Transport{MaxIdleConnsPerHost: atOnce, IdleConnTimeout: 2 * time.Second, DisableCompression: true},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := takeBody(r); err != nil || !q.enter(r.Context()) {
			panic(http.ErrAbortHandler) // its sender has left
		}
		defer func() { <-q.places }()
		// The emulator does not notice that a sender leaves: its place is taken until it ends.
		// A context without cancel would let the proxy watch the sender's connection instead.
		ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
		defer cancel()
		forward.ServeHTTP(w, r.WithContext(ctx))
	})
}

// enter waits for a place. It returns false if the sender leaves first.
func (q *queue) enter(sender context.Context) bool {
	select {
	case q.places <- struct{}{}:
		return true
	case <-sender.Done():
		return false
	}
}

// takeBody reads the body of a request, unless it is very long.
func takeBody(r *http.Request) error {
	if r.ContentLength <= 0 || r.ContentLength > wholeBody {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return err
}
