package tables

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
)

// The properties of a row are one value. It holds for each property, in order of the
// names: the length of the name, the name, a letter for the type, and the value. A
// value is length and bytes (s, b), a number (i) or nothing (t, f). Lengths and numbers
// are varints. The first byte is the version of this format.
//
// The first property has no name: it is the version of the row, a random value made by
// each write. A row that changes and changes back is in another state, so contents alone cannot be
// the version. A row that only a commit before a960ca37 wrote has none: its version is a hash.
const (
	propsVersion = 1
	versionBytes = 16
)

// encode returns the properties as they are stored, with a new version.
func encode(props map[string]any) (stored []byte, version string) {
	nonce := make([]byte, versionBytes)
	rand.Read(nonce) // never fails
	b := append([]byte{propsVersion, 0, 'b', versionBytes}, nonce...)
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
	return b, hex.EncodeToString(nonce)
}

// rowVersion returns the version of stored properties.
func rowVersion(b []byte) string {
	const head = 4
	if len(b) >= head+versionBytes && b[1] == 0 && b[2] == 'b' && b[3] == versionBytes {
		return hex.EncodeToString(b[head : head+versionBytes])
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
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
		if len(name) > 0 && (len(want) == 0 || slices.Contains(want, string(name))) {
			props[string(name)] = v
		}
	}
	return props, nil
}

// cut splits off bytes that are preceded by their length.
func cut(b []byte) (head, rest []byte, ok bool) {
	n, k := binary.Uvarint(b)
	if k <= 0 || n > uint64(len(b)-k) {
		return nil, nil, false
	}
	return b[k : k+int(n)], b[k+int(n):], true
}
