package rules

import (
	"bytes"
	"errors"

	"blobtail/record"
)

// errLine says that a line is not canonical, which no sender can cause.
var errLine = errors.New("a line for the rules is not canonical")

// maxDepth is more than the depth of any canonical line.
const maxDepth = record.MaxDepth + 2

// A rewriter masks values in canonical lines. It belongs to one goroutine.
type rewriter struct {
	masks []mask
	line  []byte
	walk  record.Walker
	out   []byte // the rewritten part
	from  int    // line from here on is not in out yet
	path  []byte // the name of the value, from the top, in lower case
	depth int
	text  []byte // room for a decoded text
	raw   bool   // the message is not masked here
	hits  uint64 // the rules with a mask that had an effect
}

// mask appends a line with its values masked to dst. ok is false if it stays as it is; then
// nothing is appended.
func (w *rewriter) mask(dst, line []byte, masks []mask) (_ []byte, ok bool, err error) {
	w.hits = 0
	active := uint64(0) // the masks of all values
	for i := range masks {
		if m := &masks[i]; len(m.field) == 0 && m.may(line) {
			active |= 1 << i
		} else if len(m.field) > 0 {
			active |= named
		}
	}
	if active == 0 {
		return dst, false, nil
	}
	w.masks, w.line, w.walk, w.out, w.from, w.path, w.depth = masks, line, record.Walk(line), dst, 0, w.path[:0], 0
	if !w.object(active) || !w.walk.Done() {
		return dst, false, errLine
	}
	if w.hits == 0 {
		return dst, false, nil
	}
	return append(w.out, line[w.from:]...), true, nil
}

// named is the bit that says that some masks have a field.
const named = 1 << MostMasks

// value masks the value at a place, and reports whether the line is valid so far. Names of
// fields in it have to be compared if active has the bit named.
func (w *rewriter) value(at int, active uint64) bool {
	if active == 0 {
		_, ok := w.walk.Value(at)
		return ok
	}
	for i := range w.masks {
		if active>>i&1 != 0 && w.masks[i].find == nil {
			w.hits |= 1 << w.masks[i].rule
			value, ok := w.walk.Value(at)
			return ok && w.put(at, value, []byte(w.masks[i].with))
		}
	}
	switch c := w.walk.First(at); {
	case c == '{':
		w.walk.Enter(at)
		return w.object(active)
	case c == '[':
		w.walk.Enter(at)
		return w.array(active)
	case active&^named != 0 && (c == '"' || c == '-' || isDigit(c)):
		return w.scalar(at, active)
	}
	_, ok := w.walk.Value(at)
	return ok
}

// object masks the members of an object that was entered.
func (w *rewriter) object(active uint64) bool {
	if w.depth++; w.depth > maxDepth {
		return false
	}
	defer func() { w.depth-- }()
	outer := len(w.path)
	for {
		key, at := w.walk.Key()
		if at < 0 {
			return w.walk.Leave()
		}
		inside := active
		if active&named != 0 {
			if outer > 0 {
				w.path = append(w.path, '.')
			}
			w.path = record.AppendUnescaped(w.path, key)
			lower(w.path[outer:])
			inside |= w.fields()
		}
		if w.depth == 1 && w.kept(key) {
			inside = 0
		}
		if !w.value(at, inside) {
			return false
		}
		w.path = w.path[:outer]
	}
}

// kept reports whether the value of a key at the top level is not masked: the time, the
// service, and a level that is known.
func (w *rewriter) kept(key []byte) bool {
	switch string(key) {
	case "ts", "service":
		return true
	case "msg":
		return w.raw
	case "level":
		return record.LineLevel(w.line) != record.Other
	}
	return false
}

// fields returns the masks of the field w.path.
func (w *rewriter) fields() (found uint64) {
	for i := range w.masks {
		if m := &w.masks[i]; len(m.field) > 0 && matchField(m.field, w.path) {
			found |= 1 << i
		}
	}
	return found
}

// array masks the items of an array that was entered. They have the name of the array.
func (w *rewriter) array(active uint64) bool {
	if w.depth++; w.depth > maxDepth {
		return false
	}
	defer func() { w.depth-- }()
	for {
		at := w.walk.Item()
		if at < 0 {
			return w.walk.Leave()
		}
		if !w.value(at, active) {
			return false
		}
	}
}

// scalar masks the string or number at a place. A number with a match becomes a string.
func (w *rewriter) scalar(at int, active uint64) bool {
	value, ok := w.walk.Value(at)
	if !ok {
		return false
	}
	text := value
	if text[0] == '"' {
		if text = text[1 : len(text)-1]; bytes.IndexByte(text, '\\') >= 0 {
			w.text = record.AppendUnescaped(w.text[:0], text)
			text = w.text
		}
	}
	hit := false
	for i := range w.masks {
		if active>>i&1 != 0 {
			next, ok := w.masks[i].find.replace(text)
			if text = next; ok {
				hit = true
				w.hits |= 1 << w.masks[i].rule
			}
		}
	}
	return !hit || w.put(at, value, text)
}

// put replaces the value at a place by a text.
func (w *rewriter) put(at int, value, text []byte) bool {
	w.out = append(w.out, w.line[w.from:at]...)
	w.out = append(w.out, '"')
	w.out = record.AppendEscaped(w.out, text)
	w.out = append(w.out, '"')
	w.from = at + len(value)
	return true
}
