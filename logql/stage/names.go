package stage

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"blobtail/record"
)

// maxName bounds the bytes of a flattened name. A field with a longer one is no label: a hostile
// record could have a megabyte of prefixes for each of its members.
const maxName = 1024

// extracted is appended to a name that a stream label has.
const extracted = "_extracted"

// A refKind says where a name is looked up if no stage made a label of that name.
type refKind uint8

const (
	refField refKind = iota
	refService
	refLevel
	refWord // the level as stored, if it is no known one
	refTime
	refMsg
	refTaken // a field that has the name of a label that all records have
	refError
	refDetails
)

// A ref is a name in a query.
type ref struct {
	name string
	kind refKind
	// field is the flattened name of a field, and start the text before the name of each
	// member at the top level that may be it; nil if that has no fixed text.
	field string
	start []byte
}

func newRef(name string) *ref {
	r := &ref{name: name}
	switch name {
	case nameService, nameServiceName:
		r.kind = refService
	case nameLevel, nameDetected:
		r.kind = refLevel
	case nameError:
		r.kind = refError
	case nameDetails:
		r.kind = refDetails
	case "ts":
		r.kind = refTime
	case "msg":
		r.kind = refMsg
	case nameLevel + extracted:
		r.kind = refWord
	case nameServiceName + extracted, nameDetected + extracted:
		r.kind, r.field = refTaken, strings.TrimSuffix(name, extracted)
	default:
		r.field = name
	}
	r.begin()
	return r
}

// begin sets the text with which the members begin that may be the field.
func (r *ref) begin() {
	if first, _, more := strings.Cut(r.field, "_"); first != "" {
		r.start = []byte(`,"` + first)
		if !more {
			r.start = append(r.start, `":`...)
		}
	}
}

// taken reports whether all records have a label of this name, which is not that of a field.
func taken(name string) bool { return name == nameServiceName || name == nameDetected }

// same reports whether two names mean the same label of a record.
func same(a, b string) bool {
	switch {
	case a == b:
		return true
	case a == nameLevel || a == nameDetected:
		return b == nameLevel || b == nameDetected
	case a == nameService || a == nameServiceName:
		return b == nameService || b == nameServiceName
	}
	return false
}

func plain(c byte) bool {
	return c-'a' < 26 || c-'A' < 26 || c-'0' < 10 || c == '_'
}

// appendName appends the part of a flattened name for a key, which is still escaped: "_" for
// each other character than letters, digits and "_". Nothing stands before the first part, so
// that gets "_" before a digit.
func appendName(dst, key []byte, first bool) []byte {
	if bytes.IndexByte(key, '\\') >= 0 {
		key = record.AppendUnescaped(nil, key)
	}
	if first && len(key) > 0 && key[0]-'0' < 10 {
		dst = append(dst, '_')
	}
	for i := 0; i < len(key); {
		if c := key[i]; c < utf8.RuneSelf {
			if !plain(c) {
				c = '_'
			}
			dst = append(dst, c)
			i++
			continue
		}
		_, n := utf8.DecodeRune(key[i:])
		dst = append(dst, '_')
		i += n
	}
	return dst
}

// cutName cuts the part of a flattened name that a key is from the front of a name.
func cutName(name string, key []byte, first bool) (rest string, ok bool) {
	if bytes.IndexByte(key, '\\') >= 0 {
		return strings.CutPrefix(name, string(appendName(nil, key, first)))
	}
	if first && len(key) > 0 && key[0]-'0' < 10 {
		if name, ok = strings.CutPrefix(name, "_"); !ok {
			return "", false
		}
	}
	at := 0
	for i := 0; i < len(key); at++ {
		if at == len(name) {
			return "", false
		}
		c, n := key[i], 1
		if !plain(c) {
			if c >= utf8.RuneSelf {
				_, n = utf8.DecodeRune(key[i:])
			}
			c = '_'
		}
		if c != name[at] {
			return "", false
		}
		i += n
	}
	return name[at:], len(key) > 0
}

// findField returns the value, as it stands in the record, of the first member under a flattened
// name that is neither an object nor null, nor an array if these do not count. nil: there is none.
func findField(w record.Walker, name string, first, arrays bool) []byte {
	for {
		key, value, ok := w.Member()
		if !ok {
			return nil
		}
		rest, ok := cutName(name, key, first)
		switch {
		case !ok || value[0] == 'n' || value[0] == '[' && !arrays:
		case value[0] == '{':
			if len(rest) > 1 && rest[0] == '_' {
				if found := findField(record.Walk(value), rest[1:], false, arrays); found != nil {
					return found
				}
			}
		case rest == "":
			return value
		}
	}
}
