package record

import (
	"bytes"
	"iter"
)

// Fields iterates over the keys and values at the top level of a canonical line, which is
// compact JSON known to be valid. On any other text it stops early. A key is the text
// between its quotes, still escaped. A value is unchanged.
func Fields(line []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		for w := Walk(line); ; {
			key, value, ok := w.Member()
			if !ok || !yield(key, value) {
				return
			}
		}
	}
}

// Lookup returns the value of a field of a canonical line: of the one with that name, or
// else for a.b of the one named b in the object a. ok is false if there is none. An object
// may have a key several times; the last one counts, as in encoding/json.
func Lookup(line []byte, name string) (value []byte, ok bool) {
	return lookup(line, name, true)
}

// lookup is Lookup in an object. unique says that no key comes twice.
func lookup(line []byte, name string, unique bool) (value []byte, ok bool) {
	if value, ok = lookupKey(line, name, unique); ok {
		return value, true
	}
	for i := range len(name) {
		if name[i] != '.' {
			continue
		}
		object, ok := lookupKey(line, name[:i], unique)
		if !ok || object[0] != '{' {
			continue
		}
		if value, ok := lookup(object, name[i+1:], false); ok {
			return value, true
		}
	}
	return nil, false
}

// Member returns the value of the first member of an object with a key.
func Member(object []byte, key string) (value []byte, ok bool) { return lookupKey(object, key, true) }

// lookupKey returns the last value of a key.
func lookupKey(line []byte, name string, unique bool) (value []byte, ok bool) {
	for w := Walk(line); ; {
		key, v, more := w.Member()
		if !more {
			return value, ok
		}
		if isKey(key, name) {
			value, ok = v, true
			if unique {
				return value, ok
			}
		}
	}
}

// isKey reports whether a key, escaped, has a name.
func isKey(key []byte, name string) bool {
	if bytes.IndexByte(key, '\\') < 0 {
		return string(key) == name
	}
	return string(AppendUnescaped(nil, key)) == name
}

// IsString reports whether a value of a canonical line is a string.
func IsString(value []byte) bool { return len(value) >= 2 && value[0] == '"' }

// Bare is a value as it stands behind "key=": a string without its quotes, unless it is
// empty or would be ambiguous without them; any other value, and any other string,
// unchanged.
func Bare(value []byte) []byte {
	if len(value) > 2 && value[0] == '"' && !bytes.ContainsAny(value[1:len(value)-1], " =\"\\") {
		return value[1 : len(value)-1]
	}
	return value
}
