package blobs_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/internal/where"
	"blobtail/reading/blobs"
	"blobtail/reading/blobs/indexcache"
	"blobtail/storage"
)

// A question that comes again, in any range, decodes no block in which few lines were found, and its
// answer and its notes are those of a reader that keeps nothing.
func TestKeptFindings(t *testing.T) {
	testkit.FullOnly(t, "hundreds of reads, one after another")
	b := newBuilder(t, 2000)
	recs := make([]rec, 4000)
	for i := range recs {
		level := "info"
		switch i % 16 {
		case 3:
			level = "error"
		case 5:
			level = "warn"
		case 9:
			level = "critical"
		}
		at := noon + int64(i)*int64(time.Hour)/int64(len(recs))
		recs[i] = rec{service: "web", time: at, origin: origin(1), index: uint32(i), line: line(at, level, "web", fmt.Sprintf("message number%dx", i))}
	}
	b.add(time.Hour, recs)
	first, last := recs[0].time, recs[len(recs)-1].time
	middle := blobs.Range{From: first + (last-first)/3, To: first + (last-first)*2/3}
	r := blobs.New(b.store, blobs.Options{Indexes: indexcache.New(0), Findings: 1 << 20})
	const text = "number777x"
	condition := func(text string) *where.Expr {
		e, err := where.Parse(nil, text, false)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	for name, filter := range map[string]func() blobs.Filter{
		"levels": func() blobs.Filter { return blobs.Filter{Levels: 1 << 4} },
		"barred": func() blobs.Filter { return blobs.Filter{Levels: 1 << 3, Barred: 1 << 4} },
		"text":   func() blobs.Filter { return blobs.Filter{Texts: []string{text}} },
		"word":   func() blobs.Filter { return blobs.Filter{Words: []string{text}} },
		"expr":   func() blobs.Filter { return blobs.Filter{Exprs: []string{text + "|nothing"}, Fold: true} },
		"none":   func() blobs.Filter { return blobs.Filter{Texts: []string{"not in any of them"}, Levels: 1 << 3} },
		"where":  func() blobs.Filter { return blobs.Filter{Where: condition(`level == "error" and msg != "none"`)} },
		// It matches before the last range, in the same block. Its note names the fields that there are.
		"where before": func() blobs.Filter {
			return blobs.Filter{Where: condition(`msg == "message number1000x" or nothing == 1`)}
		},
	} {
		for round := range 3 {
			for i, rng := range []blobs.Range{blobs.Always(), middle, {From: middle.From, To: blobs.Newest}, {From: recs[1001].time, To: recs[1003].time}} {
				for _, q := range []blobs.Query{{Limit: 3}, {}, {First: 5}, {Reverse: true}} {
					q.Services, q.Range = []string{"web"}, rng
					q.Filter = filter()
					bare := q
					bare.Filter = filter()
					got, sum := read(t, r, q)
					want, wantSum := read(t, blobs.New(b.store, blobs.Options{}), bare)
					if !slices.Equal(got, want) || sum.More != wantSum.More || sum.Higher != wantSum.Higher && q.Limit+q.First == 0 {
						t.Fatalf("%s, round %d, range %d, %+v: %d lines, more %v, %d higher; want %d, %v, %d",
							name, round, i, q, len(got), sum.More, sum.Higher, len(want), wantSum.More, wantSum.Higher)
					}
					if q.Filter.Where != nil && fmt.Sprint(q.Filter.Where.Notes(nil)) != fmt.Sprint(bare.Filter.Where.Notes(nil)) {
						t.Errorf("notes %q, want %q", q.Filter.Where.Notes(nil), bare.Filter.Where.Notes(nil))
					}
					if round > 0 && filter().Where == nil && sum.BlocksRead > 0 {
						t.Errorf("%s, round %d, range %d: %d blocks are read again", name, round, i, sum.BlocksRead)
					}
				}
			}
		}
	}
}

// A condition that asks for the time finds other records later, and nothing of it is kept.
func TestFindingsOfNow(t *testing.T) {
	b := newBuilder(t, 2000)
	recs := make([]rec, 60)
	for i := range recs {
		at := time.Date(2000, 1, 1, 0, i, 0, 0, time.UTC).UnixNano() // the clock of the bubble begins there
		recs[i] = rec{service: "web", time: at, origin: origin(1), index: uint32(i), line: line(at, "info", "web", fmt.Sprint("message ", i%10))}
	}
	b.add(time.Hour, recs)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Unix(0, recs[0].time).Add(time.Hour + time.Second)))
		r := blobs.New(b.store, blobs.Options{Indexes: indexcache.New(0), Findings: 1 << 20})
		for left := 6; left >= 0; left -= 2 { // of the tenth minute each, in the last hour
			e, err := where.Parse(nil, `msg == "message 9" and date(ts) > now() - duration("1h")`, false)
			if err != nil {
				t.Fatal(err)
			}
			q := blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Filter: blobs.Filter{Where: e}}
			got, _ := read(t, r, q)
			plan, err := r.Plan(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if n, _, err := plan.Count(t.Context()); len(got) != left || n != int64(left) || err != nil {
				t.Errorf("%d records are read and %d counted, want %d: %v", len(got), n, left, err)
			}
			time.Sleep(20 * time.Minute)
		}
	})
}

// A blob that another one of the same name and batch takes the place of has other blocks. What was
// found in the blocks of the first one is not taken for those of the second.
func TestFindingsOfAnotherBlob(t *testing.T) {
	b, other := newBuilder(t, 2000), newBuilder(t, 5000)
	recs := make([]rec, 400)
	for i := range recs {
		at := noon + int64(i)*int64(time.Second)
		recs[i] = rec{service: "web", time: at, origin: origin(1), index: uint32(i), line: line(at, "info", "web", fmt.Sprintf("message number%dx", i))}
	}
	key, id := b.add(time.Hour, recs)
	r := blobs.New(b.store, blobs.Options{Findings: 1 << 20})
	q := blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Filter: blobs.Filter{Texts: []string{"7x"}}}
	want, _ := read(t, r, q)
	if again, sum := read(t, r, q); len(want) != 40 || !slices.Equal(again, want) || sum.BlocksRead != 0 {
		t.Fatalf("%d lines, then %d of %d blocks", len(want), len(again), sum.BlocksRead)
	}
	body, meta, same := other.encode(recs)
	if same != id {
		t.Fatal(same, id)
	}
	if err := b.store.Delete(t.Context(), storage.Blob{Key: key}); err != nil {
		t.Fatal(err)
	}
	b.put(key, body, meta.Map())
	if got, sum := read(t, r, q); !slices.Equal(got, want) || !sum.Complete() || sum.BlocksRead == 0 {
		t.Errorf("%d lines of %d blocks, want %d: %v", len(got), sum.BlocksRead, len(want), sum.Problems)
	}
}
