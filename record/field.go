package record

import (
	"bytes"
	"iter"
	"strconv"
	"strings"
)

// Key is the canonical key of a field.
func (p *Scanner) Key(f *Field) []byte { return p.key(p.Src, f) }

// Value is the value of a field, as it stands in the source.
func (p *Scanner) Value(f *Field) []byte { return p.Src[f.Val:f.ValEnd] }

// IsPlain reports whether a field stands in the source as in a canonical line.
func (f *Field) IsPlain() bool { return f.flags&notPlain == 0 }

// IsEscaped reports whether a field that is a string has escapes.
func (f *Field) IsEscaped() bool { return f.flags&valEscaped != 0 }

// Next is the index of the next field with the tag of the field at, -1 for none.
func (p *Scanner) Next(at int) int {
	if p.Again {
		for i := at + 1; i < len(p.Fields); i++ {
			if p.Fields[i].Tag == p.Fields[at].Tag {
				return i
			}
		}
	}
	return -1
}

// Text is the text of a field that is a string. It is valid until the next call of Text or Unescape.
func (p *Scanner) Text(f *Field) []byte {
	s := p.Src[f.Val+1 : f.ValEnd-1]
	if f.flags&valEscaped == 0 {
		return s
	}
	p.scratch = AppendUnescaped(p.scratch[:0], s)
	return p.scratch
}

// Unescape is the text of a string of JSON. It is valid until the next call of Text or Unescape.
func (p *Scanner) Unescape(value []byte) []byte {
	p.scratch = AppendUnescaped(p.scratch[:0], value[1:len(value)-1])
	return p.scratch
}

// Compact is the canonical text of a value. It is valid until the next call.
func (p *Scanner) Compact(f *Field) []byte {
	v := p.Src[f.Val:f.ValEnd]
	if f.flags&valDirty == 0 {
		return v
	}
	p.value = appendCompact(p.value[:0], v)
	if f.flags&valRepeats != 0 {
		p.value = appendUnique(nil, p.value)
	}
	return p.value
}

// AppendWord appends a value as the inside of a string: a string's own text, nothing
// for null, the compact JSON text of any other value.
func (p *Scanner) AppendWord(dst []byte, f *Field) []byte {
	v := p.Src[f.Val:f.ValEnd]
	switch {
	case v[0] == '"' && f.flags&valDirty == 0:
		return append(dst, v[1:len(v)-1]...)
	case v[0] == '"':
		return appendCanonical(dst, v[1:len(v)-1])
	case v[0] == 'n':
		return dst
	}
	return AppendEscaped(dst, p.Compact(f))
}

// IsEmpty reports whether a field has nothing to keep.
func (p *Scanner) IsEmpty(f *Field) bool {
	v := p.Src[f.Val:f.ValEnd]
	return string(v) == `""` || v[0] == 'n'
}

// IsObject reports whether the value of the field at is an object; not of -1.
func (p *Scanner) IsObject(at int) bool { return at >= 0 && p.Src[p.Fields[at].Val] == '{' }

// Add adds a value of the source as a field without a key, and returns its index.
func (p *Scanner) Add(val, end int, tag Tag) (at int) {
	f := Field{Val: int32(val), ValEnd: int32(end), Tag: tag}
	switch p.Src[val] {
	case '"':
		_, state := scanString(p.Src, val+1)
		f.flags = uint8(state)
	case '[':
		f.flags = valDirty | valRepeats
	}
	p.Fields = append(p.Fields, f)
	return len(p.Fields) - 1
}

// FreeKey is want, or, when the record has such a field, want with the first free
// number from 2 appended.
func (p *Scanner) FreeKey(want string) string {
	taken := map[string]bool{}
	for i := range p.Fields {
		if key := p.Key(&p.Fields[i]); bytes.HasPrefix(key, []byte(want)) {
			taken[string(key)] = true
		}
	}
	key := want
	for n := 2; taken[key]; n++ {
		key = want + "." + strconv.Itoa(n)
	}
	return key
}

// Members iterates over the object scanned last: the keys, escaped as in canonical lines, and
// the values as they are in the source. Neither may be kept, or the scanner used for another
// object, until the iteration has ended.
func (p *Scanner) Members() iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		for i := range p.Fields {
			if f := &p.Fields[i]; !yield(p.Key(f), p.Value(f)) {
				return
			}
		}
	}
}

// Member adds a member of an object, as [Scanner.Members] yields it. A prefix of its name is cut
// off.
func (b *Parts) Member(key, value []byte, prefix string) {
	if bytes.IndexByte(key, '\\') >= 0 {
		key = AppendUnescaped(nil, key)
	}
	b.JSON(strings.TrimPrefix(string(key), prefix), value)
}

// TextOf returns the text of a JSON string, or the compact JSON of any other value, as a copy.
// It is nil for null.
func TextOf(value []byte) []byte {
	switch {
	case IsString(value):
		return AppendUnescaped(nil, value[1:len(value)-1])
	case string(value) == "null":
		return nil
	}
	return appendUnique(nil, appendCompact(nil, value))
}
