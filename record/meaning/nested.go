package meaning

import (
	"iter"
	"math/bits"
	"strings"

	"blobtail/record"
	"blobtail/record/names"
	"blobtail/record/times"
)

// The Elastic Common Schema has objects where other senders have flat names: log has the
// level, service has the name. Only a record that has such an object pays for these.

// findLevel finds the field with the level, or -1. l is Other for a word of the sender's own.
// A field with a name from [names.Priority] on stays: at is -1, and l the level.
func (p *Reader) findLevel() (at int, l record.Level) {
	own := -1
	p.notes.begin(names.Level)
	if len(p.mapped.offers) > 0 {
		if at, own, l = p.mappedLevel(); at >= 0 {
			return at, l
		}
	}
	if p.found()[kindLevel/names.PerKind]&1 != 0 { // as nearly all records have it
		if l = p.plainLevel(&p.Fields[p.Slots[kindLevel]]); l != record.Other {
			return int(p.Slots[kindLevel]), l
		}
	}
	number, on, before := -1, record.Other, 0 // the first number that is on a scale: words come before it
	for left := p.candidates(kindLevel); left != 0; left &= left - 1 {
		n := kindLevel + names.Name(bits.TrailingZeros64(left))
		if n >= names.Priority && number >= 0 {
			break
		}
		for at = int(p.Slots[n]); at >= 0; at = p.Next(at) {
			f := &p.Fields[at]
			switch l, by := p.levelOf(f); {
			case l != record.Other && n >= names.Priority:
				if own < 0 {
					p.notes.stays, p.notes.by = at, by
					return -1, l
				}
			case l != record.Other && by == nil:
				p.notes.by = nil
				return at, l
			case l != record.Other:
				if number < 0 {
					number, on, before, p.notes.by = at, l, len(p.notes.passed[names.Level]), by
				}
				p.notes.pass(names.Level, at, wordFirst)
			case n < names.Priority && !p.IsEmpty(f):
				if own < 0 && n <= names.LogLevel && p.isOwnLevel(f) {
					own = at
				}
				p.notes.pass(names.Level, at, noLevel)
			}
		}
	}
	if number >= 0 {
		p.notes.passed[names.Level] = p.notes.passed[names.Level][:before]
		return number, on
	}
	if own < 0 && p.Found.Has(names.AtT) && (p.Found.Has(names.AtM) || p.Found.Has(names.AtMt)) {
		p.notes.stays = int(p.Slots[names.AtT])
		return -1, record.Info // Serilog leaves it out
	}
	return own, record.Other
}

// plainLevel is the level of the field level, as canonical lines have it, or a number that no word is beside.
func (p *Reader) plainLevel(f *record.Field) (l record.Level) {
	l = record.Other
	if v := p.Value(f); v[0] == '"' {
		l = record.LevelOf(v[1 : len(v)-1])
	} else if p.found()[kindLevel/names.PerKind] == 1 && record.IsDigit(v[0]) {
		l, p.notes.by = p.found().Level(kindLevel, v)
	}
	return l
}

// isOwnLevel reports whether a field may have a word of the sender's own for a level.
func (p *Reader) isOwnLevel(f *record.Field) bool {
	if p.Src[f.Val] != '"' || f.ValEnd-f.Val <= 2 {
		return false
	}
	_, number := names.Number(p.Text(f))
	return !number
}

// levelOf returns the level that a field has under its name. by is the scale that its number is on.
func (p *Reader) levelOf(f *record.Field) (l record.Level, by *names.Scale) {
	v := p.Value(f)
	switch {
	case v[0] == '"':
		if l := record.LevelOf(v[1 : len(v)-1]); l != record.Other && f.Tag != names.S {
			return l, nil
		}
		return p.found().Level(f.Tag, p.Text(f))
	case !record.IsDigit(v[0]) && v[0] != '-', f.Tag >= names.Priority:
		return record.Other, nil
	}
	return p.found().Level(f.Tag, v)
}

// candidates are the names of a kind that the record has, as bits, without those of conditions that
// it does not meet.
func (p *Reader) candidates(kind names.Name) uint64 {
	left := p.found()[kind/names.PerKind]
	if odd := left & names.Conditional(kind); odd != 0 {
		left &^= p.idle(kind, odd)
	}
	return left
}

// idle are those of the names of conditions that do not count.
func (p *Reader) idle(kind names.Name, odd uint64) (idle uint64) {
	marks := *p.found()
	if marks.Has(names.Kind) {
		if f := &p.Fields[p.Slots[names.Kind]]; p.Src[f.Val] != '"' || !names.IsMark(names.Kind, p.Text(f)) {
			marks[names.Kind/names.PerKind] &^= 1 << (names.Kind % names.PerKind)
		}
	}
	for ; odd != 0; odd &= odd - 1 {
		if n := kind + names.Name(bits.TrailingZeros64(odd)); !marks.Counts(n) {
			idle |= odd & -odd
		}
	}
	return idle
}

