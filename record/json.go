package record

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf8"
)

// Masks for checking eight bytes at once.
const (
	lowBits  = 0x0101010101010101
	highBits = 0x80 * lowBits
)

// A stringState is the result of scanning a string; 0 is plain ASCII.
type stringState uint8

const (
	stringDirty   stringState = 1 << iota // differs from its form in a canonical line
	stringEscaped                         // has escapes
	stringBad                             // is invalid
)

// special sets the high bit of the first of eight bytes that is a control character,
// a quote, a backslash or not ASCII. After that byte a borrow may set others.
func special(x uint64) uint64 {
	return ((x - ' '*lowBits) | ((x ^ '"'*lowBits) - lowBits) | ((x ^ '\\'*lowBits) - lowBits) | x) & highBits
}

// scanString scans a string from its first byte inside the quotes and returns the
// offset of the closing quote, or of the error.
func scanString(src []byte, i int) (int, stringState) {
	start := i
	for i+8 <= len(src) {
		x := binary.LittleEndian.Uint64(src[i:])
		if m := special(x); m != 0 {
			i += bits.TrailingZeros64(m) >> 3
			if src[i] == '"' {
				return i, 0
			}
			break
		}
		i += 8
	}
	return scanStringSlow(src, start, i)
}

// scanStringSlow continues at i with a string that is not just plain ASCII.
func scanStringSlow(src []byte, start, i int) (int, stringState) {
	state, ascii := stringState(0), true
	for {
		n, a := cleanLen(src[i:])
		i += n
		ascii = ascii && a
		if i >= len(src) || src[i] < ' ' {
			return i, stringBad
		}
		if src[i] == '"' {
			if !ascii && !utf8.Valid(src[start:i]) {
				state |= stringDirty
			}
			return i, state
		}
		n, plain := scanEscape(src[i:])
		if n <= 0 {
			return i - n, stringBad
		}
		if state |= stringEscaped; !plain {
			state |= stringDirty
		}
		i += n
	}
}

// cleanLen counts the bytes before the first control character, quote or backslash,
// and reports whether they are all ASCII.
func cleanLen(s []byte) (n int, ascii bool) {
	var high uint64
	for n+8 <= len(s) {
		x := binary.LittleEndian.Uint64(s[n:])
		// As in special; bytes that are not ASCII are masked out.
		m := ((x - ' '*lowBits) | ((x ^ '"'*lowBits) - lowBits) | ((x ^ '\\'*lowBits) - lowBits)) &^ x & highBits
		if m != 0 {
			k := bits.TrailingZeros64(m) &^ 7
			return n + k>>3, high|(x&highBits)<<(64-k) == 0
		}
		high |= x & highBits
		n += 8
	}
	for ; n < len(s); n++ {
		c := s[n]
		if c < ' ' || c == '"' || c == '\\' {
			break
		}
		high |= uint64(c & utf8.RuneSelf)
	}
	return n, high == 0
}

// scanEscape returns the length of the escape at the start of s, or minus the offset
// of the error. plain reports whether it is in canonical form.
func scanEscape(s []byte) (n int, plain bool) {
	if len(s) < 2 {
		return -len(s), false
	}
	switch s[1] {
	case '"', '\\', 'b', 'f', 'n', 'r', 't':
		return 2, true
	case '/':
		return 2, false
	case 'u':
		for i := 2; i < 6; i++ {
			if i >= len(s) || hexValue(s[i]) < 0 {
				return -i, false
			}
		}
		var buf [6]byte
		r := hex4(s[2:])
		return 6, r < ' ' && string(appendByte(buf[:0], byte(r))) == string(s[:6])
	}
	return -1, false
}

// shortEscapes are the letters of the short escapes of the control characters from \b
// to \r; \v has none.
const shortEscapes = "btn\x00fr"

func hexValue(c byte) int {
	if IsDigit(c) {
		return int(c - '0')
	}
	if c |= 0x20; c >= 'a' && c <= 'f' {
		return int(c-'a') + 10
	}
	return -1
}

// scanValue scans any value at the start of src.
func (p *Scanner) scanValue(src []byte) (end int, bad *RejectError) {
	if len(src) == 0 || src[0] != '"' {
		end, _, bad = p.scanOther(src, 0)
		return end, bad
	}
	end, st := scanString(src, 1)
	if st == stringBad {
		return 0, stringError(src, end)
	}
	return end + 1, nil
}

// scanOther scans a value that is no string. flags are those of its field.
func (p *Scanner) scanOther(src []byte, i int) (end int, flags uint8, bad *RejectError) {
	if i >= len(src) || src[i] != '{' && src[i] != '[' {
		end, bad = scanScalar(src, i)
		return end, 0, bad
	}
	end, dirty, bad := p.scanNested(src, i)
	switch {
	case p.nested.maybe:
		flags = valDirty | valRepeats
	case dirty:
		flags = valDirty
	}
	return end, flags, bad
}

// scanScalar scans a number, true, false or null.
func scanScalar(src []byte, i int) (end int, bad *RejectError) {
	if i >= len(src) {
		return 0, syntaxError(src, i, "")
	}
	word := ""
	switch c := src[i]; {
	case c == '-' || IsDigit(c):
		return scanNumber(src, i)
	case c == 't':
		word = "true"
	case c == 'f':
		word = "false"
	case c == 'n':
		word = "null"
	}
	for n := range len(word) {
		if i+n >= len(src) || src[i+n] != word[n] {
			return 0, syntaxError(src, i+n, "in a value")
		}
	}
	if word == "" {
		return 0, syntaxError(src, i, "where a value should begin")
	}
	return i + len(word), nil
}

// ValueLen returns the length of the JSON value at the start of src, 0 if there is none.
func ValueLen(src []byte) int {
	var p Scanner
	end, _ := p.scanValue(src)
	return end
}

