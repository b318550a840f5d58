// Package httpsource accepts log records over HTTP and passes them on as
// [record.Request] values: POST or PUT /ingest/{service} and /ingest.
//
// A request runs through stages, one file each. body.go reads the body off the wire,
// within limits and no slower than a minimum rate. Package blobtail/source/body
// decompresses it, finds the records and makes canonical lines of them. build.go cuts
// the body into parts, gives each part its identity and hands it to the [Accepter].
// answer.go reports the outcome. limits.go counts the bytes that all requests hold
// together, memory.go keeps some of their memory for the next.
//
// A protocol is one file. It finds the records of a body and answers the request: see
// the type protocol. native.go is that of this project, and protocol.go lists the
// routes.
//
// The memory of a request is free again as soon as its parts are appended; only then
// does it wait for them to become durable. An invalid record is answered with its
// number and kept as a record of the service _rejected. The package knows neither the
// log nor the stores, and listens on nothing: see [NewServer].
package httpsource

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"blobtail/record"
	"blobtail/source/body"
)

// An Accepter appends requests to the log. Any number of goroutines may call Accept.
// It copies the parts that it keeps, so the request may be reused after it has
// returned. The source distinguishes [record.ErrFull], [record.ErrUnheld] and
// [record.ErrKeyReused]; any other error means that the request was not accepted and
// may be sent again.
type Accepter interface {
	Accept(ctx context.Context, r *record.Request) (record.Receipt, error)
}

// Dedupe is the way in which a repeated request is recognised.
type Dedupe string

const (
	// DedupeBody recognises a request by its Idempotency-Key or, without one, by its
	// body and the address it came from, if its records have their own times. The zero
	// value is the same.
	DedupeBody Dedupe = "body"
	// DedupeKey recognises a request by its Idempotency-Key only.
	DedupeKey Dedupe = "key"
	// DedupeOff ignores keys and bodies: every request is a new one.
	DedupeOff Dedupe = "off"
)

// Options are the settings of a [Source]. Only Accept must be set.
type Options struct {
	// Accept appends the requests.
	Accept Accepter
	// Dedupe is the way in which a repeated request is recognised. Empty: DedupeBody.
	Dedupe Dedupe
	// Ready returns the reason that nothing can be accepted now. Nil: always ready.
	Ready func() error
	// Log is the ingester's own log. The zero value writes nothing.
	Log zerolog.Logger
	// Metrics registers the counters. Nil: they are not registered.
	Metrics prometheus.Registerer
	// Now is the clock of arrival. Nil: time.Now.
	Now func() time.Time
	// MaxInFlight is how many bytes all requests may hold together. 0: 256 MiB.
	MaxInFlight int64
	// Patience is how long a request is held back before it is answered 429,
	// because many clients drop refused records. 0: 5 s.
	Patience time.Duration
	// ReadGrace is how long a body of any size may take, and the longest silence in it
	// once 4 KiB have come (before, it is 5 s, if that is less). A longer body must
	// have 1 KiB a second. 0: 30 s.
	ReadGrace time.Duration
}

// Source is the HTTP source, an [http.Handler]. Its methods may be called by any
// number of goroutines.
type Source struct {
	accept    Accepter
	dedupe    Dedupe
	ready     func() error
	now       func() time.Time
	patience  time.Duration
	readGrace time.Duration
	log       zerolog.Logger

	mux      *http.ServeMux
	unknown  http.HandlerFunc // for paths without a route
	budget   *budget
	metrics  *metrics
	unpack   *body.Decompressor
	buffers  buffers
	builders builders
	rejects  sampler // keeps bad input from flooding our own log
	failures sampler
	pressure pressure
}

