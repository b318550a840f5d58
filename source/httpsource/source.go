// Package httpsource accepts log records over HTTP and passes them on as
// [record.Request] values. A [Protocol] says which paths it has, how a body is read and how it
// is answered. The native one, POST or PUT /ingest/{service} and /ingest, is in native.go;
// those of stock shippers are packages of their own, given in [Options].
//
// A request runs through stages, one file each. guard.go admits its sender. body.go reads
// the body off the wire, within limits and no slower than a minimum rate. Package
// blobtail/source/body decompresses it, finds the records and makes canonical lines of
// them. build.go cuts the body into parts, gives each part its identity and hands it to the
// [body.Accepter]. stream.go does so for a body of any length while it comes. answer.go
// reports the outcome, and long.go writes an answer that is long. limits.go counts the bytes
// that all requests hold together, memory.go keeps some of their memory for the next.
//
// The memory of a request is free again as soon as its parts are appended; only then
// does it wait for them to become durable. An invalid record is answered with its
// number and kept as a record of the service _rejected. The package knows neither the
// log nor the stores, and listens on nothing: see [NewServer].
package httpsource

import (
	"cmp"
	"context"
	"errors"
	stdlog "log"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/count"
	"blobtail/record"
	"blobtail/record/ack"
	"blobtail/record/meaning"
	"blobtail/source/body"
)

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
	Accept body.Accepter
	// Dedupe is the way in which a repeated request is recognised. Empty: DedupeBody.
	Dedupe Dedupe
	// Ready returns the reason that nothing can be accepted now. Nil: always ready.
	Ready func() error
	// Probed returns the reason for which requests would be refused now, also by Accept, to
	// clients that ask before they send. Nil: Ready.
	Probed func() error
	// Protocols are those besides the native one. The first that has the path of a request
	// handles it.
	Protocols []Protocol
	// Guard admits the senders. Nil: everybody may send.
	Guard Guard
	// Allow is asked about each service of a body, after the sender of a guard. It returns the
	// reason why its records are rejected for now, "" if they are not. Nil: none are.
	Allow func(service string) (reason string)
	// Watch is told of each record of each body, by the goroutine of its request. Nil: nobody is.
	Watch body.Watch
	// Ships says that the log is shipped to the store. Without it a header Ack: shipped is refused.
	Ships bool
	// Away is the reason why a request for services cannot reach the level that its sender asks for, or
	// a stricter one of theirs. Nothing of it is kept then. Nil: there never is one.
	Away func(services []string, asked ack.Level) error
	// Fields has names of fields that are tried before the known ones. A request may name others
	// by parameters. Nil: there are none.
	Fields *meaning.Mapping
	// Admin is the address of the listener for operators, for the answer to a request that
	// belongs there. Empty: there is none.
	Admin string
	// Log is the ingester's own log. The zero value writes nothing.
	Log zerolog.Logger
	// Metrics registers the counters. Nil: they are not registered.
	Metrics *count.Registry
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
	o         Options
	protocols []Protocol
	budget    *budget
	metrics   *metrics
	unpack    *body.Decompressor
	inflate   *body.Decompressor // for small bodies, which do not wait for large ones
	buffers   buffers
	builders  sync.Pool      // of *builder
	rejects   zerolog.Logger // the log, for events that clients cause
	failures  zerolog.Logger
	unused    zerolog.Logger            // of parameters: a shipper sends them with each request
	refused   atomic.Pointer[time.Time] // when the first request in a row was refused
}

