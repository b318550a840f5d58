package linezstd_test

import (
	"bytes"
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
		{"quotes", worst()},
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

// worst is a text in which each word has stood before, and no quote behind it.
func worst() []byte {
	b := bytes.Repeat([]byte("0123456789abcdefghijklmnop qrstuvwxyz"), 1000)
	for i := 0; len(b) < 1<<20; i++ {
		at := i * 7919 % 30000
		b = append(append(b, b[at:at+7]...), '"')
	}
	return b
}
