package otlp

import (
	"encoding/base64"
	"math"
	"strconv"
	"unsafe"

	"blobtail/record"
)

// listJSON reads an array of attributes into s.
func (w *walker) listJSON(s *set) {
	c := &w.cursor
	has, wrong := c.Enter('[')
	if wrong {
		s.reject("not OTLP logs: attributes are no array", true)
	}
	for ; has; has = c.More('[') {
		a := s.next()
		if a != nil && a.plainJSON(c) {
			continue
		}
		if key, v := w.pairJSON(s, 1, false); a != nil {
			a.key, a.value = key, v
		}
	}
}

// plainJSON reads a KeyValue of the usual form, and reports whether it is one: without white
// space and escapes, with a text, a number or a boolean.
func (a *attribute) plainJSON(c *cursor) bool {
	from := c.At
	if c.Has(`{"key":"`) && c.Plain(&a.key) && c.Has(`,"value":{"`) && a.value.plainJSON(c) && c.Has(`}}`) {
		return true
	}
	c.At = from
	return false
}

// plainJSON reads the member of an AnyValue of the usual form, behind its first quote.
func (v *value) plainJSON(c *cursor) bool {
	switch {
	case c.Has(`stringValue":"`):
		v.kind = text
		return c.Plain(&v.bytes)
	case c.Has(`intValue":`):
		quoted := c.Has(`"`)
		*v = integerOf(c.Number())
		return v.kind == integer && (!quoted || c.Has(`"`))
	case c.Has(`doubleValue":`):
		*v = doubleOf(c.Number())
		return v.kind == double
	case c.Has(`boolValue":true`):
		*v = value{kind: boolean, bits: 1}
		return true
	case c.Has(`boolValue":false`):
		*v = value{kind: boolean}
		return true
	}
	return false
}

// readBodyJSON reads the body of the record. The members of a map are kept apart.
func (w *walker) readBodyJSON() {
	c, e := &w.cursor, &w.entry
	e.members, e.body = e.members[:0], value{}
	if c.Next() != '{' {
		e.body = w.valueJSON(&e.set, 1)
		return
	}
	for has, _ := c.Enter('{'); has; has = c.More('{') {
		key := c.Key()
		if string(key) != "kvlistValue" && string(key) != "kvlist_value" {
			if v, ok := w.chosenJSON(&e.set, key, 1); ok {
				e.body = v
			}
			continue
		}
		e.body, e.members = value{kind: members}, e.members[:0]
		for has, _ := c.Enter('{'); has; has = c.More('{') {
			if string(c.Key()) != "values" {
				c.Skip()
				continue
			}
			for has, _ := c.Enter('['); has; has = c.More('[') {
				key, v := w.pairJSON(&e.set, 1, false)
				if len(e.members) == record.MaxFields {
					e.tooMany()
					continue
				}
				e.members = append(e.members, attribute{key, v})
			}
		}
	}
}

// pairJSON reads a KeyValue. depth is that of the object with the key. within says to append
// it to s.json as a member.
func (w *walker) pairJSON(s *set, depth int, within bool) (key []byte, v value) {
	c := &w.cursor
	from, known := len(s.json), false
	has, wrong := c.Enter('{')
	if wrong {
		s.reject("not OTLP logs: a pair of key and value is no object", true)
	}
	for ; has; has = c.More('{') {
		switch name := c.Key(); string(name) {
		case "key":
			if t := c.text(s); !known {
				key, known = t, true
			}
		case "value":
			s.json = s.json[:from]
			v = w.valueJSON(s, depth)
		default:
			c.Skip()
		}
	}
	if within {
		w.insertKey(s, from, key, v)
	}
	return key, v
}

// insertKey makes a member of a key and the value that s.json has from an offset on, if it
// is nested: the key may have been behind it.
func (w *walker) insertKey(s *set, from int, key []byte, v value) {
	w.scratch = appendKey(w.scratch[:0], key)
	end := len(s.json)
	s.json = append(s.json, w.scratch...)
	if v.kind != nested {
		s.json = appendJSON(s.json, v)
		return
	}
	copy(s.json[from+len(w.scratch):], s.json[from:end])
	copy(s.json[from:], w.scratch)
}

