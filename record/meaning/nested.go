package meaning

import (
	"bytes"
	"iter"
	"math/bits"
	"strings"

	"blobtail/record"
	"blobtail/record/times"
)

// The Elastic Common Schema has objects where other senders have flat names: log has the
// level, service has the name. Only a record that has such an object pays for these.

// findLevel finds the field with the level, or -1. l is Other for a word of the sender's own.
// A field with a name from [namePriority] on stays: at is -1, and l the level.
func (p *Reader) findLevel() (at int, l record.Level) {
	own := -1
	p.notes.begin(partLevel)
	if len(p.mapped.offers) > 0 {
		if at, own, l = p.mappedLevel(); at >= 0 {
			return at, l
		}
	}
	if p.found()[kindLevel/perKind]&1 != 0 { // as nearly all records have it
		if l = p.plainLevel(&p.Fields[p.Slots[kindLevel]]); l != record.Other {
			return int(p.Slots[kindLevel]), l
		}
	}
	number, on, before := -1, record.Other, 0 // the first number that is on a scale: words come before it
	for left := p.candidates(kindLevel); left != 0; left &= left - 1 {
		n := kindLevel + name(bits.TrailingZeros64(left))
		if n >= namePriority && number >= 0 {
			break
		}
		for at = int(p.Slots[n]); at >= 0; at = p.Next(at) {
			f := &p.Fields[at]
			switch l, by := p.levelOf(f); {
			case l != record.Other && n >= namePriority:
				if own < 0 {
					p.notes.stays, p.notes.by = at, by
					return -1, l
				}
			case l != record.Other && by == nil:
				p.notes.by = nil
				return at, l
			case l != record.Other:
				if number < 0 {
					number, on, before, p.notes.by = at, l, len(p.notes.passed[partLevel]), by
				}
				p.notes.pass(partLevel, at, wordFirst)
			case n < namePriority && !p.IsEmpty(f):
				if own < 0 && n <= nameLogLevel && p.isOwnLevel(f) {
					own = at
				}
				p.notes.pass(partLevel, at, noLevel)
			}
		}
	}
	if number >= 0 {
		p.notes.passed[partLevel] = p.notes.passed[partLevel][:before]
		return number, on
	}
	if own < 0 && p.Found.Has(nameAtT) && (p.Found.Has(nameAtM) || p.Found.Has(nameAtMt)) {
		p.notes.stays = int(p.Slots[nameAtT])
		return -1, record.Info // Serilog leaves it out
	}
	return own, record.Other
}

// plainLevel is the level of the field level, as canonical lines have it, or a number that no word is beside.
func (p *Reader) plainLevel(f *record.Field) (l record.Level) {
	l = record.Other
	if v := p.Value(f); v[0] == '"' {
		l = record.LevelOf(v[1 : len(v)-1])
	} else if p.found()[kindLevel/perKind] == 1 && isDigit(v[0]) {
		l, p.notes.by = p.found().levelOf(kindLevel, v)
	}
	return l
}

// isOwnLevel reports whether a field may have a word of the sender's own for a level.
func (p *Reader) isOwnLevel(f *record.Field) bool {
	if p.Src[f.Val] != '"' || f.ValEnd-f.Val <= 2 {
		return false
	}
	_, number := numberOf(p.Text(f))
	return !number
}

// levelOf returns the level that a field has under its name. by is the scale that its number is on.
func (p *Reader) levelOf(f *record.Field) (l record.Level, by *scale) {
	v := p.Value(f)
	switch {
	case v[0] == '"':
		if l := record.LevelOf(v[1 : len(v)-1]); l != record.Other && f.Tag != nameS {
			return l, nil
		}
		return p.found().levelOf(f.Tag, p.Text(f))
	case !isDigit(v[0]) && v[0] != '-', f.Tag >= namePriority:
		return record.Other, nil
	}
	return p.found().levelOf(f.Tag, v)
}

// candidates are the names of a kind that the record has, as bits, without those of conditions that
// it does not meet.
func (p *Reader) candidates(kind name) uint64 {
	left := p.found()[kind/perKind]
	if odd := left & conditional[kind/perKind]; odd != 0 {
		left &^= p.idle(kind, odd)
	}
	return left
}

