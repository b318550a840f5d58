package otlp

import (
	"bytes"
	"encoding/hex"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"blobtail/record"
	"blobtail/source/body"
)

// id returns an id in hexadecimal, nil if it has nothing but zeros. One of another length
// than the specification says is kept as well.
func (s *set) id(b []byte) []byte {
	if len(bytes.Trim(b, "\x00")) == 0 {
		return nil
	}
	from := len(s.text)
	s.text = hex.AppendEncode(s.text, b)
	return s.text[from:]
}

// readBody reads the body of the record. The members of a map are kept apart.
func (w *walker) readBody(b []byte) {
	e := &w.entry
	e.members = e.members[:0]
	if len(b) > 2 && b[0] == 1<<3|2 {
		if inside, n := delimited(b); n == len(b) {
			e.body = value{kind: text, bytes: inside}
			return
		}
	}
	f := w.choice(&e.set, b)
	if f.number != 6 {
		e.body = w.valueOf(&e.set, f, 1)
		return
	}
	e.body = value{kind: members}
	e.eachValue(f.bytes, "KeyValueList", func(encoded []byte) {
		if len(e.members) == record.MaxFields {
			e.tooMany()
			return
		}
		key, v := w.keyValue(&e.set, encoded, 1)
		e.members = append(e.members, attribute{key, v})
	})
}

// eachValue calls read for each element of an ArrayValue or a KeyValueList, until the set fails.
func (s *set) eachValue(b []byte, message string, read func(encoded []byte)) {
	for len(b) > 0 && !s.failed() {
		f, n := fieldAt(b)
		switch {
		case n < 0:
			s.why = broken(message, n)
			return
		case f.number == 1 && f.kind != protowire.BytesType:
			s.why = wrongKind(message, f)
		case f.number == 1:
			read(f.bytes)
		}
		b = b[n:]
	}
}

// attribute adds a KeyValue to a set.
func (w *walker) attribute(s *set, b []byte) {
	if a := s.next(); a != nil && !a.plain(b) {
		a.key, a.value = w.keyValue(s, b, 1)
	}
}

// plain reads a KeyValue of the usual form, and reports whether it is one: a short key and
// a short text, a number or a boolean, in either order, and nothing else.
func (a *attribute) plain(b []byte) bool {
	a.key, a.value.kind, a.value.bytes = nil, null, nil
	for len(b) > 0 {
		if len(b) < 2 || b[1] >= 0x80 || 2+int(b[1]) > len(b) {
			return false
		}
		inside := b[2 : 2+b[1]]
		switch b[0] {
		case 1<<3 | byte(protowire.BytesType):
			a.key = inside
		case 2<<3 | byte(protowire.BytesType):
			if !a.value.plain(inside) {
				return false
			}
		default:
			return false
		}
		b = b[2+len(inside):]
	}
	return true
}

// plain reads an AnyValue of the usual form.
func (v *value) plain(b []byte) bool {
	if len(b) < 2 {
		return false
	}
	n := 0
	switch b[0] {
	case 1<<3 | byte(protowire.BytesType):
		v.kind, v.bytes = text, b[2:]
		return int(b[1])+2 == len(b) && b[1] < 0x80
	case 2<<3 | byte(protowire.VarintType):
		v.kind = boolean
		v.bits, n = protowire.ConsumeVarint(b[1:])
	case 3<<3 | byte(protowire.VarintType):
		v.kind = integer
		v.bits, n = protowire.ConsumeVarint(b[1:])
	case 4<<3 | byte(protowire.Fixed64Type):
		v.kind = double
		v.bits, n = protowire.ConsumeFixed64(b[1:])
	}
	return n+1 == len(b)
}

// keyValue reads a KeyValue. depth is that of the object with the key.
func (w *walker) keyValue(s *set, b []byte, depth int) (key []byte, v value) {
	key, encoded := w.split(s, b)
	return key, w.valueOf(s, w.choice(s, encoded), depth)
}

// split returns the key and the encoded value of a KeyValue.
func (w *walker) split(s *set, b []byte) (key, encoded []byte) {
	for len(b) > 0 {
		f, n := fieldAt(b)
		if n < 0 {
			s.why = broken("KeyValue", n)
			return nil, nil
		}
		b = b[n:]
		if f.number > 2 {
			continue
		}
		if f.kind != protowire.BytesType {
			s.why = wrongKind("KeyValue", f)
			return nil, nil
		}
		if f.number == 1 {
			key = f.bytes
		} else {
			encoded = f.bytes
		}
	}
	return key, encoded
}

// choice returns the field of an AnyValue that has its value, the last one.
func (w *walker) choice(s *set, b []byte) (chosen field) {
	for len(b) > 0 {
		f, n := fieldAt(b)
		if n < 0 {
			s.why = broken("AnyValue", n)
			return field{}
		}
		b = b[n:]
		if f.number > 7 {
			continue
		}
		if f.kind != [...]protowire.Type{1: protowire.BytesType, 2: protowire.VarintType, 3: protowire.VarintType,
			4: protowire.Fixed64Type, 5: protowire.BytesType, 6: protowire.BytesType, 7: protowire.BytesType}[f.number] {
			s.why = wrongKind("AnyValue", f)
			return field{}
		}
		chosen = f
	}
	return chosen
}

// valueOf returns the value of a field of an AnyValue. The JSON of an array or a map is at
// the end of s.json.
func (w *walker) valueOf(s *set, f field, depth int) value {
	switch f.number {
	case 1:
		return value{kind: text, bytes: f.bytes}
	case 2:
		return value{kind: boolean, bits: f.bits}
	case 3:
		return value{kind: integer, bits: f.bits}
	case 4:
		return value{kind: double, bits: f.bits}
	case 7:
		return value{kind: data, bytes: f.bytes}
	case 5, 6:
		from := len(s.json)
		w.appendNested(s, f, depth+1)
		return value{kind: nested, bytes: s.json[from:]}
	}
	return value{}
}

// appendNested appends an ArrayValue or a KeyValueList.
func (w *walker) appendNested(s *set, whole field, depth int) {
	if depth > record.MaxDepth {
		s.tooDeep()
		return
	}
	open := byte('[')
	if whole.number == 6 {
		open = '{'
	}
	s.json = append(s.json, open)
	first := true
	s.eachValue(whole.bytes, "nested value", func(encoded []byte) {
		if !first {
			s.json = append(s.json, ',')
		}
		first = false
		if open == '{' {
			var key []byte
			key, encoded = w.split(s, encoded)
			s.json = appendKey(s.json, key)
		}
		if v := w.valueOf(s, w.choice(s, encoded), depth); v.kind != nested {
			s.json = appendJSON(s.json, v)
		}
		if len(s.json) > record.MaxRecord {
			s.tooLong()
		}
	})
	s.json = append(s.json, open+2)
}

func wrongKind(message string, f field) body.Rejection {
	return body.Rejection{Reason: fmt.Sprintf("not OTLP logs: field %d of a %s has the wire type %d", f.number, message, f.kind), Syntax: true}
}
