package text

import (
	"bytes"
)

// Sentence reports whether a text of one line surely shows no time and begins no trace, and shows
// no level but that of its first word: that is of letters, and no mark of a logger follows. Most
// messages are so, and are spared all that the readers of times, levels and traces look for. level
// is nil if the word is none in upper case.
func Sentence(s []byte) (level []byte, ok bool) {
	n := 0
	for n < len(s) && (s[n]|0x20)-'a' < 26 {
		n++
	}
	if n < 2 || n+2 >= len(s) || s[n] != ' ' || s[n+1] == ' ' || s[n+1] == '-' {
		return nil, false
	}
	if mark := levelMark(s[:n]); mark != noLevel {
		if !allUpper(s[:n]) || mark != sure {
			return nil, false
		}
		level = s[:n]
	}
	if IsCalendar(s[:n]) || mayStart(s) || s[0] == 'S' && s[1] == 'I' || s[len(s)-1] == '\'' {
		return nil, false
	}
	if _, digits := unix(s, n+1, false, 0); digits > 0 { // Unix time behind a mark
		return nil, false
	}
	for _, c := range s[n:min(len(s), longestHead)] {
		if isMark(c) {
			return nil, false
		}
	}
	return level, len(s) <= longestHead || bytes.IndexByte(s[longestHead:], '\n') < 0
}

// isMark reports whether loggers write a byte around times and levels, or a trace has it.
func isMark(c byte) bool {
	const (
		low  = 1<<32 - 1 | 1<<('#') | 1<<('(') | 1<<(')') | 1<<(':') | 1<<('<') | 1<<('=') | 1<<('>')
		high = 1<<('['-64) | 1<<(']'-64) | 1<<('`'-64) | 1<<('{'-64) | 1<<('|'-64) | 1<<('}'-64)
	)
	switch {
	case c < 64:
		return uint64(low)>>c&1 != 0
	case c < 128:
		return uint64(high)>>(c-64)&1 != 0
	}
	return false
}

// mayStart reports whether a line of four bytes or more may begin a trace with words that are always
// the same.
func mayStart(s []byte) bool {
	switch string(s[:4]) {
	case "Trac", "Fata", "Exce", "Exec", "Unca", "Unha", "Proc", "Stac", "pani", "fata", "unex", "runt", "http", "PHP ",
		"term", "libc", "Also", "*** ", "Segm", "** (", "thre", "goro", "erro":
		return true
	}
	return false
}
