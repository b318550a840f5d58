package search_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"blobtail/reading/blobs/search"
)

// A long text is found at each of its places, however near they and other parts of it are to each
// other and to the ends of the block.
func TestLongTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(32, 1))
	for range 20_000 {
		letters := "0123456789abcdef"[:1+r.IntN(16)]
		some := func(n int) string {
			var s strings.Builder
			for range n {
				s.WriteByte(letters[r.IntN(len(letters))])
			}
			return s.String()
		}
		text := some(28 + r.IntN(12))
		var block []byte
		for range r.IntN(6) {
			switch at := r.IntN(len(text)); r.IntN(4) {
			case 0:
				block = append(block, text...)
			case 1:
				block = append(block, text[at:]...)
			case 2:
				block = append(block, text[:at]...)
			default:
				block = append(block, some(r.IntN(150))...)
			}
		}
		f, pos := search.Fixed(text, false).Finder(block), 0
		for {
			want := len(block)
			if i := bytes.Index(block[pos:], []byte(text)); i >= 0 {
				want = pos + i
			}
			if got := f.From(pos); got != want {
				t.Fatalf("%s in %s from %d on: %d, want %d", text, block, pos, got, want)
			}
			if pos = want + 1; want == len(block) {
				break
			}
		}
	}
}
