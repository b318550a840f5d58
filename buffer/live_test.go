package buffer_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/buffer"
	"blobtail/internal/dev/testkit"
	"blobtail/record"
)

// everything is a query for all unflushed records.
func everything() buffer.LiveQuery {
	return buffer.LiveQuery{Match: func(string) bool { return true }, From: math.MinInt64, To: math.MaxInt64}
}

// snapshot takes a snapshot, reads it whole, and closes it.
func snapshot(t testing.TB, b *buffer.Buffer, q buffer.LiveQuery) (got []stored, position uint64) {
	t.Helper()
	l, err := b.Live(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return each(t, l), l.Position()
}

// each reads a snapshot and checks its order.
func each(t testing.TB, l *buffer.Live) (got []stored) {
	t.Helper()
	if err := l.Each(context.Background(), collect(&got)); err != nil {
		t.Fatal(err)
	}
	inOrder(t, got)
	return got
}

func collect(to *[]stored) func(*record.Entry) error {
	return func(e *record.Entry) error {
		*to = append(*to, stored{string(e.Line), e.Time, e.ID.Origin, e.ID.Index})
		return nil
	}
}

func inOrder(t testing.TB, got []stored) {
	t.Helper()
	for i := 1; i < len(got); i++ {
		a, b := entryOf(got[i-1]), entryOf(got[i])
		if n := a.Compare(&b); n > 0 || n == 0 && got[i-1].text == got[i].text {
			t.Fatalf("out of order, or twice: %+v, %+v", got[i-1], got[i])
		}
	}
}

func entryOf(s stored) record.Entry {
	return record.Entry{Time: s.time, ID: record.ID{Origin: s.origin, Index: s.index}}
}

// everything is every line of a sink, in order and each once.
func (s *memSink) everything() (all []stored) {
	for _, b := range s.all() {
		all = append(all, b.lines...)
	}
	return ordered(all)
}

func ordered(all []stored) []stored {
	slices.SortFunc(all, func(a, b stored) int {
		x, y := entryOf(a), entryOf(b)
		if n := x.Compare(&y); n != 0 {
			return n
		}
		return strings.Compare(a.text, b.text)
	})
	return slices.Compact(all)
}

func same(t testing.TB, what string, got, want []stored) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Fatalf("%s: %d lines, want %d; lacks %+v", what, len(got), len(want), want[i])
		case i >= len(want) || got[i] != want[i]:
			t.Fatalf("%s: %d lines, want %d; line %d is %+v, want %+v", what, len(got), len(want), i, got[i], want[min(i, len(want)-1)])
		}
	}
}

// A snapshot has the lines that the blobs have later, with the same identities. The
// requests have origins or none, come twice unrecognised, or use keys again. Their
// batches are open, cut or parked, and there are restarts. Tail sees the same lines.
func TestLiveIsWhatIsStored(t *testing.T) {
	for seed := range uint64(testkit.Share(8, 2)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 2))
			dir, sink := t.TempDir(), &memSink{}
			sink.setRefuse(refuseAll)
			o := buffer.Options{Size: 30_000, Period: 15 * time.Minute}
			for range 4 {
				// Without a replay no repeat is recognised.
				p := start(t, dir, sink, o, r.IntN(3) == 0)
				for range 40 {
					p.accept(randomRequest(r))
				}
				p.stop()
			}
			p := start(t, dir, sink, o, true)
			got, _ := snapshot(t, p.buf, everything())
			all := readInParts(t, p, r, got)
			sink.setRefuse(nil)
			p.flush()
			same(t, "all", ordered(all), sink.everything())
			if got, _ := snapshot(t, p.buf, everything()); len(got) > 0 {
				t.Errorf("%d lines after a flush", len(got))
			}
		})
	}
}

// readInParts reads the same lines with other queries and returns all.
func readInParts(t *testing.T, p *process, r *rand.Rand, all []stored) []stored {
	t.Helper()
	for range 20 {
		q := everything()
		if r.IntN(2) == 0 {
			q.From, q.To = at(r.IntN(180)), at(r.IntN(180))
		}
		if r.IntN(2) == 0 {
			q.Newest = 1 + r.IntN(len(all)+10)
		}
		if r.IntN(2) == 0 {
			q.Keep = func(line []byte) bool { return len(line)%3 > 0 }
		}
		want := slices.DeleteFunc(slices.Clone(all), func(s stored) bool {
			return s.time < q.From || s.time >= q.To || q.Keep != nil && !q.Keep([]byte(s.text))
		})
		if q.Newest > 0 && len(want) > q.Newest {
			want = want[len(want)-q.Newest:]
		}
		got, _ := snapshot(t, p.buf, q)
		same(t, fmt.Sprintf("from %d to %d newest %d", q.From, q.To, q.Newest), got, want)
	}
	return all
}

