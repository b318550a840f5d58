// Package httpguard stands in front of the handlers of a server that people read from.
//
// Make a [Guard] with [New], put [Guard.Wrap] around the handlers, and serve it with
// [NewServer]. Each request passes these doors, in this order:
//
//	host      the address of the listener, a name of this host, or a name of the operator
//	origin    no page of another site asks with the rights of the reader's browser
//	token     from the header; handlers get it by [Token]
//	body      read up to a limit, within a time
//	gate      so many queries at once; the next ones wait a little
//	deadline  a query has a time; tails have none
//	budget    a query, or a tail, makes so many bytes at once (package budget)
//
// Behind them the guard compresses the answer, bounds each write, and answers for handlers
// that panic or run out of time. The reads of a handler are told by [Notes.Add]. They are in
// the line of the log that each query gets, and in the metrics ([Guard.Metrics]).
//
// The guard knows no record and no protocol: [Options.Route] tells it what a path is.
package httpguard

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/access"
	"blobtail/internal/budget"
	"blobtail/internal/doors"
)

// A Kind says which doors a request passes.
type Kind int

// The kinds of requests. All but Probe need a token if there are any.
const (
	Query    Kind = iota // reads the store: gate, deadline, a line in the log
	Tail                 // goes on until its client leaves: a gate of its own, no deadline
	Light                // costs nothing: no gate
	Operator             // for programs that watch the server: this host, or the role operator
	Probe                // for those that restart the server: no token, any host
)

// A Route is the kind of the requests to some paths. Its name is a label of the metrics, so
// it must not have parts that clients choose.
type Route struct {
	Name string
	Kind Kind
}

// The defaults of [Options].
const (
	DefaultWaiting  = 32
	DefaultTails    = 100
	DefaultPatience = 10 * time.Second
	DefaultDeadline = 2 * time.Minute
	leastQueries    = 16
)

// DefaultQueries is how many queries run at once: two for each CPU, at least 16. The panels of
// a dashboard share requests if they run at once, and queries share decoders and memory.
func DefaultQueries() int { return max(leastQueries, 2*runtime.GOMAXPROCS(0)) }

// Options are the doors of a [Guard]. Route must be set; all else may be zero.
type Options struct {
	// Route tells the route of a request by its path.
	Route func(path string) Route
	// Tokens says who may ask; nil: everybody may ask everything.
	Tokens *access.Tokens
	// Hosts are names that the server has, besides localhost and its addresses.
	Hosts []string
	// CORS is the origin of a site whose pages may ask too, as "https://app.example"; "": none.
	CORS string
	// TLS says that the server ends TLS itself. Then its own origin is https.
	TLS bool
	// Proxied says that a proxy is in front. Then no request is known to come from this host.
	Proxied bool

	Queries  int           // at once; 0: DefaultQueries
	Waiting  int           // queries that wait for others to end; 0: DefaultWaiting
	Tails    int           // at once; 0: DefaultTails
	Patience time.Duration // of a query that waits; 0: DefaultPatience
	Deadline time.Duration // of a query; 0: DefaultDeadline
	Made     budget.Limits // what queries and tails may hold of what they make
	Recheck  time.Duration // how often the token of a tail is looked up again; 0: 10 s

	Log zerolog.Logger
}

// Guard is the doors of one server. Its methods may be called at once.
type Guard struct {
	o       Options
	names   doors.Names
	queries *gate
	tails   *gate
	made    *budget.Pool
	open    connections
	counts  counts
	denied  zerolog.Logger // one line a second
	coders  coders
}

// New returns a Guard. It opens nothing.
func New(o Options) *Guard {
	o.Queries = cmp.Or(o.Queries, DefaultQueries())
	o.Waiting = cmp.Or(o.Waiting, DefaultWaiting)
	o.Tails = cmp.Or(o.Tails, DefaultTails)
	o.Patience = cmp.Or(o.Patience, DefaultPatience)
	o.Deadline = cmp.Or(o.Deadline, DefaultDeadline)
	o.Recheck = cmp.Or(o.Recheck, 10*time.Second)
	g := &Guard{
		o: o, names: doors.NewNames(o.Hosts...),
		queries: newGate(o.Queries, o.Waiting, o.Patience), tails: newGate(o.Tails, 0, 0), made: budget.NewPool(o.Made),
		denied: o.Log.Sample(&zerolog.BurstSampler{Burst: 1, Period: time.Second}),
	}
	g.open.all = make(map[*connection]struct{})
	return g
}

