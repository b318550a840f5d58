package filter_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"blobtail/blobfmt/filter"
)

// Runs of any length, at any place of a span and across spans, are found whole.
func TestRuns(t *testing.T) {
	words, notWords := regexp.MustCompile(`[a-z]{3,}`), regexp.MustCompile(`^[a-f]*$`)
	r := rand.New(rand.NewPCG(1, 5))
	b := filter.NewBuilder()
	for range 2000 {
		var text []byte
		for n := r.IntN(400); len(text) < n; {
			length := 1 + r.IntN(1<<r.IntN(9))
			switch r.IntN(4) {
			case 0:
				text = append(text, strings.Repeat("é", length)[:length]...)
			case 1:
				text = append(text, strings.Repeat(" [@`{/:", length)[:length]...)
			case 2:
				text = append(text, lettersOf(r, "abcxyzABCXYZ", length)...)
			default:
				text = append(text, lettersOf(r, "az09AZ", length)...)
			}
		}
		b.Reset()
		b.Block(text, nil)
		got, _ := b.AppendWords(nil)
		parsed, err := filter.ParseWords(got, 1)
		if err != nil {
			t.Fatal(err)
		}
		lower := bytes.ToLower(text)
		count := map[string]bool{}
		for _, w := range words.FindAllString(string(lower), -1) {
			if notWords.MatchString(w) {
				continue
			}
			count[w] = true
			in := []bool{true}
			if parsed.Rule(in, filter.Word{Text: w, Left: true, Right: true}); !in[0] {
				t.Fatalf("%q has the word %q, its list has not", text, w)
			}
		}
		if n, _ := binary.Uvarint(got[1:]); int(n) != len(count) { // behind the number of blocks
			t.Fatalf("%q has %d words, its list %d", text, len(count), n)
		}
	}
}

func lettersOf(r *rand.Rand, alphabet string, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[r.IntN(len(alphabet))]
	}
	return b
}
