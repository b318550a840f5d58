package blobs_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/reading/blobs"
	"blobtail/record"
)

// The oldest records of a range are those of a plan, and a page behind a record lists little of what is
// newer.
func TestOldest(t *testing.T) {
	store := &counted{BlobStore: week(t).BlobStore}
	r := blobs.New(store, blobs.Options{Workers: 2})
	start := time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		from   time.Duration
		first  int
		listed int64 // blobs, at most; 0: any number
	}{{0, 1, 10}, {0, 30, 20}, {50 * time.Hour, 10, 20}, {6 * 24 * time.Hour, 100_000, 0}, {100 * 24 * time.Hour, 5, 0}} {
		at := record.Key{Time: start.Add(c.from).UnixNano()}
		q := blobs.Query{Services: []string{"*"}, Range: blobs.Always(), First: c.first, Edges: blobs.Edges{After: &at}}
		q.Range = q.Edges.Within(q.Range)
		plan, err := r.Plan(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		var want, got strings.Builder
		whole, err := plan.Read(t.Context(), func(lines []byte) error { want.Write(lines); return nil })
		if err != nil {
			t.Fatal(err)
		}
		before := store.listed.Load()
		sum, err := r.Oldest(t.Context(), q, func(lines []byte) error { got.Write(lines); return nil })
		if err != nil || got.String() != want.String() || sum.Records != whole.Records || whole.More && !sum.More || len(sum.Problems) > 0 {
			t.Errorf("from %v: %v, %d records, more %v, not %d, more %v", c.from, err, sum.Records, sum.More, whole.Records, whole.More)
		}
		if n := store.listed.Load() - before; c.listed > 0 && n > c.listed {
			t.Errorf("from %v: %d blobs are listed", c.from, n)
		}
		if n := len(slices.Collect(strings.Lines(got.String()))); int64(n) != sum.Records {
			t.Errorf("from %v: %d lines, %d records", c.from, n, sum.Records)
		}
	}
}
