package tailindex_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/tailindex"
)

var env testenv.Env

func TestMain(m *testing.M) { os.Exit(env.Run(m)) }

// line is a canonical line.
func line(t time.Time, level, service, msg string) string {
	return fmt.Sprintf(`{"ts":"%s","level":"%s","service":"%s","msg":"%s"}`+"\n", record.AppendTime(nil, t.UnixNano()), level, service, msg)
}

// newRun is a run of lines, which it sorts.
func newRun(service string, origin uint64, lines ...string) *record.Run {
	q := &record.Request{Services: []string{service}}
	r := &record.Run{Service: service, Request: q}
	binary.BigEndian.PutUint64(r.Origin[8:], origin)
	for i, l := range lines {
		ns, ok := record.LineTime([]byte(l))
		if !ok {
			panic("no line: " + l)
		}
		q.Lines = append(q.Lines, record.Line{Time: ns, Off: uint32(len(q.Data)), Len: uint32(len(l))})
		q.Data = append(q.Data, l...)
		r.Order = append(r.Order, uint32(i))
	}
	slices.SortStableFunc(r.Order, func(a, b uint32) int { return int(min(1, max(-1, q.Lines[a].Time-q.Lines[b].Time))) })
	return r
}

// entries are the entries of a run, as a reader should return them.
func entries(r *record.Run) []record.Entry {
	var all []record.Entry
	for i := range r.Len() {
		e := r.Entry(i)
		e.Line = slices.Clone(e.Line)
		all = append(all, e)
	}
	return all
}

// start runs a writer until the end of the test, or until stop is called.
func start(t *testing.T, s storage.TableStore, o tailindex.Options) (w *tailindex.Writer, stop func()) {
	t.Helper()
	w = tailindex.NewWriter(s, o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	return w, func() { cancel(); <-done }
}

// merged are the entries of rows in order, each once.
func merged(rows []tailindex.Row) []record.Entry {
	var all []record.Entry
	for _, r := range rows {
		all = append(all, r.Entries...)
	}
	slices.SortFunc(all, func(a, b record.Entry) int { return a.Compare(&b) })
	return slices.CompactFunc(all, func(a, b record.Entry) bool { return a.Compare(&b) == 0 })
}

func show(all []record.Entry) string {
	var b strings.Builder
	for _, e := range all {
		fmt.Fprintf(&b, "%s %d %.120s", e.ID.Origin, e.ID.Index, e.Line)
	}
	return b.String()
}

// An accepted record is in the table within a fifth of a second, errors also in
// rows of their own.
func TestFirstRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.New(mem.Options{})
		w, stop := start(t, s, tailindex.Options{Store: "logs", Lane: func() int { return 6 }})
		defer stop()
		r := tailindex.NewReader(s, tailindex.Options{Store: "logs"})
		now := time.Now()
		run := newRun("web", 7,
			line(now.Add(-time.Minute), "info", "web", "one"),
			line(now.Add(-2*time.Minute), "error", "web", "two"),
			line(now.Add(-25*time.Hour), "info", "web", "too old"),
			line(now.Add(-time.Second), "critical", "web", "three"),
			line(now.Add(11*time.Minute), "critical", "web", "too new"))
		want := entries(run)[1:4]
		w.Accepted(1, run)
		clear(run.Request.Data) // the caller reuses it
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		rows, err := r.Newest(t.Context(), "web", false, 100)
		if err != nil || len(rows) != 1 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		got := rows[0]
		if show(got.Entries) != show(want) {
			t.Errorf("got\n%swant\n%s", show(got.Entries), show(want))
		}
		if got.Process != w.Process() || got.Number != 1 || got.Errors || got.Count != 3 || got.Omitted != 0 ||
			got.First != want[0].Time || got.Last != want[2].Time || got.Arrived.Sub(now) > 200*time.Millisecond {
			t.Errorf("%+v", got)
		}
		rows, err = r.Newest(t.Context(), "web", true, 100)
		if err != nil || len(rows) != 1 || !rows[0].Errors || show(rows[0].Entries) != show([]record.Entry{want[0], want[2]}) {
			t.Errorf("errors: %+v, %v", rows, err)
		}
		if _, err := r.Newest(t.Context(), "web' or PartitionKey ne '", false, 1); err == nil {
			t.Error("a service that is none was taken")
		}
	})
}

// For any arrivals at any ingester, the returned rows contain the newest n or count them.
func TestNewestIsTheTruth(t *testing.T) {
	for seed := range uint64(testkit.Share(8, 3)) {
		synctest.Test(t, func(t *testing.T) { newestIsTheTruth(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func newestIsTheTruth(t *testing.T, rnd *rand.Rand) {
	s := mem.New(mem.Options{})
	shards := 1 + rnd.IntN(4)
	o := tailindex.Options{Shards: shards}
	var writers []*tailindex.Writer
	for lane := range 1 + rnd.IntN(4) {
		for _, store := range []string{"", "other"} {
			o.Lane, o.Store = func() int { return lane }, store
			w, stop := start(t, s, o)
			defer stop()
			if store == "" {
				writers = append(writers, w)
			} else {
				w.Accepted(1, newRun("web", 1, line(time.Now().Add(time.Minute), "error", "web", "of another store")))
			}
		}
	}
	// Sometimes times are coarse, so that many records have the same.
	grain := []time.Duration{time.Nanosecond, 30 * time.Nanosecond, time.Second, time.Minute}[rnd.IntN(4)]
	var all, errs []record.Entry
	for origin := range uint64(300) {
		var lines []string
		for range 1 + rnd.IntN(1+rnd.IntN(1+rnd.IntN(250))) {
			at := time.Now().Add(-time.Duration(rnd.Int64N(1 + rnd.Int64N(int64(2*time.Minute))))).Truncate(grain)
			lines = append(lines, line(at, []string{"info", "error", "debug", "critical"}[rnd.IntN(4)], "web", fmt.Sprint(origin)))
		}
		run := newRun("web", origin+1, lines...)
		for _, e := range entries(run) {
			all = append(all, e)
			if l := record.LineLevel(e.Line); l == record.Error || l == record.Critical {
				errs = append(errs, e)
			}
		}
		writers[rnd.IntN(len(writers))].Accepted(origin, run)
		time.Sleep(time.Duration(rnd.Int64N(int64(400 * time.Millisecond))))
	}
	time.Sleep(2 * time.Second)
	r := tailindex.NewReader(s, tailindex.Options{Shards: shards})
	for _, truth := range [][]record.Entry{all, errs} {
		slices.SortFunc(truth, func(a, b record.Entry) int { return a.Compare(&b) })
		for range 20 {
			n := 1 + rnd.IntN(100)
			rows, err := r.Newest(t.Context(), "web", &truth[0] == &errs[0], n)
			if err != nil {
				t.Fatal(err)
			}
			got := merged(rows)
			want := truth[max(0, len(truth)-n):]
			got = got[max(0, len(got)-n):]
			if show(got) != show(want) {
				t.Fatalf("grain %v, newest %d: got\n%swant\n%s", grain, n, show(got), show(want))
			}
		}
	}
}
