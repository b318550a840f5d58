package stage

import "bytes"

// The scanners of this file find the ends of JSON values that are known to be valid. On any
// other text they stop early. A stored line is scanned for each name of a query, so they do not
// repeat the checks of the parser of the sender's record.

// stringEnd returns the place behind the closing quote of a string; -1 if there is none. b[from]
// is the first byte inside the quotes.
func stringEnd(b []byte, from int) int {
	for at := from; ; {
		n := bytes.IndexByte(b[at:], '"')
		if n < 0 {
			return -1
		}
		at += n
		escapes := 0
		for at-escapes > from && b[at-escapes-1] == '\\' {
			escapes++
		}
		at++
		if escapes%2 == 0 {
			return at
		}
	}
}

// valueEnd returns the place behind the value that begins at b[from]; -1 if there is none.
func valueEnd(b []byte, from int) int {
	if from >= len(b) {
		return -1
	}
	switch b[from] {
	case '"':
		return stringEnd(b, from+1)
	case '{', '[':
		return nestedEnd(b, from)
	}
	at := from
	for at < len(b) && b[at] > ' ' && b[at] != ',' && b[at] != '}' && b[at] != ']' {
		at++
	}
	if at == from {
		return -1
	}
	return at
}

// nestedEnd is valueEnd for an object or an array.
func nestedEnd(b []byte, from int) int {
	depth := 0
	for at := from; at < len(b); at++ {
		switch b[at] {
		case '"':
			end := stringEnd(b, at+1)
			if end < 0 {
				return -1
			}
			at = end - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return at + 1
			}
		}
	}
	return -1
}

// A cursor goes through the members of an object, or the elements of an array.
type cursor struct {
	b  []byte
	at int // of the byte before a member: { [ or ,
}

// skip goes to the first member of a canonical object that begins with a text, which begins with a
// comma, or nearer to it. It returns false if there is none at any depth.
func (c *cursor) skip(start []byte) bool {
	if start == nil {
		return true
	}
	at := bytes.Index(c.b, start)
	if at < 0 {
		return false
	}
	// If no object and no array begins before it, it is a member of this object.
	if at > 0 && bytes.IndexByte(c.b[1:at], '{') < 0 && bytes.IndexByte(c.b[1:at], '[') < 0 {
		c.at = at
	}
	return true
}

// space skips white space at a place.
func (c *cursor) space(at int) int {
	for at < len(c.b) && (c.b[at] == ' ' || c.b[at] == '\n' || c.b[at] == '\t' || c.b[at] == '\r') {
		at++
	}
	return at
}

// member returns the next key, without its quotes and still escaped, and its value.
func (c *cursor) member() (key, value []byte, ok bool) {
	key, at := c.key()
	if at < 0 {
		return nil, nil, false
	}
	value, ok = c.value(at)
	return key, value, ok
}

// key returns the next key and the place of its value, which is negative if there is none. The
// caller goes on behind the value: by value, or if that is an object from at on, and by leave.
func (c *cursor) key() (key []byte, at int) {
	if c.at >= len(c.b) || c.b[c.at] == '}' {
		return nil, -1
	}
	if at = c.space(c.at + 1); at >= len(c.b) || c.b[at] != '"' {
		if at < len(c.b) && c.b[at] == '}' {
			c.at = at // the object is empty
		}
		return nil, -1
	}
	end := stringEnd(c.b, at+1)
	if end < 0 {
		return nil, -1
	}
	key = c.b[at+1 : end-1]
	if at = c.space(end); at >= len(c.b) || c.b[at] != ':' {
		return nil, -1
	}
	if at = c.space(at + 1); at >= len(c.b) {
		return nil, -1
	}
	return key, at
}

// leave goes behind an object after its last member, and reports whether it ended.
func (c *cursor) leave() bool {
	if c.at >= len(c.b) || c.b[c.at] != '}' {
		c.at = len(c.b)
		return false
	}
	c.at = c.space(c.at + 1)
	return true
}

// element returns the next element of an array.
func (c *cursor) element() (value []byte, ok bool) {
	if c.at >= len(c.b) || c.b[c.at] == ']' {
		return nil, false
	}
	return c.value(c.at + 1)
}

// value returns the value at a place, and goes on to the byte behind it.
func (c *cursor) value(at int) ([]byte, bool) {
	at = c.space(at)
	end := valueEnd(c.b, at)
	if end < 0 {
		return nil, false
	}
	c.at = c.space(end)
	return c.b[at:end], true
}
