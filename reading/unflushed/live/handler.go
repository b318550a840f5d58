package live

import (
	"bufio"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/door"
	"blobtail/internal/lease"
	"blobtail/internal/trust"
	"blobtail/record"
)

// LogQuery is a question to the log of one ingester. Its fields are those of the query of
// package buffer, so that one is converted into the other.
type LogQuery struct {
	Match    func(service string) bool
	From, To int64 // Unix nanoseconds, half open; math.MinInt64 and math.MaxInt64 are open
	// Keep selects records; nil: all. Newest counts selected records only.
	Keep   func(line []byte) bool
	Newest int // only so many of the newest; 0: all
	// Follow asks for the records appended behind After, 0 for all that are remembered.
	// They replace the unflushed records.
	Follow bool
	After  uint64
}

// Log is the log of this ingester.
type Log interface {
	// Open takes a snapshot. Each record acknowledged before is in it, or in a blob.
	// Its records are on the disk. Open may wait until a start has read its log, or
	// until ctx ends. It may be called concurrently.
	Open(ctx context.Context, q LogQuery) (Held, error)
}

// Held is a snapshot. It keeps a part of the log from being deleted, so the caller
// closes it in every case.
type Held interface {
	Position() uint64 // a later Follow behind it misses nothing
	Behind() bool     // Follow only: some records behind After are not known any more
	// Each calls emit for each record, in order. If some records cannot be read, now or
	// ever, it goes on with the rest and then returns a [*DamageError]. Any other error
	// ends it at once.
	Each(ctx context.Context, emit func(*record.Entry) error) error
	Close()
}

// DamageError says that a log returned all records except those that it has lost.
type DamageError struct{ Err error }

func (e *DamageError) Error() string { return e.Err.Error() }

// Roll is the list of the other ingesters that have to be asked. Those that may have
// unflushed records count as missing if they do not answer.
type Roll struct {
	Peers []lease.Ingester
	Now   time.Time // of the list, to judge the rows by
	// Listed is when the reading of the list began, by this host's clock.
	Listed time.Time
}

// Options are the settings of a handler.
type Options struct {
	Self    func() Self // this ingester
	Journal Log
	// Peers returns the other ingesters. Without fresh the list may be a few seconds old.
	// While the table cannot be read it is the last list that was read. With an error
	// there may be more peers than it has. nil: there are none.
	Peers func(ctx context.Context, fresh bool) (Roll, error)
	// Newest has the newest blobs that this process has stored; nil: answers name none.
	Newest *Newest
	// Guard returns the reader that sent a question. The error is a [*door.Refusal]. nil:
	// everybody may read everything.
	Guard func(r *http.Request) (Reader, error)
	// Token is the credentials for the peers, as id.secret; "": they want none. PlainHTTP lets it
	// go to other hosts without TLS.
	Token     string
	PlainHTTP bool
	HTTP      *http.Client // asks the peers; it must not follow redirects; nil: a client with its own connections
	Trust     *trust.Trust // of the questions to the peers, as of [ClientOptions]
	Log       zerolog.Logger
}

const (
	// maxAnswers is how many readers are answered at once; one of them has half at most. Four times
	// as many other ingesters are answered, so that readers cannot keep them away.
	maxAnswers = 128
	// stallWait is how long a reader may read nothing: its answer keeps a part of the
	// log from being deleted.
	stallWait = 20 * time.Second
	// ingesterStallWait is the same for an ingester that merges. It reads from each of
	// its peers in turn, and at the pace of its reader, which it watches itself.
	ingesterStallWait = 10 * time.Minute
	writeBuffer       = 64 << 10
)

// Handler answers GET /live/{service}. Mount it at [Pattern].
type Handler struct {
	o       Options
	readers door.Places // of answers under way
	others  door.Places

	hangs    Hangs           // of the peers
	stopping context.Context // ends with Stop
	stop     context.CancelFunc

	mu    sync.Mutex
	stats Stats
	told  map[string]string // reasons that the log has, by the ingester that did not answer
}

// NewHandler returns a handler. It starts nothing.
func NewHandler(o Options) *Handler {
	if o.Peers == nil {
		o.Peers = func(context.Context, bool) (Roll, error) { return Roll{Listed: time.Now()}, nil }
	}
	h := &Handler{
		o: o, stats: Stats{Questions: map[int]uint64{}},
		readers: door.NewPlaces(maxAnswers), others: door.NewPlaces(4 * maxAnswers),
	}
	h.stopping, h.stop = context.WithCancel(context.Background())
	if o.HTTP == nil {
		h.o.HTTP = newHTTP(nil, o.Trust) // ingesters reach each other directly
	}
	return h
}

// Stats are a handler's counters since it was made. They are plain: readers link this
// package too, and a metrics library costs each start of a command a millisecond.
type Stats struct {
	// Questions by status code; 499 is a reader that did not wait.
	Questions map[int]uint64
	// Seconds is the time that those answered took, from the header of a question to
	// the end of its answer, added up.
	Seconds float64
	Records uint64 // sent in answers
	// PeersFailed is how often another ingester had to be asked and did not answer, or
	// not to the end.
	PeersFailed uint64
}

// Stats returns the counters.
func (h *Handler) Stats() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.stats
	s.Questions = maps.Clone(s.Questions)
	return s
}

var (
	errStopping = errors.New("this ingester stops")
	errReader   = errors.New("the reader takes nothing")
)

// Stop cuts the answers under way short, and lets no more begin. It is for
// [http.Server.RegisterOnShutdown], because a slow reader would delay the shutdown.
func (h *Handler) Stop() {
	h.stop()
	h.o.HTTP.CloseIdleConnections()
}

