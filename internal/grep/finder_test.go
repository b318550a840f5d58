package grep_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"blobtail/internal/grep"
)

// A Finder finds each place of a text in a block, wherever it lies, and whatever else the block has.
func TestFinder(t *testing.T) {
	const letters = "abcdefghijklmnop"
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		random := func(n, of int) []byte {
			text := make([]byte, n)
			for i := range text {
				text[i] = letters[r.IntN(of)]
			}
			return text
		}
		of := 1 + r.IntN(len(letters)) // few: parts of the text are everywhere
		text := random(1+r.IntN(40), of)
		block := random(r.IntN(6000), of)
		for range r.IntN(5) {
			if end := len(block) - len(text); end >= 0 {
				copy(block[[]int{0, end, r.IntN(end + 1)}[r.IntN(3)]:], text)
			}
		}
		f := grep.Fixed(string(text), false).Finder(block)
		for pos := 0; ; {
			want := len(block)
			if i := bytes.Index(block[pos:], text); i >= 0 {
				want = pos + i
			}
			got := f.From(pos)
			if got != want {
				t.Fatalf("seed %d: %q is at %d, and not at %d, from %d on in %d bytes", seed, text, want, got, pos, len(block))
			}
			if pos = got + 1 + r.IntN(len(text)); pos >= len(block) {
				break
			}
		}
	}
}

func BenchmarkFinder(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	var block []byte
	for i := 0; len(block) < 512<<10; i++ {
		block = fmt.Appendf(block, `{"ts":"2026-11-10T12:%02d:%02d.000000000Z","level":"debug","service":"api-gateway","msg":"outbound request GET http://node-%d.internal:8080/api/v1/orders/%d attempt=%d timeout=%d.%02dms","request_id":"%016x%016x","host":"node-%d","status":200}`+"\n",
			i/60%60, i%60, r.IntN(40), r.IntN(50000), r.IntN(100), r.IntN(50), r.IntN(100), r.Uint64(), r.Uint64(), r.IntN(40))
	}
	for _, text := range []string{"timeout after ", "connection refused by peer", "4e6fce0a08cb", "NullPointerException", "mailbox"} {
		b.Run(text, func(b *testing.B) {
			p := grep.Fixed(text, false)
			b.SetBytes(int64(len(block)))
			for b.Loop() {
				if p.Finder(block).From(0) != len(block) {
					b.Fatal("it is there")
				}
			}
		})
	}
}
