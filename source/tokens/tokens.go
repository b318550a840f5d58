// Package tokens reads JSON token by token, for protocols that know the shape of their bodies: it
// makes no values, and the caller reads only the parts that it needs. Set Src of a [Cursor], and
// go on from Enter or Next.
//
// It does not validate: a value that it skips needs only closed brackets and quotes. Package
// record checks each value that becomes part of a line.
package tokens

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// A Cursor is a place in a JSON text. It is as lenient as the readers of other collectors: null
// is an empty value of any kind. After a fault in the syntax it is at the end, and its methods
// find nothing. Only one goroutine may use it.
type Cursor struct {
	Src   []byte
	At    int    // offset of the next token, or of white space before it
	Fault string // the reason why no more can be read; "" for none
}

// Stop ends the reading for a reason, if there is none yet.
func (c *Cursor) Stop(reason string) {
	if c.Fault == "" {
		c.Fault = reason
	}
	c.At = len(c.Src)
}

// Fail ends the reading, because something else should be here.
func (c *Cursor) Fail(want string) {
	switch {
	case c.Fault != "":
	case c.At >= len(c.Src):
		c.Fault = "not valid JSON: it ends too early"
	default:
		c.Fault = fmt.Sprintf("not valid JSON: byte 0x%02x where %s should be", c.Src[c.At], want)
	}
	c.At = len(c.Src)
}

// Next returns the first byte of the next token, 0 if there is none. A NUL is a fault.
func (c *Cursor) Next() byte {
	if c.At < len(c.Src) && c.Src[c.At] > ' ' {
		return c.Src[c.At]
	}
	return c.spaced()
}

// spaced is Next behind white space.
func (c *Cursor) spaced() byte {
	if c.At = SkipSpace(c.Src, c.At); c.At == len(c.Src) {
		return 0
	}
	if c.Src[c.At] == 0 {
		c.Fail("a token")
		return 0
	}
	return c.Src[c.At]
}

// Enter goes into an array or object, and reports whether it has something. A value of
// another kind is skipped; wrong reports it, unless it is null.
func (c *Cursor) Enter(open byte) (has, wrong bool) {
	if b := c.Next(); b != open {
		c.Skip()
		return false, b != 'n'
	}
	c.At++
	if c.Next() == open+2 { // both brackets are closed by the second character after
		c.At++
		return false, false
	}
	return c.Fault == "", false
}

// More goes on behind an element or member, and reports whether there is another one.
func (c *Cursor) More(open byte) bool {
	switch b := c.Next(); {
	case b == ',':
		c.At++
		return true
	case b == open+2:
		c.At++
	default:
		c.Fail("a comma or the end")
	}
	return false
}

// Key reads a key of an object, as it is between its quotes, and the colon.
func (c *Cursor) Key() []byte {
	key, _ := c.Quoted()
	if c.Next() != ':' {
		c.Fail("a colon")
		return nil
	}
	c.At++
	return key
}

// Quoted reads a string, as it is between its quotes.
func (c *Cursor) Quoted() (inside []byte, escaped bool) {
	if c.Next() != '"' {
		c.Fail("a string")
		return nil, false
	}
	src, from := c.Src, c.At+1
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
			c.At = at + 1
			return src[from:at], escaped
		case '\\':
			escaped = true
			at++
		}
	}
	c.At = len(src)
	c.Fail("")
	return nil, false
}

// Has reports whether the next bytes are a text, and reads over them.
func (c *Cursor) Has(want string) bool {
	if len(c.Src)-c.At >= len(want) && string(c.Src[c.At:c.At+len(want)]) == want {
		c.At += len(want)
		return true
	}
	return false
}

// Plain reads the rest of a string, behind its first quote. It returns false for one that has
// escapes or is very long.
func (c *Cursor) Plain(inside *[]byte) bool {
	from := c.At
	for at := from; at+8 <= len(c.Src) && at-from < longest; at += 8 {
		if m := marks(binary.LittleEndian.Uint64(c.Src[at:])); m != 0 {
			at += bits.TrailingZeros64(m) >> 3
			*inside, c.At = c.Src[from:at], at+1
			return c.Src[at] == '"'
		}
	}
	return false
}

// Number reads the digits and signs of a number.
func (c *Cursor) Number() []byte {
	from := c.At
	c.word()
	return c.Src[from:c.At]
}

// longest is the longest string that Plain reads.
const longest = 1 << 20

// marks sets the high bit of the first of eight bytes that is a quote or a backslash. It may
// set those of later bytes that are not.
func marks(x uint64) uint64 {
	const low = 0x0101010101010101
	q, b := x^'"'*low, x^'\\'*low
	return ((q-low)&^q | (b-low)&^b) & (0x80 * low)
}

// Skip reads over any value and returns its text.
func (c *Cursor) Skip() []byte {
	b := c.Next()
	from := c.At
	switch b {
	case '"':
		c.Quoted()
	case '{', '[':
		c.nested()
	default:
		if c.word(); c.At == from {
			c.Fail("a value")
		}
	}
	if c.Fault != "" {
		return nil
	}
	return c.Src[from:c.At]
}

// nested reads over an array or object.
func (c *Cursor) nested() {
	for depth := 0; c.At < len(c.Src); {
		switch c.Src[c.At] {
		case '"':
			c.Quoted()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if c.At++; depth == 0 {
			return
		}
	}
	c.Fail("")
}

// word reads over a number, true, false or null, if that is next.
func (c *Cursor) word() {
	for c.At < len(c.Src) {
		b := c.Src[c.At]
		if b != '-' && b != '+' && b != '.' && (b < '0' || b > '9') && (b|0x20 < 'a' || b|0x20 > 'z') {
			break
		}
		c.At++
	}
}

// SkipSpace returns the offset of the first byte from at on that is no white space.
func SkipSpace(b []byte, at int) int {
	for at < len(b) && (b[at] == ' ' || b[at] == '\n' || b[at] == '\r' || b[at] == '\t') {
		at++
	}
	return at
}
