package blobs_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/reading/blobs"
	"blobtail/storage"
)

// watched records the requests to a store.
type watched struct {
	storage.BlobStore
	mu     sync.Mutex // a read sends requests from several goroutines
	lists  []string
	listed int
	gets   []string
	marks  int // lists of horizons: concurrent with the listing, and with the read
	parts  int // lists of the accounts of days
}

func (w *watched) List(ctx context.Context, prefix, after string) iter.Seq2[storage.Blob, error] {
	w.mu.Lock()
	if isMark(prefix) {
		w.marks++
		w.mu.Unlock()
		return w.BlobStore.List(ctx, prefix, after)
	}
	if isAccount(prefix) {
		w.parts++
		w.mu.Unlock()
		return w.BlobStore.List(ctx, prefix, after)
	}
	w.lists = append(w.lists, prefix+" "+after)
	w.mu.Unlock()
	return func(yield func(storage.Blob, error) bool) {
		for b, err := range w.BlobStore.List(ctx, prefix, after) {
			w.mu.Lock()
			w.listed++
			w.mu.Unlock()
			if !yield(b, err) {
				return
			}
		}
	}
}

func (w *watched) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	w.mu.Lock()
	w.gets = append(w.gets, key)
	w.mu.Unlock()
	return w.BlobStore.Get(ctx, key, off, n)
}

// week stores a blob for each hour of a week.
func week(t *testing.T) *watched {
	b := newBuilder(t, 0)
	start := time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)
	for h := range 7 * 24 {
		var recs []rec
		for i := range 60 {
			at := start.Add(time.Duration(h)*time.Hour + time.Duration(i)*time.Minute).UnixNano()
			recs = append(recs, rec{service: "web", time: at, origin: origin(uint64(h)), index: uint32(i),
				line: line(at, "info", "web", fmt.Sprintf("hour %d minute %d", h, i))})
		}
		b.add(time.Hour, recs)
	}
	return &watched{BlobStore: b.store}
}

// A read lists and fetches little more than it emits.
func TestReadTouchesLittle(t *testing.T) {
	at := func(text string) int64 {
		tm, err := time.Parse("2006-01-02 15:04", text)
		if err != nil {
			t.Fatal(err)
		}
		return tm.UnixNano()
	}
	for _, c := range []struct {
		name    string
		q       blobs.Query
		list    string
		listed  int // at most
		gets    int
		records int64
		parts   int
	}{
		{"two minutes", blobs.Query{Range: blobs.Range{From: at("2026-11-18 13:59"), To: at("2026-11-18 14:01")}},
			"web/2026/11/18/1 web/2026/11/18/1300", 3, 2, 2, 1},
		{"over midnight", blobs.Query{Range: blobs.Range{From: at("2026-11-18 23:30"), To: at("2026-11-19 00:30")}},
			"web/2026/11/1 web/2026/11/18/2300", 3, 2, 60, 1},
		{"one hour", blobs.Query{Range: blobs.Range{From: at("2026-11-18 13:00"), To: at("2026-11-18 14:00")}},
			"web/2026/11/18/13 ", 1, 1, 60, 1},
		{"since", blobs.Query{Range: blobs.Range{From: at("2026-11-22 22:00"), To: blobs.Newest}},
			"web/ web/2026/11/22/2200", 2, 2, 120, 0},
		{"until", blobs.Query{Range: blobs.Range{From: blobs.Oldest, To: at("2026-11-16 01:00")}}, "web/ ", 2, 1, 60, 1},
		{"newest", blobs.Query{Range: blobs.Always(), Limit: 10}, "web/ ", 7 * 24, 1, 10, 0},
		{"oldest", blobs.Query{Range: blobs.Always(), First: 70}, "web/ ", 7 * 24, 3, 70, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := week(t)
			c.q.Services = []string{"web"}
			_, sum := read(t, blobs.New(w, blobs.Options{Now: func() time.Time { return time.Unix(0, at("2026-11-23 00:30")) }}), c.q)
			if sum.Records != c.records {
				t.Errorf("%d records, want %d", sum.Records, c.records)
			}
			if !slices.Equal(w.lists, []string{c.list}) || w.listed > c.listed {
				t.Errorf("listed %d by %q, want %d by %q", w.listed, w.lists, c.listed, c.list)
			}
			if w.parts != c.parts {
				t.Errorf("%d lists of accounts", w.parts)
			}
			if w.marks != 2 {
				t.Errorf("%d lists of what has expired", w.marks)
			}
			if len(w.gets) > c.gets {
				t.Errorf("%d GETs, want %d: %s", len(w.gets), c.gets, strings.Join(w.gets, " "))
			}
		})
	}
}

