package blobs_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"blobtail/reading/blobs"
)

// Buckets of whole minutes are counted by indexes. A blob that is in one bucket is
// counted by its metadata.
func TestHistogramReadsNoBlocks(t *testing.T) {
	w := week(t)
	start := time.Date(2026, 11, 18, 13, 30, 0, 0, time.UTC).UnixNano()
	for _, c := range []struct {
		by      time.Duration
		rng     blobs.Range
		buckets int
		records int64
		gets    int
	}{
		{24 * time.Hour, blobs.Always(), 7, 7 * 24 * 60, 0},
		{time.Hour, blobs.Always(), 7 * 24, 7 * 24 * 60, 0},
		{5 * time.Minute, blobs.Range{From: start, To: start + 3600e9}, 12, 60, 2},
		{7 * time.Second, blobs.Range{From: start, To: start + 3600e9}, 60, 60, 4},
	} {
		w.gets = nil
		plan, err := blobs.New(w, blobs.Options{Workers: 1}).Plan(t.Context(), blobs.Query{Services: []string{"web"}, Range: c.rng, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		got, sum, err := plan.Histogram(t.Context(), blobs.Buckets{Length: c.by})
		if err != nil || len(got) != c.buckets || sum.Records != c.records || len(w.gets) > c.gets {
			t.Errorf("by %v: %d buckets by %d GETs, want %d by %d; %+v, %v", c.by, len(got), len(w.gets), c.buckets, c.gets, sum, err)
		}
	}
}

// The indexes suffice if unflushed records have other origins than the blobs of their
// hour. An unflushed record of the same origin causes its hour, and no other, to be
// decoded.
func TestCountBesideUnflushed(t *testing.T) {
	w := week(t)
	at := time.Date(2026, 11, 18, 13, 30, 0, 0, time.UTC).UnixNano()
	var recs []rec
	for i := range 120 { // over two hours
		ns := at + int64(i)*60e9
		recs = append(recs, rec{service: "web", time: ns, origin: origin(9999), index: uint32(i), line: line(ns, "info", "web", "new")})
	}
	count := func(l *blobs.Unflushed) (n int64, sum blobs.Summary, gets int) {
		t.Helper()
		w.gets = nil
		plan, err := blobs.New(w, blobs.Options{Workers: 1}).Plan(t.Context(), blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Unflushed: []*blobs.Unflushed{l}})
		if err != nil {
			t.Fatal(err)
		}
		if n, sum, err = plan.Count(t.Context()); err != nil {
			t.Fatal(err)
		}
		return n, sum, len(w.gets)
	}
	if n, sum, gets := count(unflushed(t, entries(recs)...)); n != 7*24*60+120 || sum.Unflushed != 120 || sum.BlocksRead > 0 || gets > 3 {
		t.Errorf("%d, %d GETs, %+v", n, gets, sum)
	}
	hour := 2*24 + 13
	again := time.Date(2026, 11, 18, 13, 7, 0, 0, time.UTC).UnixNano()
	recs = slices.Insert(recs, 0, rec{service: "web", time: again, origin: origin(uint64(hour)), index: 7, line: line(again, "info", "web", "hour 61 minute 7")})
	if n, sum, gets := count(unflushed(t, entries(recs)...)); n != 7*24*60+120 || sum.Unflushed != 120 || sum.BlocksRead != 1 || sum.Copies != 1 || gets > 5 {
		t.Errorf("%d, %d GETs, %+v", n, gets, sum)
	}
}

// Times at the ends of the possible range have buckets too.
func TestHistogramEnds(t *testing.T) {
	var recs []rec
	for i, ns := range []int64{math.MinInt64, -1, 0, math.MaxInt64} {
		recs = append(recs, rec{service: "web", time: ns, origin: origin(1), index: uint32(i), line: line(ns, "info", "web", "x")})
	}
	plan, err := blobs.Without(blobs.Options{}).Plan(t.Context(), blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Unflushed: []*blobs.Unflushed{unflushed(t, entries(recs)...)}})
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := plan.Histogram(t.Context(), blobs.Buckets{Length: 24 * time.Hour})
	if err != nil || len(got) != 4 || got[0].Start != math.MinInt64 || got[1].Start != -86400e9 || got[2].Start != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if bad := (*blobs.BadQueryError)(nil); !errors.As(func() error { _, _, err := plan.Histogram(t.Context(), blobs.Buckets{Length: 0}); return err }(), &bad) {
		t.Error("a bucket of no length")
	}
}
