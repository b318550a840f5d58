package linezstd_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"blobtail/blobfmt/linezstd"
	"blobtail/internal/dev/corpus"
	"blobtail/internal/dev/testkit"
)

// Each frame of the slow mode is smaller than that of the fast one.
func TestSlowFramesAreSmaller(t *testing.T) {
	fast, slow := linezstd.NewEncoder(), linezstd.NewSlow()
	for _, n := range []int{20 << 10, linezstd.MinSize, 1 << 20} {
		in := lines(n, 1)[:n]
		if own, other := len(slow.Append(nil, in)), len(fast.Append(nil, in)); own*100 > other*98 {
			t.Errorf("%d bytes of lines became %d, and %d in the fast mode", n, own, other)
		}
	}
}

// Logs come back: those of loghub too, which are no part of the repository, where they are beside it.
func TestLogs(t *testing.T) {
	var made bytes.Buffer
	if _, err := corpus.Write(&made, corpus.Options{Seed: 1, Records: 5000, Odd: true}); err != nil {
		t.Fatal(err)
	}
	inputs := map[string][]byte{"corpus": made.Bytes()}
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "shared", "data", "loghub", "*.ndjson"))
	for _, file := range files {
		var b []byte
		if b, err = os.ReadFile(file); err != nil {
			break
		}
		inputs[filepath.Base(file)] = b
	}
	if err != nil {
		t.Fatal(err)
	}
	checkAll(t, inputs)
}

// hostile returns texts of n bytes in which an encoder finds much to compare.
func hostile(n int) map[string][]byte {
	r := rand.New(rand.NewPCG(1, 1))
	almost := lines(1000, 1)[:300]
	var equal, growing, periods, fields []byte
	for i := 0; len(equal) < n; i++ {
		almost[r.IntN(len(almost))] ^= byte(r.IntN(4))
		equal = append(append(equal, almost...), '\n')
	}
	for i := 1; len(growing) < n; i++ {
		growing = append(append(growing, bytes.Repeat([]byte("a"), i%3000)...), 'b')
	}
	for i := 1; len(periods) < n; i++ {
		periods = append(periods, bytes.Repeat(lettersOf(r, "ab", 1+r.IntN(9)), 1+r.IntN(5000))...)
	}
	for len(fields) < 70_000 {
		fields = append(fields, "0123456789"...)
		fields = append(fields, byte(r.IntN(256)))
	}
	return map[string][]byte{
		"one letter":         bytes.Repeat([]byte("a"), n),
		"two letters":        lettersOf(r, "ab", n),
		"four letters":       lettersOf(r, "abcd", n),
		"every six letters":  deBruijn(10, 6)[:n],
		"nearly equal lines": equal[:n],
		"rows of a letter":   growing[:n],
		"short periods":      periods[:n],
		"long words":         worst()[:n],
		"Fibonacci's word":   fibonacci(n),
		"short copies":       shortCopies(r, n),
		"copies of fields":   bytes.Repeat(fields, n/len(fields)+1)[:n],
		"long copies":        bytes.Repeat(lettersOf(r, "0123456789abcdef", 100_003), n/100_003+1)[:n],
	}
}

// shortCopies is a text of three bytes from one of three offsets, again and again. A block of it
// has as many sequences as a block can have.
func shortCopies(r *rand.Rand, n int) []byte {
	text := make([]byte, 0, n)
	for len(text) < 60_000 {
		text = append(text, byte(r.Uint32()))
	}
	last := [3]int{60_000, 50_000, 40_000}
	for len(text) < n-3 {
		k := 1 + r.IntN(2)
		last[0], last[k] = last[k], last[0]
		at := len(text) - last[0]
		text = append(text, text[at:at+3]...)
	}
	return append(text, "end"...)[:n]
}

// deBruijn is a text that has each row of n of the first k letters once.
func deBruijn(k, n int) []byte {
	word, out := make([]byte, k*n), []byte(nil)
	var extend func(t, p int)
	extend = func(t, p int) {
		if t > n {
			if n%p == 0 {
				out = append(out, word[1:p+1]...)
			}
			return
		}
		word[t] = word[t-p]
		extend(t+1, p)
		for c := word[t-p] + 1; c < byte(k); c++ {
			word[t] = c
			extend(t+1, t)
		}
	}
	extend(1, 1)
	for i := range out {
		out[i] += 'a'
	}
	return out
}

func fibonacci(n int) []byte {
	a, b := []byte("a"), []byte("ab")
	for len(b) < n {
		a, b = b, append(bytes.Clone(b), a...)
	}
	return b[:n]
}

func TestHostileTexts(t *testing.T) { checkAll(t, hostile(700_000)) }

// No text takes much more time for each of its bytes than log lines do.
func TestSlowTakesBoundedTime(t *testing.T) {
	const n = 900_000
	e := linezstd.NewSlow()
	usual := lines(n, 1)[:n]
	for name, in := range hostile(n) {
		fine := func(usual, took time.Duration) bool { return took <= 8*usual }
		least, took := testkit.LeastCPU(func() { e.Append(nil, usual) }, func() { e.Append(nil, in) }, fine)
		t.Logf("%-20s %.2f of the CPU of lines", name, took.Seconds()/least.Seconds())
		if !fine(least, took) {
			t.Errorf("%s: %v, lines %v", name, took, least)
		}
	}
}

// A frame of text that is no lines takes no more memory than one of lines, but for the list
// of what is found.
func TestSlowKeepsItsMemory(t *testing.T) {
	e := linezstd.NewSlow()
	out := []byte(nil)
	for name, in := range hostile(900_000) {
		t.Run(name, func(t *testing.T) {
			out = e.Append(out[:0], in)
			if n := testing.AllocsPerRun(2, func() { out = e.Append(out[:0], in) }); n > 0 {
				t.Errorf("a frame allocates %v times", n)
			}
		})
	}
}

// The slow mode beside the others, by their sizes and CPU.
func BenchmarkSlow(b *testing.B) {
	in := lines(1<<20, 1)
	for name, e := range both() {
		b.Run(fmt.Sprint(name), func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			var out []byte
			for b.Loop() {
				out = e.Append(out[:0], in)
			}
			b.ReportMetric(float64(len(in))/float64(len(out)), "ratio")
		})
	}
}
