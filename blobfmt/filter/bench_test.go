package filter_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"blobtail/blobfmt/filter"
)

// The cost of the filters of a blob of eight blocks. Each line has two ids.
func BenchmarkBuilder(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	var blocks [8][]byte
	for i := range blocks {
		for len(blocks[i]) < 500<<10 {
			blocks[i] = fmt.Appendf(blocks[i], `{"ts":"2026-11-20T15:04:%02d.%09dZ","level":"info","service":"web","msg":"request done in %d ms","trace":"%016x%016x","user":"%08x"}`+"\n",
				r.IntN(60), r.IntN(1e9), r.IntN(900), r.Uint64(), r.Uint64(), r.Uint32())
		}
		b.SetBytes(int64(len(blocks)) * int64(len(blocks[i])))
	}
	f := filter.NewBuilder()
	var out []byte
	for b.Loop() {
		f.Reset()
		for _, lines := range blocks {
			f.Block(lines, nil)
		}
		words, _ := f.AppendWords(out[:0])
		out, _ = f.AppendIDs(words, 1<<20)
	}
	b.ReportMetric(float64(len(out)), "bytes")
}
