package live_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/internal/lease"
	"blobtail/reading/unflushed/live"
	"blobtail/record"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// journal is a log in memory. The record at place i has position i+1.
type journal struct {
	mu      sync.Mutex
	entries []record.Entry
	asked   []live.LogQuery
	damage  error
	behind  bool
	open    error
	pause   chan struct{} // if not nil, Each waits for it before its last entry
	held    atomic.Int64
}

func (j *journal) add(entries ...record.Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, entries...)
}

func (j *journal) Open(ctx context.Context, q live.LogQuery) (live.Held, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.asked = append(j.asked, q)
	if j.open != nil {
		return nil, j.open
	}
	s := &snapshot{j: j, position: uint64(len(j.entries))}
	for i, e := range j.entries {
		if e.Time >= q.From && (e.Time < q.To || q.To == math.MaxInt64) && q.Match(service(e)) && (!q.Follow || uint64(i) >= q.After) {
			s.entries = append(s.entries, e)
		}
	}
	slices.SortStableFunc(s.entries, func(x, y record.Entry) int { return x.Compare(&y) })
	if q.Newest > 0 {
		s.entries = s.entries[max(0, len(s.entries)-q.Newest):]
	}
	j.held.Add(1)
	return s, nil
}

func (j *journal) lastAsked() live.LogQuery {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.asked[len(j.asked)-1]
}

type snapshot struct {
	j        *journal
	entries  []record.Entry
	position uint64
}

func (s *snapshot) Position() uint64 { return s.position }
func (s *snapshot) Behind() bool     { return s.j.behind }
func (s *snapshot) Close()           { s.j.held.Add(-1) }

