package body

import "bytes"

// isSentence reports whether a text of one line surely shows neither a time nor a level, and begins
// no trace: its first word is of letters and no level, and no mark of a logger follows. Most messages
// are so, and are spared all that the readers of times, levels and traces look for.
func isSentence(s []byte) bool {
	n := 0
	for n < len(s) && (s[n]|0x20)-'a' < 26 {
		n++
	}
	if n < 2 || n+2 >= len(s) || s[n] != ' ' || s[n+1] == ' ' || s[n+1] == '-' {
		return false
	}
	if n >= 3 && beginsLevel(s) || isCalendar(s[:n]) || mayStart(s) || s[0] == 'S' && s[1] == 'I' || s[len(s)-1] == '\'' {
		return false
	}
	for _, c := range s[n:min(len(s), longestHead)] {
		if isMark(c) {
			return false
		}
	}
	return len(s) <= longestHead || bytes.IndexByte(s[longestHead:], '\n') < 0
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
