package rig

import (
	"bufio"
	"io"
	"iter"
	"os"
)

// longestLine bounds a line of a corpus or an answer.
const longestLine = 16 << 20

// Lines are the lines of a file, such as a corpus, without their ends. A line is valid until the
// next one. If they cannot be read, the last pair is an error.
func Lines(file string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		f, err := os.Open(file)
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.Close()
		LinesOf(f)(yield)
	}
}

// LinesOf are the lines of a reader, as [Lines] has those of a file.
func LinesOf(r io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(make([]byte, 1<<20), longestLine)
		for lines.Scan() {
			if !yield(lines.Bytes(), nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(nil, err)
		}
	}
}
