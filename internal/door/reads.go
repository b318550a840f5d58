package door

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/access"
	"blobtail/internal/budget"
	"blobtail/internal/count"
)

// A Route is the kind of the requests to some paths. Its name is a label of the metrics, so
// it must not have parts that clients choose.
type Route struct {
	Name string
	Kind Kind
}

// The defaults of [ReadsOptions].
const (
	DefaultWaiting  = 96
	DefaultTails    = 200
	DefaultPatience = 10 * time.Second
	DefaultDeadline = 2 * time.Minute
	leastQueries    = 32
)

// DefaultQueries is how many queries run at once: four for each CPU, at least 32. One client has
// half of them. The panels of a dashboard share requests if they run at once, and queries share
// decoders and memory.
func DefaultQueries() int { return max(leastQueries, 4*runtime.GOMAXPROCS(0)) }

// ReadsOptions are the doors of [Reads]. Guard and Route must be set; all else may be zero.
type ReadsOptions struct {
	// Guard allows or refuses requests.
	Guard *Guard
	// Route tells the route of a request by its path.
	Route func(path string) Route

	Queries  int           // at once; 0: DefaultQueries
	Waiting  int           // queries that wait for others to end; 0: DefaultWaiting
	Tails    int           // at once; 0: DefaultTails
	Patience time.Duration // of a query that waits; 0: DefaultPatience
	Deadline time.Duration // for which a query is worked for; 0: DefaultDeadline
	Made     budget.Limits // for values that queries and tails make and hold
	Recheck  time.Duration // how often the token of a tail is looked up again; 0: 10 s

	// Metrics registers the numbers. Nil: they are not registered.
	Metrics *count.Registry
	Log     zerolog.Logger
}

// Reads are the doors of a server that people read from. Its methods may be called at once.
type Reads struct {
	o       ReadsOptions
	guard   *Guard
	queries *gate
	tails   *gate
	made    *budget.Pool
	open    connections
	metrics *metrics
	coders  coders
}

// NewReads returns Reads. It opens nothing.
func NewReads(o ReadsOptions) *Reads {
	o.Queries = cmp.Or(o.Queries, DefaultQueries())
	o.Waiting = cmp.Or(o.Waiting, DefaultWaiting)
	o.Tails = cmp.Or(o.Tails, DefaultTails)
	o.Patience = cmp.Or(o.Patience, DefaultPatience)
	o.Deadline = cmp.Or(o.Deadline, DefaultDeadline)
	o.Recheck = cmp.Or(o.Recheck, 10*time.Second)
	s := &Reads{
		o: o, guard: o.Guard,
		queries: newGate(o.Queries, o.Waiting, o.Patience), tails: newGate(o.Tails, 0, 0), made: budget.NewPool(o.Made),
	}
	s.open.all = make(map[*connection]struct{})
	s.metrics = newMetrics(s)
	return s
}

// Deadline is the time for which a query is worked for.
func (s *Reads) Deadline() time.Duration { return s.o.Deadline }

// A Read is a read of the store for a request.
type Read struct {
	Services []string // that were read
	From, To int64    // the range in ns since 1970; the least and the largest int64 are no bounds
	Bytes    int64    // fetched from the store
	Records  int64
	// Incomplete says that records are missing.
	Incomplete bool
}

// Notes are the reads of one request. Several goroutines may add to them.
type Notes struct {
	mu  sync.Mutex
	any bool
	sum Read
}

// Add adds a read. It returns before the request is answered, or the read does not count.
func (n *Notes) Add(one Read) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := &n.sum
	s.Services = append(s.Services, one.Services...)
	slices.Sort(s.Services)
	s.Services = slices.Compact(s.Services)
	if !n.any {
		s.From, s.To = one.From, one.To
	}
	n.any = true
	s.From, s.To = min(s.From, one.From), max(s.To, one.To)
	s.Bytes += one.Bytes
	s.Records += one.Records
	s.Incomplete = s.Incomplete || one.Incomplete
}

