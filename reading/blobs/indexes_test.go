package blobs_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"blobtail/blobfmt"
	"blobtail/reading/blobs"
	"blobtail/reading/blobs/indexcache"
)

// With the indexes kept, a histogram fetches nothing of blobs that it has seen, whether or not
// they overlap or were compacted, and only the index of a new one. Its answer stays the same.
func TestKeptIndexes(t *testing.T) {
	for _, distant := range []bool{false, true} {
		b := newBuilder(t, 500)
		all, _ := rewritten(t, b)
		for i := range 3 { // these overlap
			recs := some("web", 3000, uint64(100+i))
			b.add(time.Hour, recs)
			all = append(all, recs...)
		}
		w := &watched{BlobStore: b.store}
		cache := indexcache.New(0)
		r := blobs.New(w, blobs.Options{Indexes: cache, Distant: distant})
		bare := blobs.New(b.store, blobs.Options{})
		histogram := func(r *blobs.Reader) (text string, sum blobs.Summary) {
			t.Helper()
			plan, err := r.Plan(t.Context(), blobs.Query{Services: []string{"web"}, Range: blobs.Always()})
			if err != nil {
				t.Fatal(err)
			}
			out, sum, err := plan.Histogram(t.Context(), blobs.Buckets{Length: time.Minute})
			if err != nil || !sum.Complete() {
				t.Fatal(err, sum.Problems)
			}
			return fmt.Sprint(out, sum.Records), sum
		}
		want, _ := histogram(bare)
		for round := range 3 {
			w.gets = nil
			got, sum := histogram(r)
			if got != want {
				t.Errorf("round %d: %s, want %s", round, got, want)
			}
			if round > 0 && (len(w.gets) > 0 || sum.BlobsOpened > 0) {
				t.Errorf("round %d: %d blobs opened by %d GETs: %q", round, sum.BlobsOpened, len(w.gets), w.gets)
			}
		}
		got, sum := read(t, r, blobs.Query{Services: []string{"web"}, Range: blobs.Always()})
		if want := lines(all); !slices.Equal(got, want) || sum.BlobsOpened != 5 {
			t.Errorf("%d lines of %d blobs are read, want %d", len(got), sum.BlobsOpened, len(want))
		}
		key, _ := b.add(time.Hour, some("web", 10, 200))
		want, _ = histogram(bare)
		w.gets = nil
		if got, _ := histogram(r); got != want || slices.ContainsFunc(w.gets, func(k string) bool { return k != key }) {
			t.Errorf("with a new blob: %q", w.gets)
		}
	}
}

// A blob of another length under the name and batch of a kept index is not read by that index.
func TestKeptIndexOfAnother(t *testing.T) {
	b := newBuilder(t, 500)
	recs := some("web", 300, 1)
	_, id := b.add(time.Hour, recs)
	cache := indexcache.New(0)
	r := blobs.New(b.store, blobs.Options{Indexes: cache})
	q := blobs.Query{Services: []string{"web"}, Range: blobs.Range{From: recs[1].time, To: blobs.Newest}}
	if got, _ := read(t, r, q); len(got) != 299 {
		t.Fatalf("%d lines", len(got))
	}
	other := newBuilder(t, 500)
	key, otherID := other.add(time.Hour, some("web", 200, 1))
	if id != otherID || cache.Get(key, blobfmt.BatchID(id)) == nil {
		t.Fatal("the second store has another blob")
	}
	if got, sum := read(t, blobs.New(other.store, blobs.Options{Indexes: cache}), q); len(got) != 199 || !sum.Complete() {
		t.Errorf("%d lines, %v", len(got), sum.Problems)
	}
}
