package linezstd_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"blobtail/blobfmt/linezstd"
)

// BenchmarkAppend has the zstd package's fastest level beside it.
func BenchmarkAppend(b *testing.B) {
	e, fastest := linezstd.NewEncoder(), newFastest(b)
	for _, bb := range []struct {
		name string
		in   []byte
	}{
		{"block", lines(1<<20, 1)},
		{"20KiB", lines(20<<10, 1)},
		{"words", bytes.Repeat([]byte("abcdefgh"), 1<<17)},
		{"long words", worst()},
	} {
		for name, encode := range map[string]func(dst, src []byte) []byte{
			"own":     e.Append,
			"fastest": func(dst, src []byte) []byte { return fastest.EncodeAll(src, dst) },
		} {
			b.Run(bb.name+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(bb.in)))
				b.ReportAllocs()
				var out []byte
				for b.Loop() {
					out = encode(out[:0], bb.in)
				}
				b.ReportMetric(float64(len(bb.in))/float64(len(out)), "ratio")
			})
		}
	}
}

// worst is a text of words that have stood before, in long words: the finder walks to
// their ends after each match.
func worst() []byte {
	r := rand.New(rand.NewPCG(1, 1))
	parts := make([][]byte, 300)
	for i := range parts {
		parts[i] = lettersOf(r, "abcdefghijklmnopqrstuvwxyz", 7)
	}
	var b []byte
	for len(b) < 1<<20 {
		b = append(b, parts[r.IntN(len(parts))]...)
	}
	return b
}
