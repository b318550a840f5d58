package filter_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"blobtail/blobfmt/filter"
)

// A row of full buckets answers each look-up as the buckets themselves do, from any of its marks, and
// has no other buckets. A damaged one does not mislead.
func TestRow(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 41))
	var blocks [][]string
	for range 20 {
		var texts []string
		for range 1500 {
			texts = append(texts, fmt.Sprintf("%016x%016x", r.Uint64(), r.Uint64()))
		}
		blocks = append(blocks, texts)
	}
	b := build(t, filter.NewBuilder(), blocks)
	stride, first := len(b.ids)/b.buckets, b.buckets/3
	if b.buckets < 6 {
		t.Fatalf("%d buckets", b.buckets)
	}
	stored := slices.Clone(b.ids[first*stride : 2*first*stride])
	stored[stride/2] ^= 4
	row := filter.NewRow(stored, first, stride, b.buckets)
	for range 20_000 {
		key := r.Uint32()
		at := filter.BucketOf(key, b.buckets)
		got, err := row.Find(key)
		if at <= first || at >= 2*first { // outside, or the damaged one
			if !errors.Is(err, filter.ErrBucket) {
				t.Fatalf("bucket %d: %v, %v", at, got, err)
			}
			continue
		}
		want, werr := filter.Find(b.ids[at*stride:][:stride], key, b.buckets)
		if err != nil || werr != nil || !slices.Equal(got, want) {
			t.Fatalf("key %d: %v, %v, want %v, %v", key, got, err, want, werr)
		}
	}
}

// A look-up of an id in a bucket that had one before, and by itself.
func BenchmarkFind(b *testing.B) {
	r := rand.New(rand.NewPCG(7, 42))
	texts := make([]string, 30_000)
	for i := range texts {
		texts[i] = fmt.Sprintf("%016x%016x", r.Uint64(), r.Uint64())
	}
	of := build(b, filter.NewBuilder(), [][]string{texts[:10_000], texts[10_000:20_000], texts[20_000:]})
	stride := len(of.ids) / of.buckets
	row := filter.NewRow(of.ids, 0, stride, of.buckets)
	b.Run("row", func(b *testing.B) {
		for b.Loop() {
			_, _ = row.Find(r.Uint32())
		}
	})
	b.Run("bucket", func(b *testing.B) {
		for b.Loop() {
			key := r.Uint32()
			_, _ = filter.Find(of.ids[filter.BucketOf(key, of.buckets)*stride:][:stride], key, of.buckets)
		}
	})
}
