package blobs_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"blobtail/reading/blobs"
)

// A read decodes no more than it may: it fails before its first GET if the metadata tell, and
// else when it comes to that. Reads that decode little of the same blobs pass.
func TestTooLarge(t *testing.T) {
	b := newBuilder(t, 2000)
	raw, hours := int64(0), int64(6)
	start := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC).UnixNano()
	for h := range hours {
		var recs []rec
		for i := range int64(600) {
			at := start + h*3600e9 + i*6e9
			level := []string{"info", "info", "error"}[i%3]
			recs = append(recs, rec{service: "web", time: at, level: level, origin: origin(uint64(h)), index: uint32(i), line: line(at, level, "web", "some text")})
			raw += int64(len(recs[i].line))
		}
		b.add(time.Hour, recs)
	}
	levels, _ := blobs.ParseLevels("error")
	cut := blobs.Range{From: start + 1, To: blobs.Newest}
	accept := func([]byte) bool { return true }
	w := &watched{BlobStore: b.store}
	r := blobs.New(w, blobs.Options{Workers: 2})
	for name, c := range map[string]struct {
		q     blobs.Query
		most  int64
		fails bool
		early bool
		count bool // a count fails too
	}{
		"all":           {blobs.Query{Range: blobs.Always()}, raw - 1, true, true, false},
		"all, enough":   {blobs.Query{Range: blobs.Always()}, raw, false, false, false},
		"all, no bound": {blobs.Query{Range: blobs.Always()}, 0, false, false, false},
		"a function":    {blobs.Query{Range: blobs.Always(), Filter: blobs.Filter{Accept: accept}}, raw / 2, true, true, true},
		"a cut range":   {blobs.Query{Range: cut}, raw/hours*(hours-1) - 1, true, true, false},
		"and a block":   {blobs.Query{Range: cut}, raw - 1, true, false, false},
		"a level":       {blobs.Query{Range: blobs.Always(), Filter: blobs.Filter{Levels: levels}}, raw / 2, true, false, false},
		"the newest":    {blobs.Query{Range: blobs.Always(), Limit: 10}, 10_000, false, false, false},
		"most of them":  {blobs.Query{Range: blobs.Always(), Limit: 3000}, raw / 2, true, false, false},
		"the oldest":    {blobs.Query{Range: blobs.Always(), First: 10}, 10_000, false, false, false},
		"an expression": {blobs.Query{Range: blobs.Always(), Limit: 10, Filter: blobs.Filter{Exprs: []string{"[0-9]{30}"}}},
			raw / 2, true, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			c.q.Services, c.q.MaxRaw = []string{"web"}, c.most
			w.gets = nil
			sum, err := r.Newest(context.Background(), c.q, func([]byte) error { return nil })
			large, ok := errors.AsType[*blobs.TooLargeError](err)
			if ok != c.fails || !ok && err != nil {
				t.Fatalf("it ends with %v; %+v", err, sum)
			}
			if ok && (large.Bytes <= c.most || large.Bytes > raw || large.Limit != c.most || c.early != (len(w.gets) == 0)) {
				t.Errorf("it says %v (%+v) after %d GETs", large, *large, len(w.gets))
			}
			if most := c.most + 4*2500; c.most > 0 && sum.Decoded > most {
				t.Errorf("%d bytes are decoded, and %d are the bound", sum.Decoded, c.most)
			}
			plan, err := r.Plan(context.Background(), c.q)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err = plan.Count(context.Background()); c.count != (err != nil) {
				t.Errorf("the count ends with %v", err)
			}
		})
	}
}

// Unflushed records count, and a read through several windows has one bound.
func TestTooLargeInAll(t *testing.T) {
	b := newBuilder(t, 2000)
	all := some("web", 500, 1)
	b.add(time.Hour, all)
	held := unflushed(t, entries(some("web", 500, 2))...)
	raw := int64(0)
	for _, r := range all {
		raw += 2 * int64(len(r.line))
	}
	for most, fails := range map[int64]bool{raw - 1: true, raw: false} {
		q := blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Unflushed: []*blobs.Unflushed{held}, MaxRaw: most}
		_, err := blobs.New(b.store, blobs.Options{}).Newest(context.Background(), q, func([]byte) error { return nil })
		if _, ok := errors.AsType[*blobs.TooLargeError](err); ok != fails {
			t.Errorf("with a bound of %d for %d bytes the read ends with %v", most, raw, err)
		}
	}
}