// idle are those of the names of conditions that do not count.
func (p *Reader) idle(kind name, odd uint64) (idle uint64) {
	marks := *p.found()
	if marks.has(nameKind) {
		if f := &p.Fields[p.Slots[nameKind]]; p.Src[f.Val] != '"' || !isMark(nameKind, p.Text(f)) {
			marks[nameKind/perKind] &^= 1 << (nameKind % perKind)
		}
	}
	for ; odd != 0; odd &= odd - 1 {
		if n := kind + name(bits.TrailingZeros64(odd)); !marks.counts(n) {
			idle |= odd & -odd
		}
	}
	return idle
}

// Beside notes the names of a record by parts, because some names and numbers mean a level only
// beside others.
type Beside struct{ found present }

// Note notes a field.
func (b *Beside) Note(key string, text []byte) {
	if n := lookupName([]byte(key)); n != 0 && isMark(n, text) {
		b.found[n/perKind] |= 1 << (n % perKind)
	}
}

// FieldLevel is [FieldLevel] for a field beside those that were noted.
func (b *Beside) FieldLevel(key string, text []byte) (l record.Level, place int) {
	n := lookupName([]byte(key))
	if n/perKind != kindLevel/perKind || n >= namePriority {
		return record.Other, 0
	}
	place = int(n-kindLevel) + 1
	l, by := b.found.levelOf(n, text)
	if by != nil {
		return l, place + perKind
	}
	if _, number := numberOf(text); number {
		return record.Other, 0
	}
	return l, place
}

// FieldLevel returns the level that a field of a record by parts has, and the place of its name
// in [KnownNames], from 1 on; the place of a number is behind those of all words. A lower place is
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
	var found present
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
		switch n := lookupName(key); {
		case n/perKind == kindLevel/perKind && number != nil:
			return record.Other, false
		case n == kindLevel:
			text := bytes.Trim(v, `"`)
			if _, is := numberOf(text); !is {
				l = record.ParseLevel(text)
				return l, l != record.Other && string(key) == "level"
			} else if found[kindLevel/perKind] != 0 {
				return record.Other, false
			}
			number = text
			fallthrough
		default:
			found[n/perKind] |= 1 << (n % perKind)
		}
	}
	if number == nil {
		return record.Other, false
	}
	l, _ = found.levelOf(kindLevel, number)
	return l, w.Leave() && l != record.Other
}

// StayingLevel returns the level of a field of a record by parts with a name that others use for
// other things too, such as priority. The field stays. It is Other for any other field.
func (b *Beside) StayingLevel(key string, text []byte) record.Level {
	n := lookupName([]byte(key))
	if n/perKind != kindLevel/perKind || n < namePriority || !b.found.counts(n) {
		return record.Other
	}
	l, _ := b.found.levelOf(n, text)
	return l
}

// TimePlace returns the place of a name in [KnownNames] of times, from 1 on, or 0.
func TimePlace(key string) int {
	if n := lookupName([]byte(key)); n/perKind == kindTime/perKind && !isConditional(n) {
		return int(n-kindTime) + 1
	}
	return 0
}

// MessagePlace returns the place of a name in [KnownNames] of messages, from 1 on, or 0.
func MessagePlace(key string) int {
	if n := lookupName([]byte(key)); n/perKind == kindMsg/perKind && !isConditional(n) {
		return int(n-kindMsg) + 1
	}
	return 0
}

// hasObject reports whether the first field with a name is an object.
func hasObject(p *Reader, n name) bool { return p.Found.Has(n) && p.IsObject(int(p.Slots[n])) }

// hasParent reports whether there is one of the parents of [nestedNames].
func hasParent(p *Reader) bool {
	return p.found()[kindParent/perKind] != 0 || hasObject(p, nameLog) || hasObject(p, nameLevel) ||
		hasObject(p, nameEvent) || hasObject(p, nameLogMessage)
}

// path returns the value of a member by its path, whose first name is that of a field, known as n.
// It is nil if there is none.
func (p *Reader) path(n name, path string) []byte {
	if !hasObject(p, n) {
		return nil
	}
	f := &p.Fields[p.Slots[n]]
	v := p.Value(f)
	_, rest, more := strings.Cut(path, ".")
	for key := ""; more; {
		if key, rest, more = strings.Cut(rest, "."); len(v) == 0 || v[0] != '{' {
			return nil
		}
		v, _ = record.Member(v, key)
	}
	return v
}