// read returns the sum of all reads; ok is false if there was none.
func (n *Notes) read() (sum Read, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.sum, n.any
}

// visit is the state of one request.
type visit struct {
	reads     *Reads
	route     Route
	started   time.Time
	token     *access.Token
	ends      time.Time // of the session; zero: the request has none
	notes     Notes
	connected context.Context // ends when the client goes away
	gone      bool            // it went away before the handler had its answer
	panicked  bool
	ended     error // the reason for which the server ended a query; nil: it did not
}

// key is the key of a visit in the context of a request.
type key struct{}

// client is the name of the client that a request counts for: its token, or the address that it
// comes from.
func (v *visit) client(r *http.Request) string {
	if v.token != nil {
		return v.token.ID
	}
	return origin(r.RemoteAddr)
}

// origin is the address of a client without its port. A host of IPv6 has as many addresses as it
// likes in its network of 64 bits, which stands for them.
func origin(address string) string {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return address
	}
	ip := at.Addr().Unmap()
	if ip.Is4() {
		return ip.String()
	}
	const network = 64
	return netip.PrefixFrom(ip, network).Masked().String()
}

// Token returns the token of a request; nil: no token is needed.
func Token(r *http.Request) *access.Token {
	if v, ok := r.Context().Value(key{}).(*visit); ok {
		return v.token
	}
	return nil
}

// SessionEnd returns the end of the session that a request belongs to. It is zero for a request
// that shows its token itself.
func SessionEnd(r *http.Request) time.Time {
	if v, ok := r.Context().Value(key{}).(*visit); ok {
		return v.ends
	}
	return time.Time{}
}

// Note returns the notes of a request. Without a guard they are lost.
func Note(r *http.Request) *Notes { return NoteOf(r.Context()) }

// NoteOf returns the notes of the request to which a context belongs.
func NoteOf(ctx context.Context) *Notes {
	if v, ok := ctx.Value(key{}).(*visit); ok {
		return &v.notes
	}
	return new(Notes)
}

// Wrap puts the doors in front of handlers.
func (s *Reads) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &visit{reads: s, route: s.o.Route(r.URL.Path), started: time.Now(), connected: r.Context()}
		r = r.WithContext(context.WithValue(r.Context(), key{}, v))
		a := newAnswer(w, r, v)
		s.metrics.inFlight.Add(1)
		defer v.end(a, r)
		defer a.close()
		defer v.recovered(a, r)
		defer func() { v.gone = v.connected.Err() != nil }() // before a small answer is sent: its client may hang up with it in hand
		s.answer(a, r, v, next)
	})
}

// answer leads a request through the doors.
func (s *Reads) answer(a *answer, r *http.Request, v *visit, next http.Handler) {
	for _, door := range []func(*answer, *http.Request, *visit) *Refusal{s.page, s.token, s.body} {
		if f := door(a, r, v); f != nil {
			a.refuse(r, f)
			return
		}
		if a.status != 0 {
			return // a question of the browser, which is answered
		}
	}
	r.Header.Del("X-Scope-OrgID") // the token names the client
	switch v.route.Kind {
	case Query:
		s.query(a, r, v, next)
	case Tail:
		s.tail(a, r, v, next)
	default:
		next.ServeHTTP(a, r)
	}
}

// query answers a request that needs a place for a time.
func (s *Reads) query(a *answer, r *http.Request, v *visit, next http.Handler) {
	place, err := s.queries.enter(r.Context(), v.client(r))
	if err != nil {
		a.refuse(r, s.crowded(err, "too many queries at once"))
		return
	}
	defer place.leave()
	q := newQuery(r.Context(), place, s.o.Deadline, a.rc)
	a.query = q
	defer func() { v.ended, a.query = q.finish(), nil }()
	s.budgeted(a, r.WithContext(q.ctx), next)
	if a.status == 0 && a.late() {
		a.refuse(r, tooLate(s.o.Deadline))
	}
}

