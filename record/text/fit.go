package text

import (
	"bytes"
	"strings"
)

// A form is one of lines, as some logger writes them. [fit] has its signs.
type form struct {
	signs string
	of    string // the letters that it may have
	level string // that of its lines
	line  string // an example
}

// A table has forms by the first byte of their lines, or by its kind, as [kindOf] tells.
type table [256][]form

// alone is added to the byte behind a single letter.
const alone = 0x80

// kindOf is the kind of lines that begin as s: 9 for a digit, ^ for a word in upper case, ~ for one in lower case.
// A letter in upper case that stands alone has that of the byte behind it, and alone.
func kindOf(s []byte) byte {
	switch c := s[0]; {
	case IsDigit(c):
		return '9'
	case c-'a' < 26:
		return '~'
	case c-'A' >= 26:
		return c
	}
	if len(s) > 1 && !isLetter(s[1]) {
		return kindOf(s[1:]) | alone
	}
	return '^'
}

// find returns the form that the first bytes of s have, with its length and its letter or name; nil for none.
func (t *table) find(s []byte) (f *form, n int, word []byte) {
	if len(s) == 0 {
		return nil, 0, nil
	}
	first := s
	if s[0] == '\x1b' {
		if first = s[skipCodes(s, 0):]; len(first) == 0 {
			return nil, 0, nil
		}
	}
	c, kind := first[0], kindOf(first)
	if len(t[c]) > 0 {
		f, n, word = t.of(c, s)
	}
	if f == nil && kind != c && len(t[kind]) > 0 {
		f, n, word = t.of(kind, s)
	}
	return f, n, word
}

// of is find among the forms of a kind.
func (t *table) of(kind byte, s []byte) (f *form, n int, word []byte) {
	for i := range t[kind] {
		f = &t[kind][i]
		if len(s) > 1 && len(f.signs) > 1 && s[0] == f.signs[0] && s[1] != '\x1b' { // the second byte spares most of them
			if c := f.signs[1]; isLetter(c) && s[1] != c || c == '^' && !isUpper(s[1]) {
				continue
			}
		}
		n, from, to := fit(f.signs, s)
		if n > 0 && (f.of == "" || strings.IndexByte(f.of, s[from]) >= 0) {
			return f, n, s[from:to]
		}
	}
	return nil, 0, nil
}

// fit returns how many bytes of s have a form, from its first byte on; 0 if they have it not. s[from:to] is
// the letter or the level in them, else the first name. Codes of colours may stand anywhere between its
// parts, and a blank at its end may lack at the end of the line. The signs of a form are:
//
//	9 a digit                   & digits           @ a clock, 15:04:05
//	^ a letter in upper case    ? any byte         $ a word of three such letters or more
//	~ a name                    + a level          ! the name of a pod, with the letters that Kubernetes adds
//	_ blanks, perhaps none      % columns of CSV   * at most 64 bytes up to the byte behind the sign
//	; what is behind it has to follow, and is no part of the form
//
// All other bytes stand for themselves.
func fit(signs string, s []byte) (n, from, to int) {
	end := 0
	for i := 0; i < len(signs); i++ {
		c := signs[i]
		if n < len(s) && s[n] == '\x1b' {
			n = skipCodes(s, n)
		}
		at := n
		switch c {
		case ';':
			end = n
			continue
		case '_':
			n = SkipBlanks(s, n)
			continue
		case '*':
			n += max(0, bytes.IndexByte(s[n:min(len(s), n+longestMark)], signs[i+1]))
			continue
		case '%':
			return columns(signs[i+1:], s, n)
		case '^', '?', '+':
			n = take(c, s, n)
			from, to = at, n
			for c == '+' && n < len(s) && IsDigit(s[n]) { // DEBUG1 to DEBUG5
				n++
			}
		case '$', '~', '!':
			if n = take(c, s, n); to == 0 {
				from, to = at, n
			}
		case '9', '&', '@':
			n = take(c, s, n)
		default:
			if n < len(s) && s[n] == c {
				n++
			} else if c == ' ' && n == len(s) && i == len(signs)-1 {
				return n, from, to
			}
		}
		if n == at {
			return 0, 0, 0
		}
	}
	if end > 0 {
		n = end
	}
	if s[0] == '\x1b' && (bytes.HasPrefix(s[n:], []byte("\x1b[0m")) || bytes.HasPrefix(s[n:], []byte("\x1b[39m"))) {
		n += bytes.IndexByte(s[n:], 'm') + 1 // the end of its colour
	}
	return n, from, to
}

// take returns the place behind the bytes of s at n that a sign stands for; n for none.
func take(sign byte, s []byte, n int) int {
	at := n
	switch sign {
	case '@':
		if n+8 <= len(s) && isClock(s[n:n+2], s[n+2:]) {
			for n += 8; n < len(s) && (IsDigit(s[n]) || s[n] == '.' || s[n] == ','); n++ {
			}
		}
	case '9', '&':
		for n < len(s) && IsDigit(s[n]) && (sign == '&' || n == at) {
			n++
		}
	case '^', '?':
		if n < len(s) && (isUpper(s[n]) || sign == '?') {
			n++
		}
	case '$':
		for n < len(s) && isUpper(s[n]) {
			n++
		}
	case '+':
		for n < len(s) && isLetter(s[n]) {
			n++
		}
	default:
		for n < len(s) && IsNameByte(s[n]) {
			n++
		}
	}
	if sign == '$' && n < at+3 || sign == '+' && levelMark(s[at:n]) == noLevel || sign == '!' && !isPod(s[at:n]) {
		return at
	}
	return n
}

// columns is fit for the first column of CSV from n on that has the signs, with a level in upper case.
func columns(signs string, s []byte, n int) (to, first, last int) {
	const most = 16
	for range most {
		if to, first, last = fit(signs, s[n:]); to > 0 && allUpper(s[n+first:n+last]) {
			return n + to, n + first, n + last
		}
		for quoted := false; n < len(s) && (quoted || s[n] != ','); n++ {
			quoted = quoted != (s[n] == '"')
		}
		if n++; n >= len(s) {
			break
		}
	}
	return 0, 0, 0
}

// isPod reports whether a name ends as that of a pod of a deployment or a job does:
// web-7d4b9c6f5d-x2x9z, job-29412060-x2x9z.
func isPod(name []byte) bool {
	const safe, last = "bcdfghjklmnpqrstvwxz2456789", 5
	n := len(name) - last - 1
	if n < 8 || name[n] != '-' {
		return false
	}
	hash := name[bytes.LastIndexByte(name[:n], '-')+1 : n]
	return len(hash) >= 8 && len(hash) <= 10 && len(hash) < n && len(bytes.Trim(name[n+1:], safe)) == 0 &&
		(allDigits(hash) || len(bytes.Trim(hash, safe)) == 0)
}