// hasObject reports whether the first field with a name is an object.
func hasObject(p *Reader, n names.Name) bool { return p.Found.Has(n) && p.IsObject(int(p.Slots[n])) }

// hasParent reports whether there is one of the parents of [names.Nested].
func hasParent(p *Reader) bool {
	return p.found()[kindParent/names.PerKind] != 0 || hasObject(p, names.Log) || hasObject(p, names.LevelObject) ||
		hasObject(p, names.Event) || hasObject(p, names.LogMessage)
}

// path returns the value of a member by its path, whose first name is that of a field, known as n.
// It is nil if there is none.
func (p *Reader) path(n names.Name, path string) []byte {
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

// nestedOf iterates over the members of [names.Nested] for a part that the record has. The one at which
// the iteration ends is noted.
func (p *Reader) nestedOf(part names.Part) iter.Seq2[*names.Nested, []byte] {
	p.notes.nested[part] = nil
	return func(yield func(*names.Nested, []byte) bool) {
		if !hasParent(p) {
			return
		}
		for n := range p.found().Nested(part) {
			if v := p.path(n.Parent, n.Path); len(v) > 0 && !yield(n, v) {
				p.notes.nested[part] = n
				return
			}
		}
	}
}

// nestedTime returns the time in the objects of [names.Nested], at most latest. No row is noted if there
// is none.
func (p *Reader) nestedTime(latest int64) (ns int64) {
	for _, v := range p.nestedOf(names.Time) {
		if ns, part := valueTime(&p.times, v); part == times.Full && ns <= latest {
			return ns
		}
	}
	return 0
}

// nestedLevel returns the level in the objects of [names.Nested]. For a word of the sender's own it is
// Other, and v the word with its quotes. v is nil for none.
func (p *Reader) nestedLevel() (v []byte, l record.Level) {
	for n, v := range p.nestedOf(names.Level) {
		text := v
		if v[0] == '"' {
			text = p.Unescape(v)
		} else if !record.IsDigit(v[0]) && v[0] != '-' {
			continue
		}
		last := names.Lookup([]byte(n.Path[strings.LastIndexByte(n.Path, '.')+1:]))
		l, _ := p.found().Level(last, text)
		if _, number := names.Number(text); l != record.Other || len(text) > 0 && !number {
			return v, l
		}
	}
	return nil, record.Other
}

// nestedMsg returns the string of the message in the objects of [names.Nested]; nil for none.
func (p *Reader) nestedMsg() []byte {
	for _, v := range p.nestedOf(names.Message) {
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
		if at, other = p.mappedWord(names.Message); at >= 0 {
			return at
		}
	}
	if p.found()[kindMsg/names.PerKind]&1 != 0 { // as nearly all records have it
		if f := &p.Fields[p.Slots[kindMsg]]; p.Src[f.Val] == '"' && f.ValEnd-f.Val > 2 {
			return int(p.Slots[kindMsg])
		}
	}
	for left := p.candidates(kindMsg); left != 0; left &= left - 1 {
		n := kindMsg + names.Name(bits.TrailingZeros64(left))
		for at := int(p.Slots[n]); at >= 0; at = p.Next(at) {
			f := &p.Fields[at]
			if n == names.Text {
				if p.nestedMsg() != nil {
					return -1
				}
			}
			switch c := p.Src[f.Val]; {
			case c == '"' && f.ValEnd-f.Val > 2:
				return at
			case other < 0 && n <= names.Log && c != '"' && c != 'n' && (n != names.Log || c != '{'):
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
		if at, other = p.mappedWord(names.Service); at >= 0 {
			return at, p.Text(&p.Fields[at]), false
		}
	}
	for left := p.found()[kindService/names.PerKind]; left != 0; left &= left - 1 {
		n := kindService + names.Name(bits.TrailingZeros64(left))
		for at = int(p.Slots[n]); at >= 0; at = p.Next(at) {
			f := &p.Fields[at]
			switch c := p.Src[f.Val]; {
			case c == '"' && f.ValEnd-f.Val > 2:
				return at, p.Text(f), false
			case c == '{' && n == names.ServiceObject:
				if v := p.path(n, "service.name"); len(v) > len(`""`) && v[0] == '"' {
					return at, p.Unescape(v), true
				}
			case other < 0 && n <= names.App && c != '"' && c != 'n' && c != '{':
				other = at
			}
		}
	}
	if other >= 0 {
		return other, p.Compact(&p.Fields[other]), false
	}
	if p.found()[kindParent/names.PerKind] == 0 {
		return -1, nil, false
	}
	if v := p.path(names.Kubernetes, "kubernetes.container_name"); len(v) > len(`""`) && v[0] == '"' {
		return int(p.Slots[names.Kubernetes]), p.Unescape(v), true
	}
	return -1, nil, false
}