// If the range cuts no blob, counting fetches nothing. If the range ends between two
// minutes, it fetches only indexes.
func TestCountReadsNoBlocks(t *testing.T) {
	w := week(t)
	start := time.Date(2026, 11, 18, 13, 30, 0, 0, time.UTC).UnixNano()
	for _, c := range []struct {
		rng  blobs.Range
		n    int64
		gets int
	}{
		{blobs.Always(), 7 * 24 * 60, 0},
		{blobs.Range{From: start, To: start + 3600e9}, 60, 2},
		{blobs.Range{From: start + 1, To: start + 3600e9}, 59, 3},
	} {
		w.gets = nil
		plan, err := blobs.New(w, blobs.Options{Workers: 1}).Plan(context.Background(), blobs.Query{Services: []string{"web"}, Range: c.rng})
		if err != nil {
			t.Fatal(err)
		}
		n, sum, err := plan.Count(context.Background())
		if err != nil || n != c.n || len(w.gets) > c.gets {
			t.Errorf("%d records by %d GETs, want %d by %d; %+v, %v", n, len(w.gets), c.n, c.gets, sum, err)
		}
	}
}

// A replaced blob is not read, even if the compacted blob is out of the range. The
// replaced names of a compacted blob are read only if one of them may be listed.
func TestReplaced(t *testing.T) {
	b := newBuilder(t, 0)
	recs := some("web", 100, 1)
	_, id := b.add(time.Hour, recs)
	_, half := b.add(15*time.Minute, recs[:50])
	late := some("web", 100, 2)[40:60]
	b.add(15*time.Minute, late)
	b.number = 990000
	b.add(time.Hour, recs, id, half)
	other := some("web", 10, 3)
	for i := range other { // alone in its hour
		other[i].time += 3600e9
		other[i].line = line(other[i].time, "info", "web", "text")
	}
	b.add(time.Hour, other, b.batch())
	w := &watched{BlobStore: b.store}
	r := blobs.New(w, blobs.Options{})
	for _, c := range []struct {
		rng   blobs.Range
		n     int
		count int // GETs: of the index with the replaced names, and to compare origins
	}{
		{blobs.Always(), 130, 1 + 2},
		{blobs.Range{From: noon + 55e9, To: noon + 3600e9}, 50, 1 + 2},
		{blobs.Range{From: blobs.Oldest, To: noon + 10e9}, 10, 1 + 1},
		{blobs.Range{From: noon + 3600e9, To: blobs.Newest}, 10, 0},
	} {
		q := blobs.Query{Services: []string{"web"}, Range: c.rng}
		got, sum := read(t, r, q)
		if sum.Copies != 0 || !sum.Complete() || len(got) != c.n {
			t.Errorf("%d lines, %+v", len(got), sum)
		}
		w.gets = nil
		plan, err := r.Plan(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		n, sum, err := plan.Count(t.Context())
		if err != nil || n != int64(c.n) || !sum.Complete() || len(w.gets) > c.count {
			t.Errorf("counted %d by %d GETs, %+v, %v", n, len(w.gets), sum, err)
		}
		if found, _ := newest(t, r, blobs.Query{Services: []string{"web"}, Range: c.rng, Limit: 40}); !slices.Equal(found, got[max(0, len(got)-40):]) {
			t.Errorf("%d are the newest", len(found))
		}
	}
}
