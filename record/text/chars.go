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

func IsDigit(c byte) bool { return c-'0' < 10 }

// IsWord reports whether a letter or a digit is at a place.
func IsWord(s []byte, at int) bool {
	return at < len(s) && (IsDigit(s[at]) || (s[at]|0x20)-'a' < 26)
}

func LineEnd(body []byte, off int) int {
	if i := bytes.IndexByte(body[off:], '\n'); i >= 0 {
		return off + i
	}
	return len(body)
}

func LooksLikeObject(b []byte) bool {
	if len(b) == 0 || b[0] != '{' {
		return false
	}
	i := SkipSpace(b, 1)
	return i < len(b) && (b[i] == '"' || b[i] == '}')
}

func AllDigits(s []byte) bool {
	for _, c := range s {
		if !IsDigit(c) {
			return false
		}
	}
	return len(s) > 0
}

func allLetters(s []byte) bool {
	for _, c := range s {
		if (c|0x20)-'a' >= 26 {
			return false
		}
	}
	return len(s) > 0
}

func allUpper(s []byte) bool {
	for _, c := range s {
		if c-'A' >= 26 {
			return false
		}
	}
	return len(s) > 0
}

func hasDigit(word []byte) bool {
	for _, c := range word {
		if IsDigit(c) {
			return true
		}
	}
	return false
}

func hasLetterOrDigit(word []byte) bool {
	for _, c := range word {
		if (c|0x20)-'a' < 26 || IsDigit(c) || c >= 0x80 {
			return true
		}
	}
	return false
}

// IsNameByte reports whether a byte may be in a word, such as the name of a logger.
func IsNameByte(c byte) bool {
	switch c {
	case '.', '_', '-', '/', '#', '@', '$', '*', '\'', '&', '+', '=', '%':
		return true
	}
	return IsDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80
}

// isClock reports whether a word is the hour of a clock such as 15:04:05.
func isClock(word, behind []byte) bool {
	return len(word) == 2 && AllDigits(word) && len(behind) >= 6 && behind[0] == ':' && AllDigits(behind[1:3]) && behind[3] == ':' && AllDigits(behind[4:6])
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
	day, rest, ok := bytes.Cut(word, []byte{'-'})
	sep := byte('-')
	if !ok {
		sep = '/'
		day, rest, ok = bytes.Cut(word, []byte{sep})
	}
	month, year, more := bytes.Cut(rest, []byte{sep})
	return ok && more && AllDigits(day) && AllDigits(year) && (AllDigits(month) || IsCalendar(month))
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

func SkipSpace(b []byte, off int) int {
	for off < len(b) && (b[off] == ' ' || b[off] == '\n' || b[off] == '\r' || b[off] == '\t') {
		off++
	}
	return off
}
