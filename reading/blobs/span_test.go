package blobs_test

import (
	"testing"
	"time"

	"blobtail/reading/blobs"
)

// The span covers stored and unflushed records, within the range.
func TestSpan(t *testing.T) {
	w := week(t)
	at := time.Date(2026, 11, 18, 13, 30, 0, 0, time.UTC).UnixNano()
	later := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	l := unflushed(t, entries([]rec{{service: "web", time: later, origin: origin(9), line: line(later, "info", "web", "new")}})...)
	all := blobs.Always()
	for _, c := range []struct {
		rng         blobs.Range
		first, last int64 // 0: not compared
		ok          bool
	}{
		{all, 0, later, true},
		{blobs.Range{From: at, To: at + 3600e9}, at, at + 3600e9 - 1, true},
		{blobs.Range{From: later - 5, To: blobs.Newest}, later, later, true},
		{blobs.Range{From: later + 1, To: blobs.Newest}, 0, 0, false},
	} {
		plan, err := blobs.New(w, blobs.Options{}).Plan(t.Context(), blobs.Query{Services: []string{"web"}, Range: c.rng, Unflushed: []*blobs.Unflushed{l}})
		if err != nil {
			t.Fatal(err)
		}
		first, last, ok := plan.Span()
		if ok != c.ok || c.first != 0 && first != c.first || c.last != 0 && last != c.last {
			t.Errorf("%v: %d to %d, %v", c.rng, first, last, ok)
		}
	}
}
