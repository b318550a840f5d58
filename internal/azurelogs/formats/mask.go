package formats

import (
	"bytes"
	"strings"
)

// masked stands for a signature, as in Azure's own logs.
const masked = "XXXXX"

// appendMasked appends a line to dst without the signatures of shared access (sig=…). Azure
// has replaced those of requests, and not those in other places, such as a referrer.
func appendMasked(dst, line []byte) []byte {
	from := 0                           // of the bytes that are not appended yet
	for i := 2; i < len(line); i += 3 { // one letter of each word of three is looked at
		at := i
		switch line[i] | 0x20 {
		case 's':
		case 'i':
			at = i - 1
		case 'g':
			at = i - 2
		default:
			continue
		}
		if at+3 > len(line) || line[at]|0x20 != 's' || line[at+1]|0x20 != 'i' || line[at+2]|0x20 != 'g' {
			continue
		}
		if begin, end := signature(line, at); begin > 0 {
			dst = append(append(dst, line[from:begin]...), masked...)
			from, i = end, end-1
		}
	}
	return append(dst, line[from:]...)
}

// signature returns the value of a parameter sig with its name at a place, also in a part of an
// address that was escaped once or more often: for an address, or for a string of JSON. begin is 0
// if this is no such parameter.
func signature(line []byte, at int) (begin, end int) {
	if at > 0 && isAlnum(line[at-1]) && !endsEscape(line[:at]) {
		return 0, 0
	}
	begin = at + len("sig")
	equals, n := character(line[begin:])
	if equals != '=' {
		return 0, 0
	}
	begin += n
	for end = begin; end < len(line); end += n {
		var c byte
		if c, n = character(line[end:]); !isAlnum(c) && strings.IndexByte("%+/=_~.-", c) < 0 {
			break
		}
	}
	if begin == end {
		return 0, 0
	}
	return begin, end
}

// character returns the first character of a text and the length of its spelling: as it is,
// as %3d, %253d and so on, or behind backslashes: \u003d, \\u003d, \/. It is 0 for one beyond
// ASCII, and '%' for a percent sign that begins no escape.
func character(text []byte) (c byte, n int) {
	if len(text) == 0 {
		return 0, 0
	}
	switch c = text[0]; c {
	case '%':
		n = 1
		for bytes.HasPrefix(text[n:], []byte("25")) {
			n += 2
		}
		if c, ok := hex(text[n:], 2); ok {
			return c, n + 2
		}
		return '%', 1
	case '\\':
		for n = 1; n < len(text) && text[n] == '\\'; {
			n++
		}
		if n == len(text) {
			return c, n
		}
		if c, ok := hex(bytes.TrimPrefix(text[n:], []byte("u00")), 2); ok && text[n] == 'u' {
			return c, n + len("u00") + 2
		}
		if text[n] == '/' {
			return '/', n + 1
		}
		return c, n
	}
	if c >= 0x80 {
		return 0, 1
	}
	return c, 1
}

// hex reads a number of digits.
func hex(text []byte, digits int) (c byte, ok bool) {
	if len(text) < digits {
		return 0, false
	}
	for _, d := range text[:digits] {
		switch {
		case d >= '0' && d <= '9':
			d -= '0'
		case d|0x20 >= 'a' && d|0x20 <= 'f':
			d = d | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		c = c<<4 | d
	}
	return c, true
}

// endsEscape reports whether a text ends in an escape of a character that may come before a
// parameter: %26, %3f, %0a, \u0026, \n and others, but no letter or digit.
func endsEscape(text []byte) bool {
	text = text[max(0, len(text)-longestEscape):]
	for _, begin := range `%\` {
		at := bytes.LastIndexByte(text, byte(begin))
		if at < 0 {
			continue
		}
		if c, n := character(text[at:]); at+n == len(text) {
			return !isAlnum(c)
		}
		if begin == '\\' && at+2 == len(text) {
			return true
		}
	}
	return false
}

// longestEscape is more than the length of an escape that was itself escaped some times.
const longestEscape = 16

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}