// digits counts the digits at the start of s.
func digits(s []byte) int {
	for i, c := range s {
		if !IsDigit(c) {
			return i
		}
	}
	return len(s)
}

// scanNumber follows the grammar of numbers; the caller checks the character after
// one.
func scanNumber(src []byte, i int) (end int, bad *RejectError) {
	const in = "in a number"
	if src[i] == '-' {
		i++
	}
	n := digits(src[i:])
	if n == 0 {
		return 0, syntaxError(src, i, in)
	}
	if src[i] == '0' && n > 1 {
		return 0, syntaxError(src, i+1, in)
	}
	i += n
	if i < len(src) && src[i] == '.' {
		i++
		if n = digits(src[i:]); n == 0 {
			return 0, syntaxError(src, i, in)
		}
		i += n
	}
	if i < len(src) && src[i]|0x20 == 'e' {
		i++
		if i < len(src) && (src[i] == '+' || src[i] == '-') {
			i++
		}
		if n = digits(src[i:]); n == 0 {
			return 0, syntaxError(src, i, in)
		}
		i += n
	}
	return i, nil
}

// deepest is the depth at which a scan gives up: a value beyond it is an attack, which would
// cost a megabyte of brackets each time.
const deepest = 10_000

// scanNested scans an object or an array inside the record, without recursion.
func (p *Scanner) scanNested(src []byte, i int) (end int, dirty bool, bad *RejectError) {
	p.stack = p.stack[:0]
	p.nested.begin()
	for {
		if i, dirty = space(src, i, dirty); i >= len(src) {
			return 0, false, syntaxError(src, i, "")
		}
		switch c := src[i]; c {
		case '{', '[':
			p.stack = append(p.stack, c)
			if len(p.stack)+1 > MaxDepth && p.reject == nil {
				p.reject = &RejectError{Offset: i, Reason: "nested deeper than 64"}
			}
			if len(p.stack) > deepest {
				return 0, false, syntaxError(src, i, "that deep")
			}
			if c == '{' {
				p.nested.open()
			}
			if i, dirty = space(src, i+1, dirty); i < len(src) && src[i] == c+2 {
				break // it is empty
			}
			if c == '{' {
				if i, dirty, bad = p.scanKey(src, i, dirty); bad != nil {
					return 0, false, bad
				}
			}
			continue
		case '"':
			e, st := scanString(src, i+1)
			if st == stringBad {
				return 0, false, stringError(src, e)
			}
			i, dirty = e+1, dirty || st&stringDirty != 0
		default:
			if i, bad = scanScalar(src, i); bad != nil {
				return 0, false, bad
			}
		}
		if i, dirty, bad = p.scanAfter(src, i, dirty); bad != nil || len(p.stack) == 0 {
			return i, dirty, bad
		}
	}
}

// scanAfter continues after a value up to the next one, or to the end of the outermost.
func (p *Scanner) scanAfter(src []byte, i int, dirty bool) (int, bool, *RejectError) {
	for len(p.stack) > 0 {
		if i, dirty = space(src, i, dirty); i >= len(src) {
			return 0, false, syntaxError(src, i, "")
		}
		open := p.stack[len(p.stack)-1]
		switch src[i] {
		case open + 2: // both brackets are closed by the second character after
			i++
			p.stack = p.stack[:len(p.stack)-1]
			if open == '{' {
				p.nested.close()
			}
		case ',':
			if open == '{' {
				return p.scanKey(src, i+1, dirty)
			}
			return i + 1, dirty, nil
		default:
			return 0, false, syntaxError(src, i, "after a value")
		}
	}
	return i, dirty, nil
}

// scanKey scans a key and its colon inside a nested object.
func (p *Scanner) scanKey(src []byte, i int, dirty bool) (int, bool, *RejectError) {
	if i, dirty = space(src, i, dirty); i >= len(src) || src[i] != '"' {
		return 0, false, syntaxError(src, i, "where a key should begin")
	}
	end, st := scanString(src, i+1)
	if st == stringBad {
		return 0, false, stringError(src, end)
	}
	p.nested.add(src, i+1, end, st != 0)
	if i, dirty = space(src, end+1, dirty); i >= len(src) || src[i] != ':' {
		return 0, false, syntaxError(src, i, "after a key")
	}
	return i + 1, dirty || st&stringDirty != 0, nil
}

// space skips white space, which makes a value dirty.
func space(src []byte, i int, dirty bool) (int, bool) {
	if i < len(src) && isJSONSpace(src[i]) {
		return skipSpace(src, i), true
	}
	return i, dirty
}

func isJSONSpace(c byte) bool { return c <= ' ' && (c == ' ' || c == '\n' || c == '\r' || c == '\t') }

func skipSpace(src []byte, i int) int {
	for i < len(src) && isJSONSpace(src[i]) {
		i++
	}
	return i
}

// syntaxError describes the error at i, and its place in the grammar.
func syntaxError(src []byte, i int, where string) *RejectError {
	e := &RejectError{Offset: min(i, len(src)), Syntax: true}
	switch {
	case i >= len(src):
		e.Reason = "not valid JSON: it ends too early"
	case src[i] > ' ' && src[i] < 0x7f:
		e.Reason = fmt.Sprintf("not valid JSON: character '%c' %s", src[i], where)
	default:
		e.Reason = fmt.Sprintf("not valid JSON: byte 0x%02x %s", src[i], where)
	}
	return e
}

// stringError is syntaxError inside a string.
func stringError(src []byte, i int) *RejectError {
	if i < len(src) && src[i] >= ' ' {
		return syntaxError(src, i, "in an escape")
	}
	return syntaxError(src, i, "in a string")
}
