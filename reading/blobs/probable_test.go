package blobs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/reading/blobs"
	"blobtail/storage/storagetest"
)

// An hour of ten ingesters is in ten blobs of several blocks that overlap. The newest records
// cost the last block of each, requested at once. Of blobs that follow each other, and of
// those that end before the newest records begin, no more are opened than hold them.
func TestNewestOverlapping(t *testing.T) {
	const parts, each = 10, 600
	b := newBuilder(t, 20_000) // about 200 records
	var all []rec
	add := func(service string, at func(part, i int) time.Duration, parts ...int) {
		for _, part := range parts {
			var recs []rec
			for i := range each {
				ns := noon + int64(at(part, i))
				recs = append(recs, rec{service: service, time: ns, origin: origin(uint64(part)), index: uint32(i),
					line: line(ns, "info", service, fmt.Sprintf("record %d of ingester %d", i, part))})
			}
			b.add(time.Hour, recs)
			all = append(all, recs...)
		}
	}
	tenth := func(part, i int) time.Duration {
		return time.Duration(i*parts+part) * 500 * time.Millisecond
	}
	add("mixed", tenth, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	add("row", func(part, i int) time.Duration {
		return time.Duration(part)*5*time.Minute + time.Duration(i)*500*time.Millisecond
	}, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	early := func(part, i int) time.Duration { return tenth(part, i) / 2 }
	add("some", early, 0, 1, 2, 3, 4, 5, 6)
	add("some", tenth, 7, 8, 9)
	slices.SortFunc(all, compareRecs)
	for _, c := range []struct {
		service        string
		limit          int
		opened, blocks int64 // at most
	}{
		{"mixed", 1, 1, 1},
		{"mixed", 3, 4, 4},
		{"mixed", 100, 10, 10},
		{"mixed", 5000, 10, 10 * 4},
		// The last block is not full. So the merge comes to a second one, and requests ahead of
		// that: all four may be decoded before the read ends.
		{"row", 100, 1, 4},
		{"row", 601, 3, 5}, // the next blob is opened once one is used up
		{"some", 100, 3, 3},
	} {
		for _, distant := range []bool{false, true} {
			name := fmt.Sprintf("%s, %d, distant %v", c.service, c.limit, distant)
			r := blobs.New(b.store, blobs.Options{Distant: distant})
			got, sum := newest(t, r, blobs.Query{Services: []string{c.service}, Range: blobs.Always(), Limit: c.limit})
			want := lines(slices.DeleteFunc(slices.Clone(all), func(r rec) bool { return r.service != c.service }))
			if want = want[len(want)-c.limit:]; !slices.Equal(got, want) || !sum.Complete() || !sum.More {
				t.Errorf("%s: %d lines, %v\n%s", name, len(got), sum.Problems, strings.Join(got[:min(3, len(got))], ""))
			}
			if sum.BlobsOpened > c.opened || sum.BlocksRead > c.blocks {
				t.Errorf("%s: %d blobs opened, %d blocks read; want at most %d and %d", name, sum.BlobsOpened, sum.BlocksRead, c.opened, c.blocks)
			}
		}
	}
	// A blob that goes missing, or a block that is damaged, is reported once.
	away := failing(b.store, -1, storagetest.Get, "mixed/2026/11/27/1200/000004.log", storagetest.ErrFault)
	got, sum := newest(t, blobs.New(away, blobs.Options{}), blobs.Query{Services: []string{"mixed"}, Range: blobs.Always(), Limit: 90})
	if len(got) != 90 || len(sum.Problems) != 1 {
		t.Errorf("without a blob: %d lines, %v", len(got), sum.Problems)
	}
}
