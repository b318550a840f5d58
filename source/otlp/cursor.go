package otlp

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"blobtail/record"
)

// A cursor reads JSON token by token. It is as lenient as the readers of other collectors:
// null is an empty value of any kind, and what it skips needs only closed brackets and
// quotes. After a fault in the syntax it is at the end, and its methods find nothing.
type cursor struct {
	src   []byte
	at    int
	fault string // "" for none
}

func (c *cursor) fail(want string) {
	switch {
	case c.fault != "":
	case c.at >= len(c.src):
		c.fault = "not valid JSON: it ends too early"
	default:
		c.fault = fmt.Sprintf("not valid JSON: byte 0x%02x where %s should be", c.src[c.at], want)
	}
	c.at = len(c.src)
}

// next returns the first byte of the next token, 0 if there is none.
func (c *cursor) next() byte {
	if c.at < len(c.src) && c.src[c.at] > ' ' {
		return c.src[c.at]
	}
	return c.spaced()
}

// spaced is next behind white space.
func (c *cursor) spaced() byte {
	if c.at = skipSpace(c.src, c.at); c.at < len(c.src) {
		return c.src[c.at]
	}
	return 0
}

// enter goes into an array or object, and reports whether it has something. A value of
// another kind is skipped; wrong reports it, unless it is null.
func (c *cursor) enter(open byte) (has, wrong bool) {
	if b := c.next(); b != open {
		c.skip()
		return false, b != 'n'
	}
	c.at++
	if c.next() == open+2 { // both brackets are closed by the second character after
		c.at++
		return false, false
	}
	return c.fault == "", false
}

// more goes on behind an element or member, and reports whether there is another one.
func (c *cursor) more(open byte) bool {
	switch b := c.next(); {
	case b == ',':
		c.at++
		return true
	case b == open+2:
		c.at++
	default:
		c.fail("a comma or the end")
	}
	return false
}

// key reads a key of an object, as it is between its quotes, and the colon.
func (c *cursor) key() []byte {
	key, _ := c.quoted()
	if c.next() != ':' {
		c.fail("a colon")
		return nil
	}
	c.at++
	return key
}

// quoted reads a string, as it is between its quotes.
func (c *cursor) quoted() (inside []byte, escaped bool) {
	if c.next() != '"' {
		c.fail("a string")
		return nil, false
	}
	src, from := c.src, c.at+1
	for at := from; at < len(src); at++ {
		if at+8 <= len(src) {
			m := marks(binary.LittleEndian.Uint64(src[at:]))
			if m == 0 {
				at += 7
				continue
			}
			at += bits.TrailingZeros64(m) >> 3
		}
		switch src[at] {
		case '"':
			c.at = at + 1
			return src[from:at], escaped
		case '\\':
			escaped = true
			at++
		}
	}
	c.at = len(src)
	c.fail("")
	return nil, false
}

// has reports whether the next bytes are a text, and reads over them.
func (c *cursor) has(want string) bool {
	if len(c.src)-c.at >= len(want) && string(c.src[c.at:c.at+len(want)]) == want {
		c.at += len(want)
		return true
	}
	return false
}

// plain reads the rest of a string, behind its first quote. It returns false for one that has
// escapes or is very long.
func (c *cursor) plain(inside *[]byte) bool {
	from := c.at
	for at := from; at+8 <= len(c.src) && at-from < record.MaxRecord; at += 8 {
		if m := marks(binary.LittleEndian.Uint64(c.src[at:])); m != 0 {
			at += bits.TrailingZeros64(m) >> 3
			*inside, c.at = c.src[from:at], at+1
			return c.src[at] == '"'
		}
	}
	return false
}

// number reads the digits and signs of a number.
func (c *cursor) number() []byte {
	from := c.at
	c.word()
	return c.src[from:c.at]
}

// marks sets the high bit of the first of eight bytes that is a quote or a backslash. It may
// set those of later bytes that are not.
func marks(x uint64) uint64 {
	const low = 0x0101010101010101
	q, b := x^'"'*low, x^'\\'*low
	return ((q-low)&^q | (b-low)&^b) & (0x80 * low)
}

// skip reads over any value and returns its text.
func (c *cursor) skip() []byte {
	b := c.next()
	from := c.at
	switch b {
	case '"':
		c.quoted()
	case '{', '[':
		c.nested()
	default:
		if c.word(); c.at == from {
			c.fail("a value")
		}
	}
	if c.fault != "" {
		return nil
	}
	return c.src[from:c.at]
}

// nested reads over an array or object.
func (c *cursor) nested() {
	for depth := 0; c.at < len(c.src); {
		switch c.src[c.at] {
		case '"':
			c.quoted()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if c.at++; depth == 0 {
			return
		}
	}
	c.fail("")
}

// word reads over a number, true, false or null, if that is next.
func (c *cursor) word() {
	for c.at < len(c.src) {
		b := c.src[c.at]
		if b != '-' && b != '+' && b != '.' && (b < '0' || b > '9') && (b|0x20 < 'a' || b|0x20 > 'z') {
			break
		}
		c.at++
	}
}

// text reads the text of a string into the memory of s if it has escapes. The text of any
// other value is its JSON, of null nothing.
func (c *cursor) text(s *set) []byte {
	switch c.next() {
	case '"':
	case 'n':
		c.skip()
		return nil
	default:
		return c.raw(s)
	}
	inside, escaped := c.quoted()
	return s.unescaped(inside, escaped)
}

// raw returns the JSON of a value.
func (c *cursor) raw(s *set) []byte {
	t := c.skip()
	if len(t) > record.MaxRecord {
		s.tooLong()
		return nil
	}
	return t
}

// unescaped returns the text of a string.
func (s *set) unescaped(inside []byte, escaped bool) []byte {
	switch {
	case len(inside) > record.MaxRecord || escaped && len(s.text) > record.MaxRecord:
		s.tooLong()
		return nil
	case !escaped:
		return inside
	}
	from := len(s.text)
	s.text = record.AppendUnescaped(s.text, inside)
	return s.text[from:]
}

func skipSpace(b []byte, at int) int {
	for at < len(b) && (b[at] == ' ' || b[at] == '\n' || b[at] == '\r' || b[at] == '\t') {
		at++
	}
	return at
}