// New makes a Source. It starts nothing.
func New(o Options) *Source {
	if o.Ready == nil {
		o.Ready = func() error { return nil }
	}
	if o.Probed == nil {
		o.Probed = o.Ready
	}
	if o.Away == nil {
		o.Away = func([]string, ack.Level) error { return nil }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Dedupe = cmp.Or(o.Dedupe, DedupeBody)
	o.Patience = cmp.Or(o.Patience, 5*time.Second)
	o.ReadGrace = cmp.Or(o.ReadGrace, 30*time.Second)
	b := newBudget(cmp.Or(o.MaxInFlight, 256<<20))
	return &Source{
		o:         o,
		protocols: o.protocols(),
		budget:    b,
		metrics:   newMetrics(o.Metrics, b),
		buffers:   newBuffers(),
		unpack:    body.NewDecompressor(2 * runtime.GOMAXPROCS(0)),
		inflate:   body.NewDecompressor(2 * runtime.GOMAXPROCS(0)),
		builders:  sync.Pool{New: func() any { return &builder{Gatherer: body.NewGatherer()} }},
		rejects:   o.Log.Sample(&zerolog.BurstSampler{Burst: 1, Period: time.Second}),
		failures:  o.Log.Sample(&zerolog.BurstSampler{Burst: 1, Period: time.Second}),
		unused:    o.Log.Sample(&zerolog.BurstSampler{Burst: 1, Period: time.Hour}),
	}
}

// ServeHTTP answers the paths of this source and 404 for any other.
func (s *Source) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// First of all, because net/http itself reads the rest of a body, and would wait
	// for it. Without a connection there is no deadline.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.o.ReadGrace))
	begun := time.Now()
	name, x := s.exchange(r)
	counts, err := s.take(w, r, x)
	refused := s.explain(r, err)
	switch {
	case refused == nil:
		s.refused.Store(nil)
	case retry(refused):
		refused.After = cmp.Or(refused.After, s.retryAfter())
	}
	if refused == nil && counts.asked > ack.Disk {
		w.Header().Set("Ack", counts.reached.String())
	}
	if refused != nil {
		refused.Header(w.Header())
		if refused.HangUp {
			w.Header().Set("Connection", "close")
		}
	}
	status := s.respond(w, x, &counts, refused)
	s.metrics.requests.With(strconv.Itoa(status), name).Inc()
	s.metrics.seconds.Observe(time.Since(begun).Seconds())
}

// respond sends the answer of a protocol, and returns its status. It writes the whole answer
// at once. It is at most a few KiB, which a socket accepts even if the client does not read:
// there is no write deadline, because waiting for a blob may rightly take minutes. The
// pieces of a [LongReply] have deadlines.
func (s *Source) respond(w http.ResponseWriter, x Exchange, counts *Result, refused *Refusal) (status int) {
	status, text := x.Reply(w.Header(), counts, refused)
	rest := restOf(x)
	if status != http.StatusNoContent && rest == nil {
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	}
	w.WriteHeader(status)
	// The client may have gone; then nothing is left to do.
	_, _ = w.Write(text)
	if rest != nil {
		writeRest(w, rest, s.o.ReadGrace)
	}
	return status
}

// take reads the body of a request, decodes it, appends its parts to the log and waits
// until they are durable.
func (s *Source) take(w http.ResponseWriter, r *http.Request, x Exchange) (Result, error) {
	in, unread := x.Open() // before anything else, because Reply may need it
	who, err := s.admit(r)
	if err = cmp.Or(err, unread); err != nil {
		return Result{}, err
	}
	if !in.Probe {
		if err := cmp.Or(s.ask(&in, who, r.Header), in.askFields(r, s.o.Fields)); err != nil {
			return Result{}, err
		}
		if !in.notes {
			s.warnFields(r)
		}
	}
	ready := s.o.Ready
	if in.Probe {
		ready = s.o.Probed
	}
	if err := ready(); err != nil {
		return Result{}, Refuse(http.StatusServiceUnavailable, "not ready: %v; send it again later", err)
	}
	if in.Probe {
		return Result{}, nil
	}
	if in.Stream != nil {
		a, err := s.stream(w, r, in, who)
		return a, cmp.Or(err, a.forbidden)
	}
	a, receipts, err := s.appendAll(w, r, in, who)
	if err == nil {
		err = a.await(r.Context(), receipts, in.ack)
	}
	return a, cmp.Or(err, a.forbidden)
}

// await waits for all parts of a body, at the strictest level that any of them has, or the sender. It
// waits at once for those in the store, some hundred at a time: batches are cut once a second, and parts
// may be of different hours.
func (r *Result) await(ctx context.Context, receipts []record.Receipt, level ack.Level) error {
	for i := range receipts {
		level = max(level, receipts[i].Ack)
	}
	r.asked, r.reached = max(r.asked, level), level
	most := min(256, len(receipts))
	ended := make(chan error, most)
	for i := range len(receipts) + most {
		if i >= most {
			switch err := <-ended; {
			case errors.Is(err, ack.ErrDisk):
				r.reached = ack.Disk
			case err != nil:
				return err
			}
		}
		switch {
		case i >= len(receipts):
		case level > ack.Disk:
			go func() { ended <- receipts[i].Reached(ctx, level) }()
		default:
			ended <- receipts[i].Reached(ctx, level)
		}
	}
	return nil
}

