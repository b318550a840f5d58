package survey

import (
	"math/bits"
	"slices"
)

// Types are the types of some values of JSON, a bit for each.
type Types uint8

// The types of values. A number is an Int if it has no fraction and no exponent.
const (
	Int Types = 1 << iota
	Float
	String
	Bool
	Null
	Object
	Array
)

// TypeOf is the type of a value as it is stored.
func TypeOf(value []byte) Types {
	switch value[0] {
	case '"':
		return String
	case '{':
		return Object
	case '[':
		return Array
	case 't', 'f':
		return Bool
	case 'n':
		return Null
	}
	for _, c := range value {
		if c == '.' || c == 'e' || c == 'E' {
			return Float
		}
	}
	return Int
}

// Names are the names of the types: int, float, string, bool, null, object and array.
func (t Types) Names() (names []string) {
	for i, name := range []string{"int", "float", "string", "bool", "null", "object", "array"} {
		if t>>i&1 != 0 {
			names = append(names, name)
		}
	}
	return names
}

// String is the name of a type; float for both kinds of numbers, and mixed for other types together.
func (t Types) String() string {
	switch {
	case t == Int|Float:
		return "float"
	case bits.OnesCount8(uint8(t)) > 1:
		return "mixed"
	case t == 0:
		return ""
	}
	return t.Names()[0]
}

// ParseTypes are the types of some names; others are left out.
func ParseTypes(names []string) (t Types) {
	for i := range bits.Len8(uint8(Array)) {
		if slices.Contains(names, (Types(1) << i).String()) {
			t |= 1 << i
		}
	}
	return t
}
