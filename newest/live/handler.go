package live

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"blobtail/record"
)

// LogQuery is a question to the log of one ingester.
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
	Now    bool // the position only
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

// Unwrap returns the loss.
func (e *DamageError) Unwrap() error { return e.Err }

// Self names the ingester that answers. Readers and other ingesters compare all of it
// with the rows of the ingesters.
type Self struct {
	ID      string // of the ingester; 8 hex digits
	Process string // of this start of it; 8 hex digits
	Store   string // id of the store that it writes to; "" while that is not known
}

// Peer is another ingester that has to be asked.
type Peer struct {
	ID      string
	Process string // that the answer must be of
	Address string // URL; "" when it announces none
	Host    string
	Oldest  time.Time // arrival of the oldest unflushed record; zero: there was none
	// Holding: it may have unflushed records, so it counts as missing if it does not
	// answer.
	Holding bool
	// Silent: it has announced nothing for a minute. Perhaps only its announcements
	// fail, so it is still asked, and given a second.
	Silent bool
}

// Roll is the list of the other ingesters.
type Roll struct {
	Peers []Peer
	// Listed is when the reading of the list began, by this host's clock.
	Listed time.Time
}

// Options are the settings of a handler.
type Options struct {
	Self    func() Self // this ingester
	Journal Log
	// Peers returns the other ingesters that have to be asked. Without fresh the list
	// may be two seconds old. While the table cannot be read it is the last list that
	// was read. With an error there may be more peers than it has. nil: there are none.
	Peers func(ctx context.Context, fresh bool) (Roll, error)
	HTTP  *http.Client // asks the peers; it must not follow redirects; nil: a client with its own connections
	// MaxAnswers is how many readers are answered at once; 0: 64. Four times as many
	// other ingesters are answered, so that readers cannot keep them away.
	MaxAnswers int
	Log        zerolog.Logger
}

const (
	defaultAnswers = 64
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
	http    *http.Client
	counts  counts
	readers chan struct{} // a token for each answer under way
	others  chan struct{}

	mu      sync.Mutex
	stopped bool
	stop    map[*http.Request]context.CancelCauseFunc
}

// NewHandler returns a handler. It starts nothing.
func NewHandler(o Options) *Handler {
	if o.MaxAnswers == 0 {
		o.MaxAnswers = defaultAnswers
	}
	if o.Peers == nil {
		o.Peers = func(context.Context, bool) (Roll, error) { return Roll{Listed: time.Now()}, nil }
	}
	h := &Handler{
		o: o, http: o.HTTP, counts: counts{questions: map[int]uint64{}},
		readers: make(chan struct{}, o.MaxAnswers), others: make(chan struct{}, 4*o.MaxAnswers),
		stop: map[*http.Request]context.CancelCauseFunc{},
	}
	if h.http == nil {
		h.http = newHTTP(nil) // ingesters reach each other directly
	}
	return h
}

var (
	errStopping = errors.New("this ingester stops")
	errReader   = errors.New("the reader takes nothing")
)

// Stop cuts the answers under way short, and lets no more begin. It is for
// [http.Server.RegisterOnShutdown], because a slow reader would delay the shutdown.
func (h *Handler) Stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopped = true
	for _, cancel := range h.stop {
		cancel(errStopping)
	}
	h.http.CloseIdleConnections()
}

// begin makes a context that Stop ends.
func (h *Handler) begin(r *http.Request) (ctx context.Context, done func(), ok bool) {
	ctx, cancel := context.WithCancelCause(r.Context())
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		cancel(errStopping)
		return ctx, nil, false
	}
	h.stop[r] = cancel
	return ctx, func() {
		h.mu.Lock()
		delete(h.stop, r)
		h.mu.Unlock()
		cancel(nil)
	}, true
}

