package filter_test

import (
	"bytes"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"

	"blobtail/blobfmt/filter"
	"blobtail/blobfmt/linezstd"
)

// The bytes that a compressor calls fresh touch all words and ids of a block.
func TestFresh(t *testing.T) {
	fast, slow := linezstd.NewEncoder(), linezstd.NewSlow()
	some, all := filter.NewBuilder(), filter.NewBuilder()
	for seed := range uint64(30) {
		z := interface {
			Append(dst, src []byte) []byte
			Fresh() []uint64
		}(fast)
		if seed%2 == 1 || seed%8 == 4 {
			z = slow
		}
		r := rand.New(rand.NewPCG(seed, 3))
		some.Reset()
		all.Reset()
		for range 3 {
			var lines []byte
			for i := range 300 + r.IntN(2000) {
				if seed%4 == 0 { // so each block of the frame begins with new ids
					lines = fmt.Appendf(lines, "%08x-%08x_%08x ", r.Uint32(), r.Uint32(), r.Uint32())
				}
				text := makeText(r)
				if r.IntN(3) > 0 {
					text = fmt.Sprintf("GET /api/%d took %d ms", r.IntN(100), r.IntN(1000))
				}
				lines = fmt.Appendf(lines, `{"ts":"2026-11-20T15:%02d:%02d.%09dZ","level":"info","service":"web","msg":"%s","id":"%016x%016x"}`+"\n",
					i/60%60, i%60, r.IntN(1e9), text, r.Uint64()>>r.IntN(60), r.Uint64())
			}
			z.Append(nil, lines)
			some.Block(lines, z.Fresh())
			all.Block(lines, nil)
			fresh := 0
			for _, set := range z.Fresh() {
				fresh += bits.OnesCount64(set)
			}
			if fresh > len(lines)*3/4 {
				t.Errorf("%d of %d bytes are fresh", fresh, len(lines))
			}
		}
		words, _ := some.AppendWords(nil)
		wantWords, _ := all.AppendWords(nil)
		ids, _ := some.AppendIDs(nil, 1<<30)
		wantIDs, _ := all.AppendIDs(nil, 1<<30)
		if !bytes.Equal(words, wantWords) || !bytes.Equal(ids, wantIDs) {
			t.Fatalf("seed %d: the fresh parts have other words or ids", seed)
		}
	}
}

// A token with many fresh parts, such as a dump in hex, is read once and not for each part.
func TestLongTokens(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 4))
	lines := []byte(`{"ts":"2026-11-20T15:04:05.000000000Z","level":"info","service":"web","msg":"`)
	for len(lines) < 512<<10 {
		lines = fmt.Appendf(lines, "00000000ffffffff%08x", r.Uint32())
	}
	lines = append(lines, "\"}\n"...)
	z, some, all := linezstd.NewEncoder(), filter.NewBuilder(), filter.NewBuilder()
	z.Append(nil, lines)
	begun := time.Now()
	all.Block(lines, nil)
	whole := time.Since(begun)
	begun = time.Now()
	some.Block(lines, z.Fresh())
	if took := time.Since(begun); took > 20*whole+time.Second { // half a minute if it is read for each
		t.Errorf("it takes %v by its fresh parts, %v whole", took, whole)
	}
}