// appendAll does everything from reading the body to appending its parts to the log.
// All memory that the request needs is allocated and released in here.
func (s *Source) appendAll(w http.ResponseWriter, r *http.Request, in Intake, who Sender) (Result, []record.Receipt, error) {
	outer := cmp.Or(in.Form.Encoding, in.Form.Inner)
	if r.ContentLength > outer.WireLimit() {
		return Result{}, nil, outer.TooLarge()
	}
	if err := open(r, who, in.Service, max(0, r.ContentLength), s.o.Patience); err != nil {
		return Result{}, nil, err
	}
	h, err := s.budget.enter(r.Context(), s.o.Patience)
	if err != nil {
		return Result{}, nil, err
	}
	defer h.release()
	if r.ContentLength > smallBody {
		if err := h.leave(r.Context(), s.o.Patience); err != nil {
			return Result{}, nil, err
		}
	}
	p := newPace(w, s.o.ReadGrace) // only now: waiting for admission is not slowness of the client
	text, err := s.readWire(r, p, outer, h)
	defer func() { s.buffers.put(text) }()
	if err != nil {
		return Result{}, nil, err
	}
	p.done()
	s.metrics.wire.Add(int64(len(text)))
	for _, enc := range [...]body.Encoding{in.Form.Encoding, in.Form.Inner} {
		if enc = enc.Of(text); enc == body.Plain || len(text) == 0 {
			continue
		}
		if int64(len(text)) > enc.WireLimit() {
			return Result{}, nil, enc.TooLarge()
		}
		decoded, err := s.decompress(r.Context(), enc, text, h)
		err = s.diagnose(r, in, enc, text, nil, err)
		s.buffers.put(text)
		if text = decoded; err != nil {
			return Result{}, nil, err
		}
	}
	s.metrics.decoded.Add(int64(len(text)))
	if who != nil {
		who.Charge(int64(len(text)) - max(0, r.ContentLength))
	}
	return s.build(r, in, who, h, text)
}

// build appends the parts of a decoded body.
func (s *Source) build(r *http.Request, in Intake, who Sender, h *hold, text []byte) (Result, []record.Receipt, error) {
	b := s.builders.Get().(*builder)
	defer func() {
		b.forget()
		s.builders.Put(b)
	}()
	if err := b.begin(s, r, in, who, h, text); err != nil {
		return Result{}, nil, err
	}
	b.fits = func() error {
		made, err := s.fits(r, in, who, text)
		if err != nil {
			b.made = made
		}
		return err
	}
	if err := in.Form.Decode(text, b.Gatherer); err != nil {
		return Result{}, nil, s.diagnose(r, in, body.Plain, text, nil, err)
	}
	err := b.end()
	if more := b.made - fairLines*len(text) - freeLines; who != nil && more > 0 {
		who.Charge(int64(more))
	}
	err = s.diagnose(r, in, body.Plain, text, &b.answer, err)
	return b.answer, b.receipts, err
}

// decompress decodes wire into buffers that h holds. A small body that becomes a large one begins
// again: it waits for room while it has no place among those that are decoded.
func (s *Source) decompress(ctx context.Context, enc body.Encoding, wire []byte, h *hold) ([]byte, error) {
	held := h.n // the wire's
	unpack := s.unpack
	if h.small {
		unpack = s.inflate
	}
	outgrown := false
	decoded, err := unpack.Decompress(ctx, enc, wire, func(buf []byte, n int) ([]byte, error) {
		if outgrown = h.small && n > smallBody+body.Spare; outgrown {
			return buf, errNoMemory()
		}
		if err := h.atLeast(held + int64(sizeFor(n))); err != nil {
			return buf, err
		}
		return s.buffers.grow(buf, n), nil
	})
	if !outgrown {
		return decoded, err
	}
	s.buffers.put(decoded)
	if err := h.leave(ctx, s.o.Patience); err != nil {
		return nil, err
	}
	return s.decompress(ctx, enc, wire, h)
}

// NewServer makes a server for h with the limits that a listener open to clients
// needs. Bodies have their own pace, see [Options]. Answers have no time limit:
// waiting for a blob may take minutes. The caller sets no address; it listens, serves
// and shuts down.
func NewServer(h http.Handler, log zerolog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       90 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          stdlog.New(log.With().Str("level", "warn").Logger(), "", 0),
	}
}
