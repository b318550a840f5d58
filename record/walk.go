package record

import (
	"bytes"
	"strconv"
)

// A Walker goes through the members of an object, or the elements of an array, in JSON that is
// known to be valid: a canonical line, or a value in one. White space between tokens is passed
// over. On any other text a Walker stops early. A stored line is walked for each name of a query,
// so a Walker does not repeat the checks that the parser of the sender's record has made.
//
// Member and Element take one part after another. To go into a part, take its place by Key or
// Item, then Enter it, go through it, and Leave it. Only one of both may be used for a part: a
// part that is not entered is passed by Value.
type Walker struct {
	b  []byte
	at int // of the byte before a part: { [ or ,
}

// Walk returns a Walker before the first part of an object or an array. The text may also begin
// with the comma before a member, as the rest of a line does.
func Walk(value []byte) Walker { return Walker{b: value} }

// Member returns the next key, without its quotes and still escaped, and its value.
func (w *Walker) Member() (key, value []byte, ok bool) {
	key, at := w.Key()
	if at < 0 {
		return nil, nil, false
	}
	value, ok = w.Value(at)
	return key, value, ok
}

// Element returns the next element of an array.
func (w *Walker) Element() (value []byte, ok bool) {
	at := w.Item()
	if at < 0 {
		return nil, false
	}
	return w.Value(at)
}

// Bytes returns the bytes that an array has as numbers; nil if it has anything else.
func (w Walker) Bytes() (raw []byte) {
	for {
		v, more := w.Element()
		if !more {
			return raw
		}
		n, err := strconv.ParseUint(string(v), 10, 8)
		if err != nil {
			return nil
		}
		raw = append(raw, byte(n))
	}
}

// Key returns the next key, without its quotes and still escaped, and the place of its value,
// which is negative if there is none.
func (w *Walker) Key() (key []byte, at int) {
	if w.at >= len(w.b) || w.b[w.at] != ',' && w.b[w.at] != '{' {
		return nil, -1
	}
	if at = w.space(w.at + 1); at >= len(w.b) || w.b[at] != '"' {
		if at < len(w.b) && w.b[at] == '}' {
			w.at = at // the object is empty
		}
		return nil, -1
	}
	end := StringEnd(w.b, at+1)
	if end < 0 {
		return nil, -1
	}
	key = w.b[at+1 : end-1]
	if at = w.space(end); at >= len(w.b) || w.b[at] != ':' {
		return nil, -1
	}
	if at = w.space(at + 1); at >= len(w.b) {
		return nil, -1
	}
	return key, at
}

// Item returns the place of the next element of an array, which is negative if there is none.
func (w *Walker) Item() (at int) {
	if w.at >= len(w.b) || w.b[w.at] != ',' && w.b[w.at] != '[' {
		return -1
	}
	if at = w.space(w.at + 1); at >= len(w.b) {
		return -1
	}
	if w.b[at] == ']' {
		w.at = at // the array is empty
		return -1
	}
	return at
}

// Value returns the value at a place, and passes it.
func (w *Walker) Value(at int) (value []byte, ok bool) {
	end := valueEnd(w.b, at)
	if end < 0 {
		return nil, false
	}
	w.at = w.space(end)
	return w.b[at:end], true
}

// First is the first byte of the value at a place, which says its type.
func (w *Walker) First(at int) byte { return w.b[at] }

// Enter goes into the object or the array at a place.
func (w *Walker) Enter(at int) { w.at = at }

// Leave passes an object or an array after its parts were gone through, and reports whether it
// ended there.
func (w *Walker) Leave() bool {
	if w.at >= len(w.b) || w.b[w.at] != '}' && w.b[w.at] != ']' {
		w.at = len(w.b)
		return false
	}
	w.at = w.space(w.at + 1)
	return true
}

// Done reports whether the whole text was passed.
func (w *Walker) Done() bool { return w.at >= len(w.b) }

// Skip goes to the first member that begins with a text, or nearer to it. The text begins with a
// comma and a quote, and with no comma, colon or bracket behind them, so it is no part of a string.
// Skip returns false if no member has it, at any depth.
func (w *Walker) Skip(start []byte) bool {
	at := bytes.Index(w.b, start)
	if at < 0 {
		return false
	}
	// If no object and no array begins before it, it is a member of this object.
	if at > 0 && bytes.IndexByte(w.b[1:at], '{') < 0 && bytes.IndexByte(w.b[1:at], '[') < 0 {
		w.at = at
	}
	return true
}

// space passes white space from a place on.
func (w *Walker) space(at int) int {
	for at < len(w.b) && isJSONSpace(w.b[at]) {
		at++
	}
	return at
}

// StringEnd returns the place behind the closing quote of a string; -1 if there is none. b[from] is
// the first byte inside the quotes.
func StringEnd(b []byte, from int) int {
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
	switch b[from] {
	case '"':
		return StringEnd(b, from+1)
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
			end := StringEnd(b, at+1)
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