// Deadline is the time of a query.
func (g *Guard) Deadline() time.Duration { return g.o.Deadline }

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
	g        *Guard
	route    Route
	started  time.Time
	token    *access.Token
	notes    Notes
	client   context.Context // ends when the client goes away
	panicked bool
}

// key is the key of a visit in the context of a request.
type key struct{}

// Token returns the token of a request; nil: no token is needed.
func Token(r *http.Request) *access.Token {
	if v, ok := r.Context().Value(key{}).(*visit); ok {
		return v.token
	}
	return nil
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
func (g *Guard) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &visit{g: g, route: g.o.Route(r.URL.Path), started: time.Now(), client: r.Context()}
		r = r.WithContext(context.WithValue(r.Context(), key{}, v))
		a := newAnswer(w, r, v)
		g.counts.begin()
		defer v.end(a, r)
		defer a.close()
		defer v.recovered(a, r)
		g.admit(a, r, v, next)
	})
}

// admit leads a request through the doors.
func (g *Guard) admit(a *answer, r *http.Request, v *visit, next http.Handler) {
	for _, door := range []func(*answer, *http.Request, *visit) *refusal{g.host, g.origin, g.token, g.body} {
		if refused := door(a, r, v); refused != nil {
			a.refuse(r, refused)
			return
		}
		if a.status != 0 {
			return // a question of the browser, which is answered
		}
	}
	r.Header.Del("X-Scope-OrgID") // the token says who asks
	switch v.route.Kind {
	case Query:
		if err := g.queries.enter(r.Context()); err != nil {
			a.refuse(r, crowded(err))
			return
		}
		defer g.queries.leave()
		ctx, cancel := context.WithTimeoutCause(r.Context(), g.o.Deadline, errDeadline)
		defer cancel()
		a.ctx, a.moved = ctx, time.Time{}
		g.budgeted(a, r.WithContext(ctx), next)
	case Tail:
		g.tail(a, r, v, next)
	default:
		next.ServeHTTP(a, r)
	}
	if a.status == 0 && a.late() {
		a.refuse(r, tooLate(g.o.Deadline))
	}
}

// budgeted has a handler answer with a budget.
func (g *Guard) budgeted(a *answer, r *http.Request, next http.Handler) {
	ctx, made := g.made.Begin(r.Context())
	defer made.End()
	next.ServeHTTP(a, r.WithContext(ctx))
}

// errDeadline is the cause of a context whose query has taken too long.
var errDeadline = errors.New("the query has taken too long")

// counted is a gate for requests of one kind.
type gate struct {
	slots    chan struct{}
	patience time.Duration
	most     int // that wait

	mu      sync.Mutex
	waiting int
}

func newGate(slots, most int, patience time.Duration) *gate {
	return &gate{slots: make(chan struct{}, slots), most: most, patience: patience}
}

// errCrowded says that there are too many requests at once.
var errCrowded = errors.New("too many at once")

// enter waits for a place, which leave gives back. The error is errCrowded, or that of ctx.
func (g *gate) enter(ctx context.Context) error {
	select {
	case g.slots <- struct{}{}:
		return nil
	default:
	}
	if !g.queue(1) {
		return errCrowded
	}
	defer g.queue(-1)
	timer := time.NewTimer(g.patience)
	defer timer.Stop()
	select {
	case g.slots <- struct{}{}:
		return nil
	case <-timer.C:
		return errCrowded
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (g *gate) leave() { <-g.slots }

// queue changes how many wait, unless there would be too many.
func (g *gate) queue(n int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting+n > g.most {
		return false
	}
	g.waiting += n
	return true
}
