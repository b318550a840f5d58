package blobs_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"blobtail/reading/blobs"
	"blobtail/reading/blobs/indexcache"
)

// A reader that keeps ids fetches those of a near store once, and answers for other ids as one that
// keeps nothing. Of a distant store it fetches the bucket of an id alone, and each once.
func TestKeptIDs(t *testing.T) {
	b := newBuilder(t, 64<<10)
	r := rand.New(rand.NewPCG(41, 1))
	ids := make([]string, 40_000)
	for hour := range 4 {
		var recs []rec
		for i := range len(ids) / 4 {
			n, at := hour*len(ids)/4+i, noon+int64(hour)*int64(time.Hour)+int64(i)*1e6
			ids[n] = fmt.Sprintf("%016x%016x", r.Uint64(), r.Uint64())
			recs = append(recs, rec{service: "web", time: at, origin: origin(1), index: uint32(n), line: line(at, "info", "web", "GET "+ids[n])})
		}
		b.add(time.Hour, recs)
	}
	ask := func(id string) blobs.Query {
		return blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Filter: blobs.Filter{Words: []string{id}}}
	}
	for _, distant := range []bool{false, true} {
		kept := blobs.New(b.store, blobs.Options{Indexes: indexcache.New(0), Findings: 1 << 20, Distant: distant})
		bare := blobs.New(b.store, blobs.Options{Distant: distant})
		absent := int64(0)
		for i := range 200 {
			id := ids[i*197]
			if i%2 > 0 {
				id = fmt.Sprintf("%016x%016x", r.Uint64(), r.Uint64())
			}
			got, sum := read(t, kept, ask(id))
			want, wantSum := read(t, bare, ask(id))
			if !slices.Equal(got, want) || len(got) != 1-i%2 || len(sum.Problems)+len(sum.Warnings) > 0 || sum.RuledOutByIDs != wantSum.RuledOutByIDs || sum.BlocksRead != wantSum.BlocksRead {
				t.Fatalf("distant %t, %s: %d records, want %d; %d blocks ruled out and %d read, want %d and %d; %v %v", distant, id, len(got), len(want),
					sum.RuledOutByIDs, sum.BlocksRead, wantSum.RuledOutByIDs, wantSum.BlocksRead, sum.Problems, sum.Warnings)
			}
			if sum.BlocksRead == 0 && i > 0 && !distant {
				absent += sum.Fetched
			}
			if again, sum := read(t, kept, ask(id)); !slices.Equal(again, want) || sum.Fetched > 0 && len(want) == 0 {
				t.Fatalf("distant %t, %s again: %d records, %d bytes fetched", distant, id, len(again), sum.Fetched)
			}
		}
		if absent > 0 {
			t.Errorf("%d bytes are fetched for ids that no block has", absent)
		}
	}
}

// Damage in ids is told by each read that comes to it, and others are not misled.
func TestKeptDamagedIDs(t *testing.T) {
	b := newBuilder(t, 64<<10)
	var recs []rec
	for i := range 20_000 {
		at := noon + int64(i)*1e6
		recs = append(recs, rec{service: "web", time: at, origin: origin(1), index: uint32(i), line: line(at, "info", "web", fmt.Sprintf("order%06d", i))})
	}
	body, m, _ := b.encode(recs)
	damaged := bytes.Clone(body)
	damaged[m.IDs.Offset+m.IDs.Length-1] ^= 1 // of the last bucket
	b.put("web/2026/11/27/1200/000001.log", damaged, m.Map())
	if m.IDs.Buckets < 3 {
		t.Fatalf("%d buckets", m.IDs.Buckets)
	}
	kept := blobs.New(b.store, blobs.Options{Indexes: indexcache.New(0), Findings: 1 << 20})
	warned := 0
	for i := range 100 {
		q := blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Filter: blobs.Filter{Words: []string{fmt.Sprintf("order%06d", i)}}}
		got, sum := read(t, kept, q)
		want, wantSum := read(t, blobs.New(b.store, blobs.Options{}), q)
		if !slices.Equal(got, want) || len(got) != 1 || len(sum.Problems) > 0 || fmt.Sprint(sum.Warnings) != fmt.Sprint(wantSum.Warnings) {
			t.Fatalf("%d: %d records, problems %v, warnings %v, want %v", i, len(got), sum.Problems, sum.Warnings, wantSum.Warnings)
		}
		warned += len(sum.Warnings)
	}
	if warned == 0 || warned == 100 {
		t.Errorf("%d of 100 reads tell the damage", warned)
	}
}