// randomRequest has a few lines, of some services and periods. Its origin is none, or one
// of a few.
func randomRequest(r *rand.Rand) *record.Request {
	var lines []line
	for range 1 + r.IntN(20) {
		lines = append(lines, line{fmt.Sprint("s", r.IntN(3)), at(r.IntN(150)) + r.Int64N(3), noise(r, 1+r.IntN(200))})
	}
	switch r.IntN(5) {
	case 4:
		return someOf(r, byte(1+r.IntN(20)))
	case 0:
		return request(0, lines...)
	case 1: // the same lines for the same origin
		n := 1 + r.IntN(20)
		same := rand.New(rand.NewPCG(uint64(n), 9))
		return request(byte(n), line{"s1", at(same.IntN(60)), noise(same, 100)}, line{"s2", at(70), noise(same, 100)})
	default: // a key used again
		return request(byte(1+r.IntN(200)), lines...)
	}
}

// someOf is a body with some records rejected, and sometimes with another reading of a
// line.
func someOf(r *rand.Rand, n byte) *record.Request {
	same := rand.New(rand.NewPCG(uint64(n), 10))
	var lines []line
	var places []int
	for place := range 20 {
		l := line{fmt.Sprint("s", same.IntN(2)), at(same.IntN(90)) + same.Int64N(2), noise(same, 1+same.IntN(50))}
		if r.IntN(20) == 0 {
			l.text = "another"
		}
		if r.IntN(4) > 0 {
			lines, places = append(lines, l), append(places, place)
		}
	}
	q := request(200+n, lines...)
	for i := range q.Lines {
		q.Lines[i].Shift = int32(places[i] - i)
	}
	return q
}

// toldAll is a Tail that remembers its lines.
type toldAll struct {
	mu    sync.Mutex
	lines []stored
	marks []uint64
}

func (a *toldAll) Accepted(mark uint64, run *record.Run) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.marks = append(a.marks, mark)
	for i := range run.Len() {
		e := run.Entry(i)
		a.lines = append(a.lines, stored{string(e.Line), e.Time, e.ID.Origin, e.ID.Index})
	}
}

// Tail sees exactly the accepted records, under the identities that the blobs will have.
func TestTailIsTold(t *testing.T) {
	sink, tail := &memSink{}, &toldAll{}
	p := start(t, t.TempDir(), sink, buffer.Options{Tail: tail, Period: 15 * time.Minute, Size: 100_000}, true)
	p.flush()
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		p.accept(randomRequest(r))
	}
	for _, mark := range tail.marks {
		if err := p.buf.Durable(mark); err != nil {
			t.Fatal(err)
		}
	}
	p.flush()
	same(t, "told", ordered(slices.Clone(tail.lines)), sink.everything())
	if n := len(tail.lines) - len(sink.everything()); n != 0 {
		t.Errorf("%d told twice", n)
	}
}

// A full log answers a repeat as usual.
func TestRepeatWhileFull(t *testing.T) {
	p := start(t, t.TempDir(), &memSink{}, buffer.Options{Max: 20_000}, true)
	p.flush()
	r := request(7, line{"web", at(1), "once"})
	r.Sum = 5
	p.accept(r)
	p.accept(request(0, line{"web", at(1), strings.Repeat("x", 30_000)}))
	if _, err := p.buf.Accept(t.Context(), request(0, line{"web", at(1), "x"})); !errors.Is(err, record.ErrFull) {
		t.Fatalf("a new one: %v", err)
	}
	if !p.accept(r).Duplicate {
		t.Error("the repeat is taken")
	}
	r.Sum = 6
	if _, err := p.buf.Accept(t.Context(), r); !errors.Is(err, record.ErrKeyReused) {
		t.Errorf("the key with another body: %v", err)
	}
}
