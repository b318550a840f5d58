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
	from, choice := c.At, choice{}
	for has, _ := c.Enter('{'); has; has = c.More('{') {
		key := c.Key()
		if string(key) != "kvlistValue" && string(key) != "kvlist_value" || c.Next() == 'n' {
			w.chooseJSON(&e.set, key, 1, &choice)
			continue
		}
		choice.values++
		choice.value = value{kind: members}
		e.members = e.members[:0]
		fits := w.eachValueJSON('{', func() {
			key, v := w.pairJSON(&e.set, 1, false)
			if len(e.members) == record.MaxFields {
				e.tooMany()
				return
			}
			e.members = append(e.members, attribute{key, v})
		})
		choice.misfit = choice.misfit || !fits
	}
	e.body = w.resultJSON(&e.set, from, &choice)
}

// A choice is the value of an AnyValue, so far.
type choice struct {
	value  value
	values int  // members with a value that is not null: one is right
	other  bool // members that have no meaning
	misfit bool // a value has another form than its name says
}

// resultJSON returns the chosen value of an AnyValue that begins at from. If its form is wrong,
// this is the JSON of all of it, so that nothing is lost.
func (w *walker) resultJSON(s *set, from int, c *choice) value {
	switch {
	case w.cursor.Fault != "":
		return value{}
	case !c.misfit && (c.values == 1 || c.values == 0 && !c.other):
		return c.value
	case w.cursor.At-from > record.MaxRecord:
		s.tooLong()
		return value{}
	}
	return value{kind: literal, bytes: w.body[from:w.cursor.At]}
}

// eachValueJSON calls read for each element of the values of an ArrayValue or a KeyValueList. It
// reports whether the value has this form.
func (w *walker) eachValueJSON(open byte, read func()) (fits bool) {
	c := &w.cursor
	has, wrong := c.Enter('{')
	known, other := false, false
	for ; has; has = c.More('{') {
		if string(c.Key()) != "values" {
			other = other || c.Next() != 'n'
			c.Skip()
			continue
		}
		has, bad := c.Enter('[')
		wrong, known = wrong || bad || known, true
		for ; has; has = c.More('[') {
			read()
		}
	}
	return !wrong && (known || !other)
}

// pairJSON reads a KeyValue. depth is that of the object with the key. within says to append
// it to s.json as a member.
func (w *walker) pairJSON(s *set, depth int, within bool) (key []byte, v value) {
	c := &w.cursor
	from, known, valued, other := len(s.json), false, false, false
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
			v, valued = w.valueJSON(s, depth), true
		default:
			other = other || c.Next() != 'n'
			c.Skip()
		}
	}
	if other && !(known && valued) {
		s.reject("not OTLP logs: a pair has other members than key and value", true)
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

// valueJSON reads an AnyValue. The JSON of an array or a map is at the end of s.json. A plain
// string or number, without a type around it, is taken too.
func (w *walker) valueJSON(s *set, depth int) (v value) {
	c := &w.cursor
	switch c.Next() {
	case '{':
	case '"':
		return value{kind: text, bytes: c.text(s)}
	default:
		return scalar(c.raw(s))
	}
	at, from, choice := c.At, len(s.json), choice{}
	for has, _ := c.Enter('{'); has; has = c.More('{') {
		key := c.Key()
		w.chooseJSON(s, key, depth, &choice)
	}
	if v = w.resultJSON(s, at, &choice); v.kind != nested {
		s.json = s.json[:from]
	}
	return v
}

// chooseJSON reads a member of an AnyValue. One that is null has no value.
func (w *walker) chooseJSON(s *set, key []byte, depth int, to *choice) {
	c := &w.cursor
	if c.Next() == 'n' {
		c.Skip()
		return
	}
	v, fits := value{}, true
	switch string(key) {
	case "stringValue", "string_value":
		v = value{kind: text, bytes: c.text(s)}
	case "bytesValue", "bytes_value":
		v = s.bytesOf(c.text(s))
	case "boolValue", "bool_value":
		v = scalar(c.text(s))
	case "intValue", "int_value":
		v = integerOf(c.text(s))
	case "doubleValue", "double_value":
		v = doubleOf(c.text(s))
	case "arrayValue", "array_value":
		v, fits = w.nestedJSON(s, '[', depth+1)
	case "kvlistValue", "kvlist_value":
		v, fits = w.nestedJSON(s, '{', depth+1)
	default:
		to.other = true
		c.Skip()
		return
	}
	to.value = v
	to.values++
	to.misfit = to.misfit || !fits
}

// nestedJSON reads an ArrayValue or a KeyValueList, and appends its JSON to s.json. fits reports
// that it is one.
func (w *walker) nestedJSON(s *set, open byte, depth int) (v value, fits bool) {
	c := &w.cursor
	if depth > record.MaxDepth {
		s.tooDeep()
		c.Skip()
		return value{}, true
	}
	from := len(s.json)
	s.json = append(s.json, open)
	fits = w.eachValueJSON(open, func() {
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
	})
	s.json = append(s.json, open+2)
	return value{kind: nested, bytes: s.json[from:]}, fits
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
