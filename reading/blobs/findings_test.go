package blobs_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"blobtail/internal/where"
	"blobtail/reading/blobs"
	"blobtail/reading/blobs/indexcache"
)

// A question that comes again, in any range, decodes no block in which few lines were found, and its
// answer and its notes are those of a reader that keeps nothing.
func TestKeptFindings(t *testing.T) {
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
	condition := func() *where.Expr {
		e, err := where.Parse(nil, `level == "error" and msg != "none"`)
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
		"where":  func() blobs.Filter { return blobs.Filter{Where: condition()} },
	} {
		for round := range 3 {
			for i, rng := range []blobs.Range{blobs.Always(), middle, {From: middle.From, To: blobs.Newest}} {
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
					if q.Filter.Where != nil && fmt.Sprint(q.Filter.Where.Notes()) != fmt.Sprint(bare.Filter.Where.Notes()) {
						t.Errorf("notes %q, want %q", q.Filter.Where.Notes(), bare.Filter.Where.Notes())
					}
					if round > 0 && name != "where" && sum.BlocksRead > 0 {
						t.Errorf("%s, round %d, range %d: %d blocks are read again", name, round, i, sum.BlocksRead)
					}
				}
			}
		}
	}
}
