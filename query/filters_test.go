package query_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"blobtail/blobfmt"
	"blobtail/internal/testkit"
	"blobtail/query"
)

// A search by filters finds what a search without them finds: the same records are stored
// with filters and without.
func TestFilters(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 2))
	queries, each := testkit.Share(20_000, 2000), 500
	if n, err := strconv.Atoi(os.Getenv("BLOBTAIL_FILTER_QUERIES")); err == nil {
		queries = n
	}
	byIDs, byWords, matched := int64(0), int64(0), 0
	for asked := 0; asked < queries; {
		blockSize := 500 + rng.IntN(3000)
		with, without := newBuilder(t, blockSize), newBuilder(t, blockSize)
		var err error
		if without.enc, err = blobfmt.NewEncoder(blobfmt.EncoderOptions{BlockSize: blockSize, FilterPercent: -1}); err != nil {
			t.Fatal(err)
		}
		body := wildBody(rng, 40)
		if rng.IntN(2) == 0 {
			body = realBody(t, rng, 40)
		}
		hours := map[int64][]rec{}
		var all []*seen
		for _, r := range storedRecs(t, "web", body) {
			hours[r.time/3600e9] = append(hours[r.time/3600e9], r)
			all = append(all, see(t, r.line))
		}
		for _, recs := range hours {
			slices.SortFunc(recs, compareRecs)
			with.add(time.Hour, recs)
			without.add(time.Hour, recs)
		}
		filtered, full := query.New(with.store, query.Options{Workers: 1}), query.New(without.store, query.Options{Workers: 1})
		for range min(each, queries-asked) {
			asked++
			q := ask(t, rng, all)
			ask := query.Query{Services: []string{"web"}, Range: query.Always(), Filter: q.filter}
			got, sum := read(t, filtered, ask)
			want, fullSum := read(t, full, ask)
			if !slices.Equal(got, want) || len(sum.Problems)+len(sum.Warnings)+len(fullSum.Problems) > 0 {
				t.Fatalf("seed %d: %v: %d records, want %d; %v %v", seed, q, len(got), len(want), sum.Problems, sum.Warnings)
			}
			byIDs, byWords = byIDs+sum.RuledOutByIDs, byWords+sum.RuledOutByWords
			if len(got) > 0 {
				matched++
			}
			if fullSum.RuledOutByIDs+fullSum.RuledOutByWords > 0 {
				t.Fatal("a blob without filters has ruled out blocks")
			}
		}
	}
	t.Logf("%d queries, %d matched; blocks ruled out: %d by ids, %d by words; seed %d", queries, matched, byIDs, byWords, seed)
	if byIDs < int64(queries)/100 || byWords < int64(queries)/10 || matched < queries/4 {
		t.Error("the filters were hardly asked")
	}
}

// An explanation has the blocks that a read reads, and rules out the others for a reason.
func TestExplain(t *testing.T) {
	b := newBuilder(t, 2000)
	var recs []rec
	for i := range 200 {
		msg := "GET /"
		if i == 100 {
			msg = "the needle 123456"
		}
		at := noon + int64(i)*1e9
		recs = append(recs, rec{service: "web", time: at, origin: origin(1), index: uint32(i), line: line(at, "info", "web", msg)})
	}
	b.add(time.Hour, recs)
	r := query.New(b.store, query.Options{})
	for _, c := range []struct {
		filter     query.Filter
		ids, words bool
		read       int64 // -1: all blocks
	}{
		{query.Filter{}, false, false, -1},
		{query.Filter{Texts: []string{"needle"}}, false, true, 1},
		{query.Filter{Words: []string{"123456"}}, true, false, 1},
		{query.Filter{Words: []string{"absent"}}, false, true, 0},
		{query.Filter{Words: []string{"absent"}, Invert: true}, false, false, -1},
	} {
		q := query.Query{Services: []string{"*"}, Range: query.Always(), Filter: c.filter}
		plan, err := r.Plan(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		x, _, err := plan.Explain(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, sum := read(t, r, q)
		want := c.read
		if want < 0 {
			want = x.Blocks
		}
		if x.Read != want || x.Read != sum.BlocksRead || x.ByIDs > 0 != c.ids || x.ByWords > 0 != c.words || x.Blocks != x.Read+x.ByIDs+x.ByWords {
			t.Errorf("%+v: %+v; read %d", c.filter, x, sum.BlocksRead)
		}
	}
}
