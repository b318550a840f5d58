package otlp

import (
	"bytes"
	"fmt"

	"blobtail/record"
)

// A cursor reads JSON token by token. It is as lenient as the readers of other collectors:
// null is an empty value of any kind, and what it skips needs only closed brackets and
// quotes. After a fault in the syntax it stays where it is, and its methods find nothing.
type cursor struct {
	src   []byte
	at    int
	fault string // "" for none
}

func (c *cursor) fail(want string) {
	if c.fault == "" && c.at >= len(c.src) {
		c.fault = "not valid JSON: it ends too early"
	} else if c.fault == "" {
		c.fault = fmt.Sprintf("not valid JSON: byte 0x%02x where %s should be", c.src[c.at], want)
	}
}

// next returns the first byte of the next token, 0 if there is none.
func (c *cursor) next() byte {
	if c.fault != "" {
		return 0
	}
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
	from := c.at + 1
	for at := from; ; {
		n := bytes.IndexByte(c.src[at:], '"')
		if n < 0 {
			c.at = len(c.src)
			c.fail("")
			return nil, false
		}
		end := at + n
		// Only a backslash since the last quote can escape this one.
		slash := bytes.IndexByte(c.src[at:end], '\\')
		if slash < 0 {
			c.at = end + 1
			return c.src[from:end], escaped
		}
		escaped = true
		for at += slash; at < end; {
			if c.src[at] == '\\' {
				at++ // with the one that it escapes
			}
			at++
		}
		if at == end {
			c.at = end + 1
			return c.src[from:end], true
		}
	}
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
		c.word()
	}
	if c.fault != "" {
		return nil
	}
	return c.src[from:c.at]
}

// nested reads over an array or object.
func (c *cursor) nested() {
	for depth := 0; c.fault == "" && c.at < len(c.src); {
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

// word reads over a number, true, false or null.
func (c *cursor) word() {
	from := c.at
	for c.at < len(c.src) {
		b := c.src[c.at]
		if b != '-' && b != '+' && b != '.' && (b < '0' || b > '9') && (b|0x20 < 'a' || b|0x20 > 'z') {
			break
		}
		c.at++
	}
	if c.at == from {
		c.fail("a value")
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
