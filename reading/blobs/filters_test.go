package blobs_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"blobtail/blobfmt"
	"blobtail/internal/dev/testkit"
	"blobtail/internal/where"
	"blobtail/reading/blobs"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/storagetest"
)

// Searches with filters and without find the same records: each record is stored in both ways.
func TestFilters(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 2))
	queries, each := testkit.Share(5000, 300), 100 // queries of each store: words rule out much in some stores, and little in others
	if n, err := strconv.Atoi(os.Getenv("BLOBTAIL_FILTER_QUERIES")); err == nil {
		queries = n
	}
	byIDs, byWords, matched := int64(0), int64(0), 0
	hardly := func() bool {
		return byIDs < int64(queries)/200 || byWords < int64(queries)/20 || matched < queries/5
	}
	for asked := 0; asked < queries || asked < 20*queries && hardly(); { // few queries may have no id that rules out
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
		filtered, full := blobs.New(with.store, blobs.Options{Workers: 1, Findings: int64(rng.IntN(2)) << 20, Distant: rng.IntN(2) == 0}), blobs.New(without.store, blobs.Options{Workers: 1})
		for range each {
			asked++
			q := ask(t, rng, all)
			ask := blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Filter: q.filter}
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
	if hardly() {
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
	r := blobs.New(b.store, blobs.Options{})
	for _, c := range []struct {
		filter     blobs.Filter
		ids, words bool
		read       int64 // -1: all blocks
	}{
		{blobs.Filter{}, false, false, -1},
		{blobs.Filter{Texts: []string{"needle"}}, false, true, 1},
		{blobs.Filter{Words: []string{"123456"}}, true, false, 1},
		{blobs.Filter{Words: []string{"absent"}}, false, true, 0},
		{blobs.Filter{Words: []string{"absent"}, Invert: true}, false, false, -1},
	} {
		q := blobs.Query{Services: []string{"*"}, Range: blobs.Always(), Filter: c.filter}
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

// A blob is searched in full if its filters are damaged, of another version or at another place.
// Damage is a warning.
func TestDamagedFilters(t *testing.T) {
	b := newBuilder(t, 2000)
	var recs []rec
	for i := range 400 {
		at := noon + int64(i)*1e9
		recs = append(recs, rec{service: "web", time: at, origin: origin(1), index: uint32(i), line: line(at, "info", "web", fmt.Sprintf("needle order%06d", i))})
	}
	body, m, _ := b.encode(recs)
	x, err := blobfmt.ReadIndex("web", int64(len(body)), func(off, n int64) ([]byte, error) { return body[off:][:n], nil })
	if err != nil {
		t.Fatal(err)
	}
	words := bytes.LastIndex(body, []byte("\nneedle\n")) // the list is small, so it is not compressed
	if words < int(x.Offset) || m.IDs.Buckets == 0 {
		t.Fatal("no words or no ids")
	}
	flip := func(at int64) func(body []byte, meta map[string]string) {
		return func(body []byte, _ map[string]string) { body[at] ^= 1 }
	}
	filters := func(value string) func(body []byte, meta map[string]string) {
		return func(_ []byte, meta map[string]string) { meta["filters"] = value }
	}
	for name, c := range map[string]struct {
		damage func(body []byte, meta map[string]string)
		warns  bool
	}{
		"nothing":              {func([]byte, map[string]string) {}, false},
		"ids":                  {flip(m.IDs.Offset + 5), true},
		"the checksum of ids":  {flip(m.IDs.Offset + m.IDs.Length - 1), true},
		"words":                {flip(int64(words) + 3), true},
		"another place":        {filters(fmt.Sprintf("1.%d.%d.1", m.IDs.Offset+1, m.IDs.Length)), true},
		"a place outside":      {filters("1.1000000000000.8.1"), true},
		"more buckets":         {filters(fmt.Sprintf("1.%d.%d.2", m.IDs.Offset, m.IDs.Length/2*2)), true},
		"a huge bucket":        {filters("1.4398046511103.4398046511103.1"), false},
		"sums that overflow":   {filters("1.9223372036854775807.9223372036854775807.1"), false},
		"another version":      {filters("2.1.1.1"), false},
		"no number":            {filters("1.x"), false},
		"negative":             {filters("1.-5.8.1"), false},
		"no such offset":       {filters("1.9223372036854775807.8.1"), false},
		"none in the metadata": {func(_ []byte, meta map[string]string) { delete(meta, "filters") }, false},
	} {
		b.forget()
		damaged, meta := bytes.Clone(body), m.Map()
		c.damage(damaged, meta)
		b.put("web/2026/11/27/1200/000001.log", damaged, meta)
		r := blobs.New(b.store, blobs.Options{})
		f := blobs.Filter{Words: []string{"order000123"}, Texts: []string{"needle"}}
		got, sum := read(t, r, blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Filter: f})
		if len(got) != 1 || !strings.Contains(got[0], "order000123") || len(sum.Problems) > 0 || len(sum.Warnings) > 0 != c.warns {
			t.Errorf("%s: %d records; problems %v, warnings %v", name, len(got), sum.Problems, sum.Warnings)
		}
		if found := blobfmt.Verify("web/2026/11/27/1200/000001.log", damaged, parsed(t, meta)); (found != nil) != (name != "nothing") {
			t.Errorf("%s: verify found %v", name, found)
		}
	}
}

func parsed(t *testing.T, meta map[string]string) blobfmt.Meta {
	t.Helper()
	m, err := blobfmt.ParseMeta(meta)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A blob with unreadable ids is searched in full, with a warning.
func TestUnreadableIDs(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 6))
	for _, failure := range []error{errors.New("input/output error"), storage.ErrDamaged} {
		b := newBuilder(t, 64<<10)
		var recs []rec
		for i := range 20_000 { // more than a blob has that is fetched whole
			at := noon + int64(i)*1e6
			recs = append(recs, rec{service: "web", time: at, origin: origin(1), index: uint32(i), line: line(at, "info", "web", fmt.Sprintf("%x order%06d", r.Uint64(), i))})
		}
		b.add(time.Hour, recs)
		store := failing(b.store, 1, storagetest.Get, "web", failure)
		q := blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Filter: blobs.Filter{Words: []string{"order000123"}}}
		got, sum := read(t, blobs.New(store, blobs.Options{}), q)
		if len(got) != 1 || len(sum.Problems) > 0 || len(sum.Warnings) != 1 {
			t.Errorf("%v: %d records, problems %v, warnings %v", failure, len(got), sum.Problems, sum.Warnings)
		}
	}
}

