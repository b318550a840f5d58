package tailindex

import (
	"strconv"
	"unicode/utf8"

	"blobtail/record"
)

const (
	levelAt   = 48  // where the level's word begins in a canonical line
	maxWord   = 256 // what is kept of the level's word in a line that is cut
	cutBefore = `","bytes":`
)

// appendCut appends the beginning of a canonical line, made whole again: its head,
// as much of its message as fits into MaxLine, and how long it was. The other
// fields are left out. It appends nothing for what is not a canonical line.
func appendCut(dst, line []byte) []byte {
	off, ok := record.LineMsg(line)
	if !ok {
		return dst
	}
	start := len(dst)
	word := prefix(line[levelAt:off], off)
	dst = append(dst, line[:levelAt]...)
	dst = append(dst, prefix(word, maxWord)...)
	dst = append(dst, line[levelAt+len(word):off]...)
	var tail [40]byte
	end := append(tail[:0], cutBefore...)
	end = strconv.AppendInt(end, int64(len(line)), 10)
	end = append(end, "}\n"...)
	dst = append(dst, prefix(line[off:], start+MaxLine-len(dst)-len(end))...)
	return append(dst, end...)
}

// prefix is the longest beginning of the inside of a JSON string, of at most n
// bytes, that splits neither an escape nor a character.
func prefix(s []byte, n int) []byte {
	n = min(n, len(s))
	i := 0
	for i < n && s[i] != '"' {
		step := 1
		switch {
		case s[i] == '\\' && i+1 < len(s) && s[i+1] == 'u':
			step = 6
		case s[i] == '\\':
			step = 2
		case s[i] >= utf8.RuneSelf:
			_, step = utf8.DecodeRune(s[i:])
		}
		if i+step > n {
			break
		}
		i += step
	}
	return s[:i]
}
