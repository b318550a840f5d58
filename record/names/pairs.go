package names

import (
	"bytes"

	"blobtail/record"
)

// Beside notes the names of a record by parts, because some names and numbers mean a level only
// beside others.
type Beside struct{ found Set }

// Note notes a field.
func (b *Beside) Note(key string, text []byte) {
	if n := Lookup([]byte(key)); n != 0 && IsMark(n, text) {
		b.found[n/PerKind] |= 1 << (n % PerKind)
	}
}

// FieldLevel is [FieldLevel] for a field beside those that were noted.
func (b *Beside) FieldLevel(key string, text []byte) (l record.Level, place int) {
	n := Lookup([]byte(key))
	if n/PerKind != kindLevel/PerKind || n >= Priority {
		return record.Other, 0
	}
	place = int(n-kindLevel) + 1
	l, by := b.found.Level(n, text)
	if by != nil {
		return l, place + PerKind
	}
	if _, number := Number(text); number {
		return record.Other, 0
	}
	return l, place
}

// FieldLevel returns the level that a field of a record by parts has, and the place of its name
// in [Known], from 1 on; the place of a number is behind those of all words. A lower place is
// tried first. It is 0 if the name is none of a level, or says too little, and for a number that is
// no level.
func FieldLevel(key string, text []byte) (l record.Level, place int) {
	return new(Beside).FieldLevel(key, text)
}

// FirstLevel returns the level of an object, if its first members are texts, numbers or the words
// of JSON up to one that is called level and has a level, as loggers write them. ok is false for
// other objects: a [Parser] has to read these. So it is if the level is a number, and there is another
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

// StayingLevel returns the level of a field of a record by parts with a name that others use for
// other things too, such as priority. The field stays. It is Other for any other field.
func (b *Beside) StayingLevel(key string, text []byte) record.Level {
	n := Lookup([]byte(key))
	if n/PerKind != kindLevel/PerKind || n < Priority || !b.found.Counts(n) {
		return record.Other
	}
	l, _ := b.found.Level(n, text)
	return l
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
