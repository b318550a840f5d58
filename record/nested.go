package record

import (
	"bytes"
	"iter"
	"math/bits"
	"strings"

	"blobtail/record/times"
)

// The Elastic Common Schema has objects where other senders have flat names: log has the
// level, service has the name. Only a record that has such an object pays for these.

// isObject reports whether the value of a field is an object.
func (p *Parser) isObject(at int) bool { return at >= 0 && p.src[p.fields[at].val] == '{' }

// member returns the value of the first member of a valid object with a key, or nil.
func member(object []byte, key string) []byte {
	for w := Walk(object); ; {
		name, value, ok := w.Member()
		if !ok {
			return nil
		}
		if isKey(name, key) {
			return value
		}
	}
}

// findLevel finds the field with the level, or -1. l is Other for a word of the sender's own.
// A field with a name from [namePriority] on stays: at is -1, and l the level.
func (p *Parser) findLevel() (at int, l Level) {
	own := -1
	p.notes.begin(partLevel)
	if len(p.mapped.offers) > 0 {
		if at, own, l = p.mappedLevel(); at >= 0 {
			return at, l
		}
	}
	if p.found[kindLevel/perKind]&1 != 0 { // as nearly all records have it
		if l = p.plainLevel(&p.fields[p.slots[kindLevel]]); l != Other {
			return int(p.slots[kindLevel]), l
		}
	}
	number, on, before := -1, Other, 0 // the first number that is on a scale: words come before it
	for left := p.candidates(kindLevel); left != 0; left &= left - 1 {
		n := kindLevel + name(bits.TrailingZeros64(left))
		if n >= namePriority && number >= 0 {
			break
		}
		for at = int(p.slots[n]); at >= 0; at = p.next(at) {
			f := &p.fields[at]
			switch l, by := p.levelOf(f); {
			case l != Other && n >= namePriority:
				if own < 0 {
					p.notes.stays, p.notes.by = at, by
					return -1, l
				}
			case l != Other && by == nil:
				p.notes.by = nil
				return at, l
			case l != Other:
				if number < 0 {
					number, on, before, p.notes.by = at, l, len(p.notes.passed[partLevel]), by
				}
				p.notes.pass(partLevel, at, wordFirst)
			case n < namePriority && !p.isEmpty(f):
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
	if own < 0 && p.has(nameAtT) && (p.has(nameAtM) || p.has(nameAtMt)) {
		p.notes.stays = int(p.slots[nameAtT])
		return -1, Info // Serilog leaves it out
	}
	return own, Other
}

// plainLevel is the level of the field level, as canonical lines have it, or a number that no word is beside.
func (p *Parser) plainLevel(f *field) (l Level) {
	l = Other
	if v := p.src[f.val:f.valEnd]; v[0] == '"' {
		l = LevelOf(v[1 : len(v)-1])
	} else if p.found[kindLevel/perKind] == 1 && isDigit(v[0]) {
		l, p.notes.by = p.found.levelOf(kindLevel, v)
	}
	return l
}

// isOwnLevel reports whether a field may have a word of the sender's own for a level.
func (p *Parser) isOwnLevel(f *field) bool {
	if p.src[f.val] != '"' || f.valEnd-f.val <= 2 {
		return false
	}
	_, number := numberOf(p.text(f))
	return !number
}

// levelOf returns the level that a field has under its name. by is the scale that its number is on.
func (p *Parser) levelOf(f *field) (l Level, by *scale) {
	v := p.src[f.val:f.valEnd]
	switch {
	case v[0] == '"':
		if l := LevelOf(v[1 : len(v)-1]); l != Other && f.known != nameS {
			return l, nil
		}
		return p.found.levelOf(f.known, p.text(f))
	case !isDigit(v[0]) && v[0] != '-', f.known >= namePriority:
		return Other, nil
	}
	return p.found.levelOf(f.known, v)
}

// candidates are the names of a kind that the record has, as bits, without those of conditions that
// it does not meet.
func (p *Parser) candidates(kind name) uint64 {
	left := p.found[kind/perKind]
	if odd := left & conditional[kind/perKind]; odd != 0 {
		left &^= p.idle(kind, odd)
	}
	return left
}

// idle are those of the names of conditions that do not count.
func (p *Parser) idle(kind name, odd uint64) (idle uint64) {
	marks := p.found
	if marks.has(nameKind) {
		if f := &p.fields[p.slots[nameKind]]; p.src[f.val] != '"' || !isMark(nameKind, p.text(f)) {
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

// FirstLevel returns the level of an object, if its first members are texts, numbers or the words
// of JSON up to one that is called level and has a level, as loggers write them. ok is false for
// other objects: a [Parser] has to read these. So it is if the level is a number, and there is another
// name of a level, or no end. The object need not be valid behind a level that is a word.
func FirstLevel(object []byte) (l Level, ok bool) {
	const most = 16
	if len(object) == 0 || object[0] != '{' {
		return Other, false
	}
	var found present
	var number []byte
	for n, i := 0, 0; number != nil || n < most; n++ {
		key, from, end := firstMember(object, skipSpace(object, i+1), number != nil)
		if end == 0 {
			break
		}
		if len(key) > 0 && scaleLetters>>(key[0]&31)&1 != 0 {
			switch n := lookupName(key); {
			case n/perKind == kindLevel/perKind && number != nil:
				return Other, false
			case n == kindLevel:
				text := bytes.Trim(object[from:end], `"`)
				if _, is := numberOf(text); !is {
					l = ParseLevel(text)
					return l, l != Other && string(key) == "level"
				} else if found[kindLevel/perKind] != 0 {
					return Other, false
				}
				number = text
				fallthrough
			default:
				found[n/perKind] |= 1 << (n % perKind)
			}
		}
		if i = skipSpace(object, end); i >= len(object) || object[i] != ',' {
			ok = i < len(object) && object[i] == '}'
			break
		}
	}
	if number == nil {
		return Other, false
	}
	l, _ = found.levelOf(kindLevel, number)
	return l, ok && l != Other
}

// firstMember returns the key of the member at i, and the place of its value; the end is 0 for one
// that has none. nested says that it may be an object or an array.
func firstMember(object []byte, i int, nested bool) (key []byte, from, end int) {
	if i >= len(object) || object[i] != '"' {
		return nil, 0, 0
	}
	end, state := scanString(object, i+1)
	if state != 0 {
		return nil, 0, 0
	}
	key = object[i+1 : end]
	if i = skipSpace(object, end+1); i >= len(object) || object[i] != ':' {
		return nil, 0, 0
	}
	if from = skipSpace(object, i+1); from >= len(object) {
		return nil, 0, 0
	}
	switch c := object[from]; {
	case c == '"':
		if end, state = scanString(object, from+1); state == stringBad {
			return nil, 0, 0
		}
		return key, from, end + 1
	case nested && (c == '{' || c == '['):
		return key, from, max(nestedEnd(object, from), 0)
	}
	end, bad := scanScalar(object, from)
	if bad != nil {
		return nil, 0, 0
	}
	return key, from, end
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
func hasObject(p *Parser, n name) bool { return p.has(n) && p.isObject(int(p.slots[n])) }

// hasParent reports whether there is one of the parents of [nestedNames].
func hasParent(p *Parser) bool {
	return p.found[kindParent/perKind] != 0 || hasObject(p, nameLog) || hasObject(p, nameLevel) ||
		hasObject(p, nameEvent) || hasObject(p, nameLogMessage)
}

// path returns the value of a member by its path, whose first name is that of a field, known as n.
// It is nil if there is none.
func (p *Parser) path(n name, path string) []byte {
	if !hasObject(p, n) {
		return nil
	}
	f := &p.fields[p.slots[n]]
	v := p.src[f.val:f.valEnd]
	_, rest, more := strings.Cut(path, ".")
	for key := ""; more; {
		if key, rest, more = strings.Cut(rest, "."); len(v) == 0 || v[0] != '{' {
			return nil
		}
		v = member(v, key)
	}
	return v
}

// nestedOf iterates over the members of [nestedNames] for a part that the record has. The one at which
// the iteration ends is noted.
func (p *Parser) nestedOf(part headPart) iter.Seq2[*nestedName, []byte] {
	p.notes.rows[part] = 0
	return func(yield func(*nestedName, []byte) bool) {
		if !hasParent(p) {
			return
		}
		for i := range nestedNames {
			n := &nestedNames[i]
			if n.part != part || !p.has(n.parent) || !p.found.some(n.beside) {
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
func (p *Parser) nestedTime(latest int64) (ns int64) {
	for _, v := range p.nestedOf(partTime) {
		if ns, part := valueTime(&p.times, v); part == times.Full && ns <= latest {
			return ns
		}
	}
	return 0
}

// nestedLevel returns the level in the objects of [nestedNames]. For a word of the sender's own it is
// Other, and v the word with its quotes. v is nil for none.
func (p *Parser) nestedLevel() (v []byte, l Level) {
	for n, v := range p.nestedOf(partLevel) {
		text := v
		if v[0] == '"' {
			p.scratch = AppendUnescaped(p.scratch[:0], v[1:len(v)-1])
			text = p.scratch
		} else if !isDigit(v[0]) && v[0] != '-' {
			continue
		}
		last := lookupName([]byte(n.path[strings.LastIndexByte(n.path, '.')+1:]))
		l, _ := p.found.levelOf(last, text)
		if _, number := numberOf(text); l != Other || len(text) > 0 && !number {
			return v, l
		}
	}
	return nil, Other
}

// nestedMsg returns the string of the message in the objects of [nestedNames]; nil for none.
func (p *Parser) nestedMsg() []byte {
	for _, v := range p.nestedOf(partMsg) {
		if len(v) > len(`""`) && v[0] == '"' {
			return v
		}
	}
	return nil
}

// msgField is the index of the field with the message, -1 for none: the first with a text, else
// the first with another value that may be one.
func (p *Parser) msgField() int {
	other := -1
	if len(p.mapped.offers) > 0 {
		var at int
		if at, other = p.mappedWord(partMsg); at >= 0 {
			return at
		}
	}
	if p.found[kindMsg/perKind]&1 != 0 { // as nearly all records have it
		if f := &p.fields[p.slots[kindMsg]]; p.src[f.val] == '"' && f.valEnd-f.val > 2 {
			return int(p.slots[kindMsg])
		}
	}
	for left := p.candidates(kindMsg); left != 0; left &= left - 1 {
		n := kindMsg + name(bits.TrailingZeros64(left))
		for at := int(p.slots[n]); at >= 0; at = p.next(at) {
			f := &p.fields[at]
			if n == nameText {
				if p.nestedMsg() != nil {
					return -1
				}
			}
			switch c := p.src[f.val]; {
			case c == '"' && f.valEnd-f.val > 2:
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
func (p *Parser) serviceField() (at int, text []byte, nested bool) {
	other := -1
	if len(p.mapped.offers) > 0 {
		if at, other = p.mappedWord(partService); at >= 0 {
			return at, p.text(&p.fields[at]), false
		}
	}
	for left := p.found[kindService/perKind]; left != 0; left &= left - 1 {
		n := kindService + name(bits.TrailingZeros64(left))
		for at = int(p.slots[n]); at >= 0; at = p.next(at) {
			f := &p.fields[at]
			switch c := p.src[f.val]; {
			case c == '"' && f.valEnd-f.val > 2:
				return at, p.text(f), false
			case c == '{' && n == nameService:
				if v := p.path(n, "service.name"); len(v) > len(`""`) && v[0] == '"' {
					p.scratch = AppendUnescaped(p.scratch[:0], v[1:len(v)-1])
					return at, p.scratch, true
				}
			case other < 0 && n <= nameApp && c != '"' && c != 'n' && c != '{':
				other = at
			}
		}
	}
	if other >= 0 {
		return other, p.compact(&p.fields[other]), false
	}
	if p.found[kindParent/perKind] == 0 {
		return -1, nil, false
	}
	if v := p.path(parentKubernetes, "kubernetes.container_name"); len(v) > len(`""`) && v[0] == '"' {
		p.scratch = AppendUnescaped(p.scratch[:0], v[1:len(v)-1])
		return int(p.slots[parentKubernetes]), p.scratch, true
	}
	return -1, nil, false
}