// A condition still learns the fields of records if its filters rule out all blocks.
func TestNotesOfRuledOut(t *testing.T) {
	b := newBuilder(t, 2000)
	var recs []rec
	for i := range 200 {
		at := noon + int64(i)*1e9
		recs = append(recs, rec{service: "web", time: at, origin: origin(1), index: uint32(i), line: line(at, "info", "web", fmt.Sprint("GET /", i))})
	}
	b.add(time.Hour, recs)
	for _, text := range []string{`request == "absent"`, `request == "0123456789abcdef"`, `request == "abcdef 123456"`} {
		e, err := where.Parse(nil, text, false)
		if err != nil {
			t.Fatal(err)
		}
		got, sum := read(t, blobs.New(b.store, blobs.Options{}), blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Filter: blobs.Filter{Where: e}})
		if notes := e.Notes(nil); len(got) > 0 || len(notes) != 1 || !strings.Contains(notes[0], "request") || sum.BlocksRead != 1 {
			t.Errorf("%s: %d records, %d blocks read, notes %q", text, len(got), sum.BlocksRead, notes)
		}
	}
}

// A read is not complete if its condition cannot judge a record, in each way of reading.
func TestUnjudged(t *testing.T) {
	b := newBuilder(t, 2000)
	var recs []rec
	for i := range 40 {
		at := noon + int64(i)*1e9
		recs = append(recs, rec{service: "web", time: at, origin: origin(1), index: uint32(i), line: line(at, "info", "web", fmt.Sprintf("m%02d", i))})
	}
	b.add(time.Hour, recs)
	ctx, r := t.Context(), blobs.New(b.store, blobs.Options{})
	filter := func(text string) blobs.Query {
		e, err := where.Parse(nil, text, false)
		if err != nil {
			t.Fatal(err)
		}
		return blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Filter: blobs.Filter{Where: e}}
	}
	none := func([]byte) error { return nil }
	for name, read := range map[string]func(q blobs.Query) (blobs.Summary, error){
		"read": func(q blobs.Query) (blobs.Summary, error) {
			p, err := r.Plan(ctx, q)
			if err != nil {
				return blobs.Summary{}, err
			}
			return p.Read(ctx, none)
		},
		"newest": func(q blobs.Query) (blobs.Summary, error) {
			q.Limit = 10
			return r.Newest(ctx, q, none)
		},
		"count": func(q blobs.Query) (blobs.Summary, error) {
			p, err := r.Plan(ctx, q)
			if err != nil {
				return blobs.Summary{}, err
			}
			_, sum, err := p.Count(ctx)
			return sum, err
		},
		"histogram": func(q blobs.Query) (blobs.Summary, error) {
			p, err := r.Plan(ctx, q)
			if err != nil {
				return blobs.Summary{}, err
			}
			_, sum, err := p.Histogram(ctx, blobs.Buckets{Length: time.Minute})
			return sum, err
		},
		"around": func(q blobs.Query) (blobs.Summary, error) {
			_, sum, err := r.Around(ctx, q, noon+10e9, record.ID{Origin: origin(1), Index: 10}, 3, 30)
			return sum, err
		},
	} {
		sum, err := read(filter(`msg == "m20" and len(repeat(msg, 2000000)) > 0`))
		if err != nil || len(sum.Problems) != 1 || !strings.Contains(sum.Problems[0].Error(), "where: it is not known of some records whether they match: column ") {
			t.Errorf("%s: %v, %v", name, err, sum.Problems)
		}
		if sum, err := read(filter(`msg == "m20" and level == "info" or len(repeat(msg, 20)) == 0`)); err != nil || len(sum.Problems) != 0 {
			t.Errorf("%s: %v, %v", name, err, sum.Problems)
		}
	}
}
