package blobs_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"blobtail/internal/dev/testkit"
	"blobtail/reading/blobs"
	"blobtail/record"
	"blobtail/storage"
)

// noisy are records for a blob of some blocks: one each second of an hour, of 2 KB that hardly
// shrink.
func noisy(service string, n int) []rec {
	recs := some(service, n, 1)
	seed := uint64(1)
	for i := range recs {
		var text strings.Builder
		for range 110 {
			seed = seed*6364136223846793005 + 1442695040888963407
			fmt.Fprintf(&text, "%016x ", seed)
		}
		recs[i].time = noon + int64(i)*1e9
		level := record.Level(record.Info)
		if i%1000 == 0 {
			level = record.Error
		}
		recs[i].line = line(recs[i].time, level.String(), service, text.String())
	}
	return recs
}

// A distant store gets the request for the probable blocks together with that for the index.
// The result is the same, whether they were the right ones or not.
func TestForeseen(t *testing.T) {
	testkit.FullOnly(t, "compresses much, and counts requests")
	b := newBuilder(t, 0)
	recs := noisy("web", 3600)
	b.add(60*60e9, recs)
	b.add(60*60e9, noisy("dense", 3600)[:3000])
	odd := noisy("odd", 3600) // most records are in the last minute
	for i := range odd {
		odd[i].time = noon + 3540e9 + int64(i)*1e6
		if i < 10 {
			odd[i].time = noon + int64(i)*300e9
		}
		odd[i].line = line(odd[i].time, "info", "odd", odd[i].line[100:200]+strings.Repeat("x", i%7)+odd[i].line[300:1900])
	}
	slices.SortFunc(odd, compareRecs)
	b.add(60*60e9, odd)
	errorsOnly, _ := blobs.ParseLevels("error")
	minutes := func(from, to int) blobs.Range {
		return blobs.Range{From: noon + int64(from)*60e9, To: noon + int64(to)*60e9}
	}
	for _, c := range []struct {
		name     string
		q        blobs.Query
		requests int64 // of a distant store, at most
	}{
		{"all", blobs.Query{Services: []string{"web"}, Range: blobs.Always()}, 1},
		{"the first minutes", blobs.Query{Services: []string{"web"}, Range: minutes(0, 2)}, 2},
		{"the middle", blobs.Query{Services: []string{"web"}, Range: minutes(30, 32)}, 2},
		{"the last minutes", blobs.Query{Services: []string{"web"}, Range: minutes(58, 60)}, 1},
		{"the newest", blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Limit: 10}, 1},
		{"the newest until", blobs.Query{Services: []string{"web"}, Range: minutes(0, 20), Limit: 10}, 2},
		{"few of a level", blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Filter: blobs.Filter{Levels: errorsOnly}}, 5},
		{"a text", blobs.Query{Services: []string{"web"}, Range: minutes(30, 32), Filter: blobs.Filter{Texts: []string{"ff"}}}, 2},
		{"in vain", blobs.Query{Services: []string{"odd"}, Range: minutes(0, 50)}, 3},
		{"two blobs", blobs.Query{Services: []string{"web", "dense"}, Range: minutes(10, 12)}, 4},
	} {
		near, sum := newest(t, blobs.New(b.store, blobs.Options{}), c.q)
		distant, dsum := newest(t, blobs.New(b.store, blobs.Options{Distant: true}), c.q)
		if len(near) == 0 || !slices.Equal(near, distant) || !sum.Complete() || !dsum.Complete() {
			t.Errorf("%s: %d and %d lines, %v, %v", c.name, len(near), len(distant), sum.Problems, dsum.Problems)
		}
		if dsum.Requests > c.requests || sum.BlocksRead != dsum.BlocksRead {
			t.Errorf("%s: %d requests, want %d; near %+v, distant %+v", c.name, dsum.Requests, c.requests, sum, dsum)
		}
		t.Logf("%s: %d requests of %d bytes near, %d of %d distant", c.name, sum.Requests, sum.Fetched, dsum.Requests, dsum.Fetched)
	}
}

// gets notes the longest range that was requested.
type gets struct {
	storage.BlobStore
	mu   sync.Mutex
	most int64
}

func (g *gets) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	g.mu.Lock()
	g.most = max(g.most, n)
	g.mu.Unlock()
	return g.BlobStore.Get(ctx, key, off, n)
}

// The newest records are in the last blocks, or in far more if few records are wanted. No more
// than two blocks are foreseen.
func TestForeseenBytes(t *testing.T) {
	testkit.FullOnly(t, "it counts bytes")
	b := newBuilder(t, 0)
	b.add(60*60e9, noisy("web", 3600)) // 7 MB, an error in each 1,000 records
	errorsOnly, _ := blobs.ParseLevels("error")
	for _, q := range []blobs.Query{{Limit: 10}, {Limit: 3, Filter: blobs.Filter{Levels: errorsOnly}}, {Limit: 3000}} {
		q.Services, q.Range = []string{"web"}, blobs.Always()
		s := &gets{BlobStore: b.store}
		got, _ := newest(t, blobs.New(s, blobs.Options{Distant: true, GroupBytes: 600_000}), q)
		if len(got) != q.Limit || s.most > 1_300_000 {
			t.Errorf("limit %d: %d records, a GET of %d bytes", q.Limit, len(got), s.most)
		}
	}
}