func (s *snapshot) Each(ctx context.Context, emit func(*record.Entry) error) error {
	for i, e := range s.entries {
		if s.j.pause != nil && i == len(s.entries)-1 {
			select {
			case <-s.j.pause:
			case <-ctx.Done():
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		e.Line = slices.Clone(e.Line)
		if err := emit(&e); err != nil {
			return err
		}
		clear(e.Line) // it is valid during the call only
	}
	if s.j.damage != nil {
		return &live.DamageError{Err: s.j.damage}
	}
	return nil
}

var start = time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC).UnixNano()

// entry makes a record of n seconds after start.
func entry(seconds int, origin byte, index uint32, service string) record.Entry {
	t := start + int64(seconds)*1e9
	line := fmt.Sprintf(`{"ts":"%s","level":"info","service":"%s","msg":"%d %d %d"}`+"\n", record.AppendTime(nil, t), service, seconds, origin, index)
	return record.Entry{Time: t, ID: record.ID{Origin: record.Origin{15: origin}, Index: index}, Line: []byte(line)}
}

func service(e record.Entry) string {
	_, rest, _ := strings.Cut(string(e.Line), `"service":"`)
	name, _, _ := strings.Cut(rest, `"`)
	return name
}

// wire is e in the form of an answer.
func wire(e record.Entry) string {
	return fmt.Sprintf("%s %d %s", e.ID.Origin, e.ID.Index, e.Line)
}

// ingester is one with a real listener.
type ingester struct {
	id  string
	log *journal
	h   *live.Handler
	url string
}

// peer is the row of i.
func (i *ingester) peer() lease.Ingester {
	return peer(lease.Ingester{ID: i.id, Address: i.url, Host: "host-" + i.id})
}

// storeID is the id of the store of all ingesters here.
const storeID = "0123456789abcdef0123456789abcdef"

// processOf is the process of an ingester: a name for each.
func processOf(id string) string {
	b := []byte(id)
	slices.Reverse(b)
	return string(b)
}

// selfOf is the Self in the answers of an ingester.
func selfOf(id string) func() live.Self {
	return func() live.Self { return live.Self{ID: id, Process: processOf(id), Store: storeID} }
}

// Times of rows: an ingester that runs when the list is read, and a silent one.
var (
	listed = time.Unix(0, start)
	silent = listed.Add(-time.Hour)
)

// peer completes the row of another ingester, which may hold records.
func peer(p lease.Ingester) lease.Ingester {
	p.Process, p.State = processOf(p.ID), lease.Holding
	if p.At.IsZero() {
		p.At = listed
	}
	return p
}

// roll is a list of peers that was read just now.
func roll(peers []lease.Ingester, err error) func(context.Context, bool) (live.Roll, error) {
	return func(context.Context, bool) (live.Roll, error) {
		return live.Roll{Now: listed, Peers: peers, Listed: time.Now()}, err
	}
}

func newIngester(t *testing.T, id string, peers ...lease.Ingester) *ingester {
	return newIngesterWith(t, id, live.Options{Peers: roll(peers, nil)})
}

// headers are those of an answer of an ingester that knows no peers.
func headers(h http.Header, id string) {
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Blobtail-Live", "2")
	h.Set("Blobtail-Ingester", id)
	h.Set("Blobtail-Process", processOf(id))
	h.Set("Blobtail-Store", storeID)
	h.Set("Blobtail-Snapshots", id+"."+processOf(id))
	h.Set("Blobtail-Positions", id+".7")
}

func newIngesterWith(t *testing.T, id string, o live.Options) *ingester {
	t.Helper()
	i := &ingester{id: id, log: &journal{}}
	o.Self, o.Journal = selfOf(id), i.log
	i.h = live.NewHandler(o)
	t.Cleanup(func() { // after the server's end: an answer may outlast its reader for a moment
		if n := i.log.held.Load(); n != 0 {
			t.Errorf("%s still holds %d snapshots", id, n)
		}
	})
	i.url = serve(t, i.h)
	t.Cleanup(i.h.Stop)
	return i
}

func serve(t *testing.T, h http.Handler) string {
	mux := http.NewServeMux()
	mux.Handle(live.Pattern, h)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

// all is a question about everything.
func all(service string) live.Query {
	return live.Query{Service: service, From: math.MinInt64, To: math.MaxInt64}
}

func client(t *testing.T, url string) *live.Client {
	t.Helper()
	c, err := live.NewClient(url, live.ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// read asks and reads to the end: the records, the answer, and how it ended.
func read(t *testing.T, url string, q live.Query) ([]record.Entry, *live.Answer, error) {
	t.Helper()
	a, err := client(t, url).Ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	got, err := rest(a)
	return got, a, err
}

func rest(a *live.Answer) (got []record.Entry, err error) {
	for {
		e, err := a.Next()
		if err != nil {
			if _, again := a.Next(); again != err {
				return got, fmt.Errorf("another error than before: %w", again)
			}
			return got, err
		}
		e.Line = slices.Clone(e.Line)
		got = append(got, e)
	}
}

// merged is the expected answer.
func merged(lists ...[]record.Entry) []record.Entry {
	m := slices.Concat(lists...)
	slices.SortStableFunc(m, func(x, y record.Entry) int {
		return cmp.Or(x.Compare(&y), strings.Compare(string(x.Line), string(y.Line)))
	})
	return slices.CompactFunc(m, func(x, y record.Entry) bool {
		return x.Compare(&y) == 0 && string(x.Line) == string(y.Line)
	})
}

func same(t *testing.T, got, want []record.Entry) {
	t.Helper()
	text := func(list []record.Entry) string {
		var b strings.Builder
		for _, e := range merged(list) { // the order of one identity is open
			b.WriteString(wire(e))
		}
		return b.String()
	}
	if g, w := text(got), text(want); g != w || len(got) != len(want) {
		t.Errorf("got %d records\n%.2000s\nwant %d\n%.2000s", len(got), g, len(want), w)
	}
}

// incomplete checks how an answer ended, and returns the only missing ingester.
func incomplete(t *testing.T, err error, asked, answered int) live.Missing {
	t.Helper()
	var e *live.IncompleteError
	if !errors.As(err, &e) || errors.Is(err, io.EOF) || e.Asked != asked || e.Answered != answered || len(e.Missing) != asked-answered {
		t.Fatalf("the answer ended with %v", err)
	}
	return e.Missing[0]
}