// ServeHTTP answers one question.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begun := time.Now()
	status := h.serve(w, r)
	h.counts.question(status, time.Since(begun), status == http.StatusOK)
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request) (status int) {
	w.Header().Set(headerVersion, strconv.Itoa(Version)) // of a refusal too
	refuse := func(status int, text string) int {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "1")
		}
		w.WriteHeader(status)
		fmt.Fprintln(w, text)
		return status
	}
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		return refuse(http.StatusMethodNotAllowed, "live records are asked for with GET")
	}
	q, alone, err := parseQuery(r.PathValue("service"), r.URL.RawQuery)
	if err != nil {
		return refuse(http.StatusBadRequest, err.Error())
	}
	places := h.readers
	if alone {
		places = h.others
	}
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	default:
		return refuse(http.StatusServiceUnavailable, fmt.Sprintf("%d answers are under way already; ask again in a second", cap(places)))
	}
	ctx, done, ok := h.begin(r)
	if !ok {
		return refuse(http.StatusServiceUnavailable, errStopping.Error()+"; ask another one")
	}
	defer done()
	f, err := h.ask(ctx, q, alone)
	if err != nil {
		if ctx.Err() != nil && context.Cause(ctx) != errStopping {
			return statusGone
		}
		h.o.Log.Warn().Err(err).Msg("live records cannot be read from the log")
		return refuse(http.StatusServiceUnavailable, err.Error())
	}
	defer f.close()
	h.answer(ctx, w, f, alone)
	return http.StatusOK
}

// statusGone is counted for a reader that did not wait.
const statusGone = 499

// answer sends the header and the merged records.
func (h *Handler) answer(ctx context.Context, w http.ResponseWriter, f *fan, alone bool) {
	header := w.Header()
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	header.Set(headerIngester, f.self.ID)
	header.Set(headerProcess, f.self.Process)
	header.Set(headerStore, f.self.Store)
	header.Set(headerSnapshots, formatSnapshots(f.snapshots()))
	if f.rowsAge >= 0 {
		header.Set(headerRowsAge, strconv.FormatInt(ceilMillis(f.rowsAge), 10))
	}
	header.Set(headerPositions, f.positions().String())
	if behind := f.behind(); len(behind) > 0 {
		header.Set(headerBehind, strings.Join(behind, ","))
	}
	stall := stallWait
	if alone {
		stall = ingesterStallWait
	}
	p := &paced{Writer: w, rc: http.NewResponseController(w), stall: stall}
	defer context.AfterFunc(ctx, p.end)()
	if p.flush() != nil {
		return
	}
	out := bufio.NewWriterSize(p, writeBuffer)
	m := &merge{query: f.query, out: out}
	err := m.run(ctx, f)
	h.counts.records.Add(uint64(m.sent))
	h.counts.failed.Add(uint64(len(f.missing)))
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
		p.done()
	}
}

// ceilMillis rounds up: only a list that was read after the question has the age 0.
func ceilMillis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// paced sets a deadline for each write. Writers without deadlines are no connections,
// and do not stall.
type paced struct {
	io.Writer
	rc    *http.ResponseController
	stall time.Duration
	sent  int64
	spent time.Duration // in waiting for the reader, not for other ingesters

	mu    sync.Mutex
	ended bool
}

// allow sets the deadline of the next write. It returns false after end.
func (p *paced) allow(until time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		_ = p.rc.SetWriteDeadline(until)
	}
	return !p.ended
}

// end makes a stuck write fail, and all later writes.
func (p *paced) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	_ = p.rc.SetWriteDeadline(time.Now())
}

// least is the average pace, in bytes a second, at which a reader must read an answer.
// One stall is allowed besides.
const least = 256 << 10

// until is the deadline of the next write.
func (p *paced) until() time.Time {
	left := p.stall + time.Duration(p.sent/least)*time.Second - p.spent
	return time.Now().Add(min(p.stall, left))
}

func (p *paced) Write(b []byte) (int, error) {
	if !p.allow(p.until()) {
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
	if !p.allow(p.until()) {
		return errReader
	}
	if err := p.rc.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return errReader
	}
	return nil
}

// done removes the deadline, for the next request on this connection.
func (p *paced) done() { p.allow(time.Time{}) }

// logQuery is the question to the own log.
func (q *Query) logQuery(self string) LogQuery {
	l := LogQuery{
		Match: q.Match, From: q.From, To: q.To, Keep: q.keep(), Newest: q.Newest,
		Follow: q.Follow, After: q.After[self], Now: q.Now,
	}
	if q.Now {
		l.From, l.To, l.After = math.MaxInt64, math.MaxInt64, 0
	}
	return l
}
