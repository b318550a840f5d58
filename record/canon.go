package record

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// appendCanonical appends the inside of a JSON string, escaped in the only way of
// canonical lines. A character that needs no escape is not escaped, so that a search
// for literal text works on stored bytes. A surrogate without its other half becomes
// the text \unnnn, since strict readers of JSON take no escape for it. Each byte that is
// no UTF-8 becomes the text \xnn.
func appendCanonical(dst, s []byte) []byte {
	for i := 0; i < len(s); {
		n, ascii := cleanLen(s[i:])
		dst = appendClean(dst, s[i:i+n], ascii)
		if i += n; i >= len(s) {
			break
		}
		r, n := decodeEscape(s[i:])
		i += n
		switch {
		case isSurrogate(r):
			dst = appendHalf(append(dst, '\\'), r)
		case r < utf8.RuneSelf:
			dst = appendByte(dst, byte(r))
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}

// AppendEscaped appends plain text with the escapes of the strings of a canonical
// line, so that a search for text can search for bytes.
func AppendEscaped(dst, text []byte) []byte {
	for i := 0; i < len(text); i++ {
		n, ascii := cleanLen(text[i:])
		dst = appendClean(dst, text[i:i+n], ascii)
		if i += n; i >= len(text) {
			break
		}
		dst = appendByte(dst, text[i])
	}
	return dst
}

// appendClean appends text that needs no escapes except for bytes that are no UTF-8.
func appendClean(dst, s []byte, ascii bool) []byte {
	if ascii || utf8.Valid(s) {
		return append(dst, s...)
	}
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		if r == utf8.RuneError && n == 1 {
			dst = append(dst, '\\', '\\', 'x', hexDigits[s[0]>>4], hexDigits[s[0]&15])
		} else {
			dst = append(dst, s[:n]...)
		}
		s = s[n:]
	}
	return dst
}

// appendByte appends an ASCII character, escaped if it must be.
func appendByte(dst []byte, c byte) []byte {
	switch {
	case c == '"' || c == '\\':
		return append(dst, '\\', c)
	case c >= ' ':
		return append(dst, c)
	case c >= '\b' && c <= '\r' && c != '\v':
		return append(dst, '\\', shortEscapes[c-'\b'])
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// decodeEscape decodes the escape at the start of s; the two halves of a surrogate
// pair are one. n is 0 if there is none.
func decodeEscape(s []byte) (r rune, n int) {
	if len(s) < 2 {
		return 0, 0
	}
	switch c := s[1]; c {
	case '"', '\\', '/':
		return rune(c), 2
	case 'b', 't', 'n', 'f', 'r':
		return '\b' + rune(strings.IndexByte(shortEscapes, c)), 2
	case 'u':
		return decodeUnicode(s)
	}
	return 0, 0
}

func decodeUnicode(s []byte) (r rune, n int) {
	if r = hex4(s[2:]); r < 0 {
		return 0, 0
	}
	if r&^0x3ff == 0xd800 && len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
		if low := hex4(s[8:]); low&^0x3ff == 0xdc00 {
			return 0x10000 + (r&0x3ff)<<10 + low&0x3ff, 12
		}
	}
	return r, 6
}

// hex4 is negative if there are not four hexadecimal digits.
func hex4(s []byte) rune {
	if len(s) < 4 {
		return -1
	}
	return rune(hexValue(s[0])<<12 | hexValue(s[1])<<8 | hexValue(s[2])<<4 | hexValue(s[3]))
}

// appendHalf appends the text for half a surrogate pair.
func appendHalf(dst []byte, r rune) []byte {
	return append(dst, '\\', 'u', hexDigits[r>>12], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}

func isSurrogate(r rune) bool { return r&^0x7ff == 0xd800 }

// AppendUnescaped appends the decoded text of the inside of a JSON string. Half a
// surrogate pair becomes the text \unnnn with lower-case digits. An invalid escape stays as
// written.
func AppendUnescaped(dst, s []byte) []byte {
	for {
		i := bytes.IndexByte(s, '\\')
		if i < 0 {
			return append(dst, s...)
		}
		dst = append(dst, s[:i]...)
		s = s[i:]
		r, n := decodeEscape(s)
		switch {
		case n == 0:
			n = 1
			dst = append(dst, s[0])
		case isSurrogate(r):
			dst = appendHalf(dst, r)
		default:
			dst = utf8.AppendRune(dst, r)
		}
		s = s[n:]
	}
}

// appendCompact appends a valid JSON value without white space between its tokens
// and with its strings in the canonical form.
func appendCompact(dst, value []byte) []byte {
	for i := 0; i < len(value); {
		switch c := value[i]; {
		case isJSONSpace(c):
			i++
		case c == '"':
			end, st := scanString(value, i+1)
			dst = append(dst, '"')
			if st&stringDirty == 0 {
				dst = append(dst, value[i+1:end]...)
			} else {
				dst = appendCanonical(dst, value[i+1:end])
			}
			dst = append(dst, '"')
			i = end + 1
		default:
			dst = append(dst, c)
			i++
		}
	}
	return dst
}

// CutText cuts text to at most n bytes, at the boundary of a character if there is
// one.
func CutText(text []byte, n int) []byte {
	if len(text) <= n {
		return text
	}
	for k := n; k > n-utf8.UTFMax && k > 0; k-- {
		if utf8.RuneStart(text[k]) {
			return text[:k]
		}
	}
	return text[:n]
}
