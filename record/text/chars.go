package text

import (
	"bytes"

	"blobtail/record"
)

// SkipBlanks skips spaces and tabs.
func SkipBlanks(b []byte, off int) int {
	for off < len(b) && (b[off] == ' ' || b[off] == '\t' || b[off] == '\r') {
		off++
	}
	return off
}

// IsDigit reports whether a byte is a digit of ASCII.
func IsDigit(c byte) bool { return c-'0' < 10 }

// isWord reports whether a letter or a digit is at a place.
func isWord(s []byte, at int) bool {
	return at < len(s) && (IsDigit(s[at]) || (s[at]|0x20)-'a' < 26)
}

// LineEnd is where the line ends that off is in.
func LineEnd(body []byte, off int) int {
	if i := bytes.IndexByte(body[off:], '\n'); i >= 0 {
		return off + i
	}
	return len(body)
}

// LooksLikeObject reports whether a text begins as an object of JSON does.
func LooksLikeObject(b []byte) bool {
	if len(b) == 0 || b[0] != '{' {
		return false
	}
	i := SkipSpace(b, 1)
	return i < len(b) && (b[i] == '"' || b[i] == '}')
}

// all reports whether a text has bytes of a kind, and no others.
func all(s []byte, is func(c byte) bool) bool {
	for _, c := range s {
		if !is(c) {
			return false
		}
	}
	return len(s) > 0
}

func isUpper(c byte) bool   { return c-'A' < 26 }
func isLetter(c byte) bool  { return (c|0x20)-'a' < 26 }
func isHigh(c byte) bool    { return c >= 0x80 }
func isNoDigit(c byte) bool { return !IsDigit(c) }
func isPlain(c byte) bool   { return !isLetter(c) && !IsDigit(c) && c < 0x80 }

// allDigits reports whether a text is digits.
func allDigits(s []byte) bool { return all(s, IsDigit) }

func allUpper(s []byte) bool { return all(s, isUpper) }

func hasDigit(s []byte) bool { return len(s) > 0 && !all(s, isNoDigit) }

// IsNameByte reports whether a byte may be in a word, such as the name of a logger.
func IsNameByte(c byte) bool {
	const (
		low  = 0x3ff<<'0' | 1<<'.' | 1<<'-' | 1<<'/' | 1<<'#' | 1<<'$' | 1<<'*' | 1<<'\'' | 1<<'&' | 1<<'+' | 1<<'=' | 1<<'%'
		high = 0x3ffffff<<('A'-64) | 0x3ffffff<<('a'-64) | 1<<('_'-64) | 1<<('@'-64)
	)
	switch {
	case c < 64:
		return uint64(low)>>c&1 != 0
	case c < 128:
		return uint64(high)>>(c-64)&1 != 0
	}
	return true
}

// isClock reports whether a word is the hour of a clock such as 15:04:05.
func isClock(word, behind []byte) bool {
	return len(word) == 2 && allDigits(word) && len(behind) >= 6 &&
		behind[0] == ':' && allDigits(behind[1:3]) && behind[3] == ':' && allDigits(behind[4:6])
}

// IsCalendar reports whether a word is a month or a day of the week, as in the times of
// syslog.
func IsCalendar(word []byte) bool {
	switch string(word) {
	case "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
		"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun":
		return true
	}
	return false
}

// isDate reports whether a word is a date such as 20-Nov-2026 or 20/11/2026.
func isDate(word []byte) bool {
	if len(word) < len("1-1-2026") || len(word) > len("20-Nov-2026") || !IsDigit(word[0]) {
		return false
	}
	sep := []byte("-")
	if bytes.IndexByte(word, '-') < 0 {
		sep = []byte("/")
	}
	day, rest, _ := bytes.Cut(word, sep)
	month, year, ok := bytes.Cut(rest, sep)
	return ok && allDigits(day) && allDigits(year) && (allDigits(month) || IsCalendar(month))
}

// LooksTimed reports whether a line begins with a date and a clock in digits.
func LooksTimed(s []byte) bool {
	return len(s) > 20 && IsDigit(s[0]) && IsDigit(s[3]) && s[4] == s[7] && s[13] == ':' && s[16] == ':'
}

// Uncoloured returns a line without the codes of colours.
func Uncoloured(s []byte) []byte {
	if bytes.IndexByte(s, '\x1b') < 0 {
		return s
	}
	return record.AppendPlain(nil, s)
}

// skipCodes skips the codes of the colours of terminals.
func skipCodes(line []byte, at int) int {
	for bytes.HasPrefix(line[at:], []byte("\x1b[")) {
		n := at + len("\x1b[")
		for n < len(line) && (IsDigit(line[n]) || line[n] == ';') {
			n++
		}
		if n == len(line) || line[n] != 'm' {
			break
		}
		at = n + 1
	}
	return at
}

// SkipColours skips blanks and the colours of terminals.
func SkipColours(line []byte, at int) int {
	for {
		at = SkipBlanks(line, at)
		next := skipCodes(line, at)
		if next == at {
			return at
		}
		at = next
	}
}

// SkipSpace skips the white space of JSON.
func SkipSpace(b []byte, off int) int {
	for off < len(b) && (b[off] == ' ' || b[off] == '\n' || b[off] == '\r' || b[off] == '\t') {
		off++
	}
	return off
}
