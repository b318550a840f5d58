package tables

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
)

// The properties of a row are one value: for each, in order of the names, the
// length of the name, the name, a letter for the type, and the value: length and
// bytes (s, b), a number (i) or nothing (t, f). Lengths and numbers are varints.
// The first byte is the version.
const propsVersion = 1

func encode(props map[string]any) []byte {
	b := []byte{propsVersion}
	for _, name := range slices.Sorted(maps.Keys(props)) {
		b = binary.AppendUvarint(b, uint64(len(name)))
		b = append(b, name...)
		switch v := props[name].(type) {
		case string:
			b = binary.AppendUvarint(append(b, 's'), uint64(len(v)))
			b = append(b, v...)
		case []byte:
			b = binary.AppendUvarint(append(b, 'b'), uint64(len(v)))
			b = append(b, v...)
		case int64:
			b = binary.AppendVarint(append(b, 'i'), v)
		case bool:
			b = append(b, map[bool]byte{true: 't', false: 'f'}[v])
		}
	}
	return b
}

// decode returns the wanted properties, all of them when want is empty.
func decode(b []byte, want []string) (map[string]any, error) {
	damaged := errors.New("the row's properties are damaged")
	if len(b) == 0 || b[0] != propsVersion {
		return nil, damaged
	}
	props := map[string]any{}
	for b = b[1:]; len(b) > 0; {
		name, rest, ok := cut(b)
		if !ok || len(rest) == 0 {
			return nil, damaged
		}
		kind := rest[0]
		b = rest[1:]
		var v any
		switch kind {
		case 's', 'b':
			raw, rest, ok := cut(b)
			if !ok {
				return nil, damaged
			}
			b = rest
			if kind == 's' {
				v = string(raw)
			} else {
				v = bytes.Clone(raw)
			}
		case 'i':
			i, n := binary.Varint(b)
			if n <= 0 {
				return nil, damaged
			}
			v, b = i, b[n:]
		case 't', 'f':
			v = kind == 't'
		default:
			return nil, damaged
		}
		if len(want) == 0 || slices.Contains(want, string(name)) {
			props[string(name)] = v
		}
	}
	return props, nil
}

// cut splits off bytes that their length stands before.
func cut(b []byte) (head, rest []byte, ok bool) {
	n, k := binary.Uvarint(b)
	if k <= 0 || n > uint64(len(b)-k) {
		return nil, nil, false
	}
	return b[k : k+int(n)], b[k+int(n):], true
}