// nestedOf iterates over the members of [nestedNames] for a part that the record has. The one at which
// the iteration ends is noted.
func (p *Reader) nestedOf(part headPart) iter.Seq2[*nestedName, []byte] {
	p.notes.rows[part] = 0
	return func(yield func(*nestedName, []byte) bool) {
		if !hasParent(p) {
			return
		}
		for i := range nestedNames {
			n := &nestedNames[i]
			if n.part != part || !p.Found.Has(n.parent) || !p.found().some(n.beside) {
				continue
			}
			if v := p.path(n.parent, n.path); len(v) > 0 && !yield(n, v) {
				p.notes.rows[part] = uint8(i + 1)
				return
			}
		}
	}
}

// nestedTime returns the time in the objects of [nestedNames], at most latest. No row is noted if there
// is none.
func (p *Reader) nestedTime(latest int64) (ns int64) {
	for _, v := range p.nestedOf(partTime) {
		if ns, part := valueTime(&p.times, v); part == times.Full && ns <= latest {
			return ns
		}
	}
	return 0
}

// nestedLevel returns the level in the objects of [nestedNames]. For a word of the sender's own it is
// Other, and v the word with its quotes. v is nil for none.
func (p *Reader) nestedLevel() (v []byte, l record.Level) {
	for n, v := range p.nestedOf(partLevel) {
		text := v
		if v[0] == '"' {
			text = p.Unescape(v)
		} else if !isDigit(v[0]) && v[0] != '-' {
			continue
		}
		last := lookupName([]byte(n.path[strings.LastIndexByte(n.path, '.')+1:]))
		l, _ := p.found().levelOf(last, text)
		if _, number := numberOf(text); l != record.Other || len(text) > 0 && !number {
			return v, l
		}
	}
	return nil, record.Other
}

// nestedMsg returns the string of the message in the objects of [nestedNames]; nil for none.
func (p *Reader) nestedMsg() []byte {
	for _, v := range p.nestedOf(partMsg) {
		if len(v) > len(`""`) && v[0] == '"' {
			return v
		}
	}
	return nil
}

// msgField is the index of the field with the message, -1 for none: the first with a text, else
// the first with another value that may be one.
func (p *Reader) msgField() int {
	other := -1
	if len(p.mapped.offers) > 0 {
		var at int
		if at, other = p.mappedWord(partMsg); at >= 0 {
			return at
		}
	}
	if p.found()[kindMsg/perKind]&1 != 0 { // as nearly all records have it
		if f := &p.Fields[p.Slots[kindMsg]]; p.Src[f.Val] == '"' && f.ValEnd-f.Val > 2 {
			return int(p.Slots[kindMsg])
		}
	}
	for left := p.candidates(kindMsg); left != 0; left &= left - 1 {
		n := kindMsg + name(bits.TrailingZeros64(left))
		for at := int(p.Slots[n]); at >= 0; at = p.Next(at) {
			f := &p.Fields[at]
			if n == nameText {
				if p.nestedMsg() != nil {
					return -1
				}
			}
			switch c := p.Src[f.Val]; {
			case c == '"' && f.ValEnd-f.Val > 2:
				return at
			case other < 0 && n <= nameLog && c != '"' && c != 'n' && (n != nameLog || c != '{'):
				other = at
			}
		}
	}
	return other
}

// serviceField finds the field with the service, -1 for none, and its text, which may be in
// scratch. nested says that the text is a member of the field.
func (p *Reader) serviceField() (at int, text []byte, nested bool) {
	other := -1
	if len(p.mapped.offers) > 0 {
		if at, other = p.mappedWord(partService); at >= 0 {
			return at, p.Text(&p.Fields[at]), false
		}
	}
	for left := p.found()[kindService/perKind]; left != 0; left &= left - 1 {
		n := kindService + name(bits.TrailingZeros64(left))
		for at = int(p.Slots[n]); at >= 0; at = p.Next(at) {
			f := &p.Fields[at]
			switch c := p.Src[f.Val]; {
			case c == '"' && f.ValEnd-f.Val > 2:
				return at, p.Text(f), false
			case c == '{' && n == nameService:
				if v := p.path(n, "service.name"); len(v) > len(`""`) && v[0] == '"' {
					return at, p.Unescape(v), true
				}
			case other < 0 && n <= nameApp && c != '"' && c != 'n' && c != '{':
				other = at
			}
		}
	}
	if other >= 0 {
		return other, p.Compact(&p.Fields[other]), false
	}
	if p.found()[kindParent/perKind] == 0 {
		return -1, nil, false
	}
	if v := p.path(parentKubernetes, "kubernetes.container_name"); len(v) > len(`""`) && v[0] == '"' {
		return int(p.Slots[parentKubernetes]), p.Unescape(v), true
	}
	return -1, nil, false
}