// ServeHTTP answers one question.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begun := time.Now()
	status := h.serve(w, r)
	if r.Method == http.MethodHead {
		return // a ping, whose refusal is a sign of life
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stats.Questions[status]++
	if status == http.StatusOK {
		h.stats.Seconds += time.Since(begun).Seconds()
	}
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request) (status int) {
	w.Header().Set(headerVersion, strconv.Itoa(Version)) // of a refusal too
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	refuse := func(f *door.Refusal) int {
		f.Plain(w)
		return f.Status
	}
	busy := func(format string, args ...any) int {
		f := door.Refuse(http.StatusServiceUnavailable, format, args...)
		f.After = time.Second
		return refuse(f)
	}
	scope, reader, err := h.admit(r)
	if err != nil {
		return refuse(refusal(err))
	}
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		return refuse(door.RefuseMethod("GET", "live records are asked for with GET"))
	}
	q, alone, err := parseQuery(r.PathValue("service"), r.URL.RawQuery)
	if err != nil {
		return refuse(door.Refuse(http.StatusBadRequest, "%w", err))
	}
	q.Stored = r.Header.Get(headerStored) != ""
	if err := scope.check(&q); err != nil {
		return refuse(refusal(err))
	}
	places := h.readers
	if alone {
		places = h.others
	}
	leave, n := places.Enter(r, reader)
	if leave == nil {
		return busy("%d answers are under way already; ask again in a second", n)
	}
	defer leave()
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(h.stopping, func() { cancel(errStopping) })()
	if h.stopping.Err() != nil {
		return busy("%w; ask another one", errStopping)
	}
	f := &fan{query: q, scope: scope, self: h.o.Self(), rowsAge: -1}
	defer f.close()
	if err := h.ask(ctx, f, alone); err != nil {
		if ctx.Err() != nil && context.Cause(ctx) != errStopping {
			return statusGone
		}
		h.o.Log.Warn().Err(err).Msg("live records cannot be read from the log")
		return busy("%w", err)
	}
	h.answer(ctx, w, f, alone)
	return http.StatusOK
}

// refusal is the answer to a client that may not read.
func refusal(err error) *door.Refusal {
	if f, ok := errors.AsType[*door.Refusal](err); ok {
		return f
	}
	return door.Refuse(http.StatusForbidden, "%w", err)
}

// statusGone is counted for a reader that did not wait.
const statusGone = 499

// answer sends the header and the merged records.
func (h *Handler) answer(ctx context.Context, w http.ResponseWriter, f *fan, alone bool) {
	f.header(w.Header())
	stall := stallWait
	if alone {
		stall = ingesterStallWait
	}
	p := &paced{Writer: w, ctx: ctx, rc: http.NewResponseController(w), stall: stall}
	defer context.AfterFunc(ctx, func() { p.until(time.Now()) })() // a stuck write fails
	if p.flush() != nil {
		return
	}
	out := bufio.NewWriterSize(p, writeBuffer)
	m := &merge{fan: f, out: out}
	err := m.run(ctx)
	h.mu.Lock()
	h.stats.Records += m.sent
	h.stats.PeersFailed += uint64(len(f.missing))
	h.mu.Unlock()
	if !alone {
		h.tell(f.missing)
	}
	if err != nil {
		if ctx.Err() == nil && err != errReader {
			h.o.Log.Warn().Err(err).Msg("live records cannot be read from the log to the end")
		}
		out.Flush()
		p.flush()
		return // without an end line, so that no reader assumes that it is whole
	}
	f.finish(out, m)
	if f.damage != nil {
		h.o.Log.Warn().Err(f.damage.Err).Msg("some records of the log cannot be read")
	}
	if out.Flush() == nil && p.flush() == nil {
		p.until(time.Time{}) // for the next request on this connection
	}
}

// tell logs why others do not answer, once for each change of a reason. The operator of this
// ingester can mend it, and its reader cannot: it lacks the token, or the authority, of the others.
func (h *Handler) tell(missing []Missing) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.told
	h.told = map[string]string{}
	for _, m := range missing {
		h.told[m.ID] = m.Reason
		if before[m.ID] != m.Reason {
			h.o.Log.Warn().Str("ingester", m.ID).Str("host", m.Host).Str("error", m.Reason).Msg("another ingester of the store does not answer: reads that ask here lack its newest records")
		}
	}
}

// paced sets a deadline for each write. Writers without deadlines are no connections,
// and do not stall.
type paced struct {
	io.Writer
	ctx   context.Context // when it ends, the deadline is set to that moment
	rc    *http.ResponseController
	stall time.Duration
	sent  int64
	spent time.Duration // in waiting for the reader, not for other ingesters
}

// until sets the deadline.
func (p *paced) until(t time.Time) { _ = p.rc.SetWriteDeadline(t) }

// least is the average pace, in bytes a second, at which a reader must read an answer.
// One stall is allowed besides.
const least = 256 << 10

// allow sets the deadline of the next write. It looks at ctx after that, because it may
// have replaced the deadline that came with the end of ctx.
func (p *paced) allow() bool {
	left := p.stall + time.Duration(p.sent/least)*time.Second - p.spent
	p.until(time.Now().Add(min(p.stall, left)))
	return p.ctx.Err() == nil
}

func (p *paced) Write(b []byte) (int, error) {
	if !p.allow() {
		return 0, errReader
	}
	begun := time.Now()
	n, err := p.Writer.Write(b)
	p.sent, p.spent = p.sent+int64(n), p.spent+time.Since(begun)
	if err != nil {
		return n, errReader
	}
	return n, nil
}

func (p *paced) flush() error {
	if !p.allow() {
		return errReader
	}
	if err := p.rc.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return errReader
	}
	return nil
}
