package names

import (
	"bytes"

	"blobtail/record"
)

// FirstLevel returns the level of an object, if its first members are texts, numbers or the words
// of JSON up to one that is called level and has a level, as loggers write them. ok is false for
// other objects: a reader of fields has to read these. So it is if the level is a number, and there is another
// name of a level, or no end. The object need not be valid behind a level that is a word.
func FirstLevel(object []byte) (l record.Level, ok bool) {
	const most = 16
	if len(object) == 0 || object[0] != '{' {
		return record.Other, false
	}
	var found Set
	var number []byte
	w := record.Walk(object)
	for n := 0; number != nil || n < most; n++ {
		key, v, more := w.Member()
		if !more {
			break
		}
		if bytes.IndexByte(key, '\\') >= 0 || number == nil && (v[0] == '{' || v[0] == '[') {
			return record.Other, false
		}
		if len(key) == 0 || scaleLetters>>(key[0]&31)&1 == 0 {
			continue
		}
		switch n := Lookup(key); {
		case n/PerKind == kindLevel/PerKind && number != nil:
			return record.Other, false
		case n == kindLevel:
			text := bytes.Trim(v, `"`)
			if _, is := Number(text); !is {
				if v[0] != '"' {
					return record.Other, false
				}
				l = record.ParseLevel(text)
				return l, l != record.Other && string(key) == "level"
			} else if found[kindLevel/PerKind] != 0 {
				return record.Other, false
			}
			number = text
			fallthrough
		default:
			found[n/PerKind] |= 1 << (n % PerKind)
		}
	}
	if number == nil {
		return record.Other, false
	}
	l, _ = found.Level(kindLevel, number)
	return l, w.Leave() && l != record.Other
}

// TimePlace returns the place of a name in [Known], from 1 on, or 0.
func TimePlace(key string) int {
	if n := Lookup([]byte(key)); n/PerKind == kindTime/PerKind && !isConditional(n) {
		return int(n-kindTime) + 1
	}
	return 0
}

// MessagePlace returns the place of a name in [Known], from 1 on, or 0.
func MessagePlace(key string) int {
	if n := Lookup([]byte(key)); n/PerKind == kindMsg/PerKind && !isConditional(n) {
		return int(n-kindMsg) + 1
	}
	return 0
}