// valueJSON reads an AnyValue. The JSON of an array or a map is at the end of s.json. A
// plain string or number is taken for what it is.
func (w *walker) valueJSON(s *set, depth int) (v value) {
	c := &w.cursor
	switch c.Next() {
	case '{':
	case '"':
		return value{kind: text, bytes: c.text(s)}
	default:
		return scalar(c.raw(s))
	}
	from := len(s.json)
	for has, _ := c.Enter('{'); has; has = c.More('{') {
		key := c.Key()
		s.json = s.json[:from] // of all values the last one counts
		if chosen, ok := w.chosenJSON(s, key, depth); ok {
			v = chosen
		} else if v.kind == nested {
			s.json = s.json[:from+len(v.bytes)]
		}
	}
	return v
}

// chosenJSON reads a member of an AnyValue. ok reports that it is a value.
func (w *walker) chosenJSON(s *set, key []byte, depth int) (v value, ok bool) {
	c := &w.cursor
	switch string(key) {
	case "stringValue", "string_value":
		return value{kind: text, bytes: c.text(s)}, true
	case "bytesValue", "bytes_value":
		return s.bytesOf(c.text(s)), true
	case "boolValue", "bool_value":
		return scalar(c.text(s)), true
	case "intValue", "int_value":
		return integerOf(c.text(s)), true
	case "doubleValue", "double_value":
		return doubleOf(c.text(s)), true
	case "arrayValue", "array_value":
		return w.nestedJSON(s, '[', depth+1), true
	case "kvlistValue", "kvlist_value":
		return w.nestedJSON(s, '{', depth+1), true
	}
	c.Skip()
	return v, false
}

// nestedJSON reads an ArrayValue or a KeyValueList, and appends its JSON to s.json.
func (w *walker) nestedJSON(s *set, open byte, depth int) value {
	c := &w.cursor
	if depth > record.MaxDepth {
		s.tooDeep()
		c.Skip()
		return value{}
	}
	from := len(s.json)
	s.json = append(s.json, open)
	for has, _ := c.Enter('{'); has; has = c.More('{') {
		if string(c.Key()) != "values" {
			c.Skip()
			continue
		}
		for has, _ := c.Enter('['); has; has = c.More('[') {
			if len(s.json) > from+1 {
				s.json = append(s.json, ',')
			}
			if open == '{' {
				w.pairJSON(s, depth, true)
			} else if v := w.valueJSON(s, depth); v.kind != nested {
				s.json = appendJSON(s.json, v)
			}
			if len(s.json) > 2*record.MaxRecord {
				s.tooLong()
				s.json = s.json[:from+1]
			}
		}
	}
	s.json = append(s.json, open+2)
	return value{kind: nested, bytes: s.json[from:]}
}

func integerOf(t []byte) value {
	n, err := strconv.ParseInt(unsafe.String(unsafe.SliceData(t), len(t)), 10, 64)
	if err != nil {
		return scalar(t)
	}
	return value{kind: integer, bits: uint64(n)}
}

// bytesOf returns the bytes of base64. Any other text is kept as it is.
func (s *set) bytesOf(t []byte) value {
	from := len(s.text)
	decoded, err := base64.StdEncoding.AppendDecode(s.text, t)
	if err != nil {
		return value{kind: text, bytes: t}
	}
	s.text = decoded
	return value{kind: data, bytes: s.text[from:]}
}

func doubleOf(t []byte) value {
	f, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(t), len(t)), 64)
	if err != nil {
		return scalar(t)
	}
	return value{kind: double, bits: math.Float64bits(f)}
}

// scalar returns a value of the text of a number, true, false or null; of any other text
// that text.
func scalar(t []byte) value {
	switch s := string(t); {
	case s == "true":
		return value{kind: boolean, bits: 1}
	case s == "false":
		return value{kind: boolean}
	case s == "null" || s == "":
		return value{}
	case record.ValueLen(t) != len(t):
		return value{kind: text, bytes: t}
	}
	return value{kind: literal, bytes: t}
}