// page refuses requests that no page may make. It adds the headers by which a browser gives the
// answer to a page of the allowed site, and answers the question that a browser sends before.
func (s *Reads) page(a *answer, r *http.Request, v *visit) *Refusal {
	if v.route.Kind == Probe {
		return nil
	}
	if f := s.guard.host(r); f != nil || v.route.Kind == Public {
		return f
	}
	cors := s.guard.o.CORS
	if cors != "" {
		a.Header().Add("Vary", "Origin")
	}
	if !s.guard.allows(r) {
		return s.guard.origin(r)
	}
	h := a.Header()
	h.Set("Access-Control-Allow-Origin", cors)
	h.Set("Access-Control-Expose-Headers", "Retry-After, WWW-Authenticate, Blobtail-Complete, Blobtail-More, Blobtail-Problems, Blobtail-Warnings, Blobtail-Absent")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return nil
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Last-Event-ID, X-Loki-Response-Encoding-Flags, X-Query-Tags")
	h.Set("Access-Control-Max-Age", "600")
	a.WriteHeader(http.StatusNoContent)
	return nil
}

// token refuses requests without a token that is valid and has the right of their kind. The answer to
// a session is for its browser alone: caches know no cookie as they know Authorization.
func (s *Reads) token(a *answer, r *http.Request, v *visit) (f *Refusal) {
	if v.token, v.ends, f = s.guard.admit(r, v.route.Kind); !v.ends.IsZero() {
		a.Header().Set("Cache-Control", "no-store")
	}
	return f
}

const (
	maxBody  = 1 << 20
	bodyWait = 30 * time.Second
)

// body reads the body of a request, so that a client that sends it slowly keeps nothing busy. It
// leaves that to handlers that ask for the token themselves.
func (s *Reads) body(a *answer, r *http.Request, v *visit) *Refusal {
	if r.Body == nil || r.Body == http.NoBody || v.route.Kind == Asks || v.route.Kind == Public {
		return nil
	}
	_ = a.rc.SetReadDeadline(time.Now().Add(bodyWait)) // a test's recorder has none
	text, err := io.ReadAll(http.MaxBytesReader(a.w, r.Body, maxBody))
	_ = a.rc.SetReadDeadline(time.Time{})
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		return &Refusal{Status: http.StatusRequestEntityTooLarge, Title: "Body too long", Reason: "the body is longer than 1 MiB"}
	}
	if err != nil {
		return &Refusal{Status: http.StatusRequestTimeout, Title: "Body not read", Reason: "the body did not come whole within 30 s"}
	}
	r.Body = io.NopCloser(bytes.NewReader(text))
	return nil
}

// crowded is the refusal of a request for which there is no place. It is counted.
func (s *Reads) crowded(err error, reason string) *Refusal {
	if !errors.Is(err, errCrowded) {
		return &Refusal{Status: http.StatusServiceUnavailable, Title: "Not answered", Reason: err.Error(), Cause: err}
	}
	f := &Refusal{Status: http.StatusTooManyRequests, Code: "crowded", Title: "Too many queries", Reason: reason, After: time.Second}
	s.guard.o.Refused.With(f.Code).Inc()
	return f
}

// tooLate is the refusal of a query that has taken too long.
func tooLate(limit time.Duration) *Refusal {
	f := Refuse(http.StatusGatewayTimeout, "the query took longer than %s; ask for a shorter range, for fewer services, or for a level", limit)
	f.Title, f.Words = "Too slow", TooSlow
	return f
}

// TooSlow are the words by which clients of Loki know that a query takes too long.
const TooSlow = "request timed out, decrease the duration of the request or add more label matchers (prefer exact match over regex match) to reduce the amount of data processed"

// refuse answers with a refusal, in the form of the protocol.
func (a *answer) refuse(r *http.Request, f *Refusal) {
	h := a.Header()
	h.Del("Content-Length")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	a.v.reads.guard.refuse(a, r, f)
}

// budgeted has a handler answer with a budget.
func (s *Reads) budgeted(a *answer, r *http.Request, next http.Handler) {
	ctx, made := s.made.Begin(r.Context())
	defer made.End()
	next.ServeHTTP(a, r.WithContext(ctx))
}