// New makes a Source. It starts nothing.
func New(o Options) *Source {
	s := &Source{
		accept:    o.Accept,
		dedupe:    o.Dedupe,
		ready:     o.Ready,
		now:       o.Now,
		patience:  o.Patience,
		readGrace: o.ReadGrace,
		log:       o.Log,
		mux:       http.NewServeMux(),
		unpack:    body.NewDecompressor(2 * runtime.GOMAXPROCS(0)),
	}
	if s.dedupe == "" {
		s.dedupe = DedupeBody
	}
	if s.ready == nil {
		s.ready = func() error { return nil }
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.patience == 0 {
		s.patience = 5 * time.Second
	}
	if s.readGrace == 0 {
		s.readGrace = 30 * time.Second
	}
	if o.MaxInFlight == 0 {
		o.MaxInFlight = 256 << 20
	}
	s.budget = newBudget(o.MaxInFlight)
	s.metrics = newMetrics(o.Metrics, s.budget)
	s.routes()
	return s
}

// ServeHTTP answers the paths of this source and 404 for any other.
func (s *Source) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// First of all, because net/http itself reads the rest of a body, and would wait
	// for it. Without a connection there is no deadline.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.readGrace))
	// The mux would redirect such a path, and a client that does not follow treats the
	// redirect as success.
	if p := r.URL.EscapedPath(); p != cleanPath(p) {
		s.unknown(w, r)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// cleanPath cleans a path like the mux.
func cleanPath(p string) string {
	if !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	clean := path.Clean(p)
	if strings.HasSuffix(p, "/") && clean != "/" {
		clean += "/"
	}
	return clean
}

// take reads the body of a request of any protocol, decodes it, appends its parts to
// the log and waits until they are durable. The error is a *refusal, or that of r's
// context when the client has gone.
func (s *Source) take(w http.ResponseWriter, r *http.Request, in intake) (answer, error) {
	if err := s.ready(); err != nil {
		return answer{}, &refusal{status: http.StatusServiceUnavailable, retry: true,
			reason: fmt.Sprintf("not ready: %v; send it again later", err)}
	}
	enc, err := body.ParseEncoding(r.Header.Values("Content-Encoding"))
	if err != nil {
		return answer{}, err
	}
	key, err := keyOf(r.Header)
	if err != nil {
		return answer{}, err
	}
	stored, err := ackOf(r.Header)
	if err != nil {
		return answer{}, err
	}
	a, receipts, err := s.appendAll(w, r, in, enc, key)
	if err != nil {
		return answer{}, s.explain(r, err)
	}
	for _, receipt := range receipts {
		if err := receipt.Wait(r.Context(), stored); err != nil {
			return answer{}, s.explain(r, err)
		}
	}
	return a, nil
}

// appendAll does everything from reading the body to appending its parts to the log.
// All memory that the request needs is allocated and released in here.
func (s *Source) appendAll(w http.ResponseWriter, r *http.Request, in intake, enc body.Encoding, key string) (answer, []record.Receipt, error) {
	if r.ContentLength > enc.WireLimit() {
		return answer{}, nil, enc.TooLarge()
	}
	h, err := s.budget.enter(r.Context(), entrance, s.patience)
	if err != nil {
		return answer{}, nil, err
	}
	defer h.release()
	p := newPace(w, s.readGrace) // only now: waiting for admission is not slowness of the client
	wire, err := s.readWire(r, p, enc, h)
	defer func() { s.buffers.put(wire) }()
	if err != nil {
		return answer{}, nil, err
	}
	p.done()
	s.metrics.wire.Add(float64(len(wire)))
	decoded := wire
	if enc != body.Plain && len(wire) > 0 {
		decoded, err = s.decompress(r.Context(), enc, wire, h)
		defer func() { s.buffers.put(decoded) }()
		if err != nil {
			return answer{}, nil, err
		}
	}
	s.metrics.decoded.Add(float64(len(decoded)))
	if enc == body.Plain && in.sniffed {
		if err := body.LooksCompressed(decoded); err != nil {
			return answer{}, nil, err
		}
	}
	if err := body.LooksUTF16(decoded); err != nil {
		return answer{}, nil, err
	}

	b := s.builders.get()
	defer s.builders.put(b)
	id := s.identify(r, in, key, b.Gatherer)
	if err := b.begin(r.Context(), s, h, decoded, id); err != nil {
		return answer{}, nil, err
	}
	in.decode(decoded, b)
	err = b.end()
	return b.answer, b.receipts, err
}

// decompress decodes wire into buffers that h holds.
func (s *Source) decompress(ctx context.Context, enc body.Encoding, wire []byte, h *hold) ([]byte, error) {
	held := h.n // the wire's
	return s.unpack.Decompress(ctx, enc, wire, func(buf []byte, n int) ([]byte, error) {
		if err := h.atLeast(held + int64(sizeFor(n))); err != nil {
			return nil, err
		}
		return s.buffers.grow(buf, n), nil
	})
}

// identify sets the names of a request and of its records.
func (s *Source) identify(r *http.Request, in intake, key string, g *body.Gatherer) identity {
	now := s.now()
	g.Defaults = record.Defaults{Service: in.service, Time: now.UnixNano()}
	g.Latest, g.Clock = now.Add(maxAhead).UnixNano(), "this host's clock"
	g.Source = "http " + r.Method + " " + body.Short(r.URL.Path)
	id := identity{path: r.URL.Path, dedupe: s.dedupe, sender: senderOf(r)}
	if s.dedupe == DedupeOff {
		return id
	}
	id.key, g.Keyed = key, key != ""
	// If the time of a key is too far ahead, all its records would be rejected.
	if ms, ok := record.KeyTime(key); ok && ms <= g.Latest/int64(time.Millisecond) {
		g.Defaults.Time = ms * int64(time.Millisecond)
	}
	return id
}

// senderOf is the address that a request came from, without the port.
func senderOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// ackOf reports whether to answer only when the records are in a blob. An unknown
// word is refused: a typing error must not weaken the promise.
func ackOf(h http.Header) (stored bool, err error) {
	for _, v := range h.Values("Ack") {
		switch v = strings.TrimSpace(v); {
		case strings.EqualFold(v, "stored"):
			stored = true
		case v != "":
			return false, refuse(http.StatusBadRequest,
				"header Ack: %s is not known; send stored to be answered when the records are in a blob, or no such header to be answered when they are in the log", body.Short(v))
		}
	}
	return stored, nil
}

// keyOf returns the Idempotency-Key of a request, "" when it has none.
func keyOf(h http.Header) (string, error) {
	values := h.Values("Idempotency-Key")
	if len(values) == 0 {
		return "", nil
	}
	key := strings.TrimSpace(values[0])
	bad := len(values) > 1 || key == "" || len(key) > maxKey
	for i := 0; i < len(key) && !bad; i++ {
		bad = key[i] < ' ' || key[i] > '~'
	}
	if bad {
		return "", refuse(http.StatusBadRequest,
			"header Idempotency-Key: want one value of 1 to %d printable ASCII characters, best a UUIDv7 or ULID", maxKey)
	}
	return key, nil
}
