package record

import (
	"math"
	"strconv"
)

// MaxFields is the number of fields that a record by parts with renamed keys may have.
const MaxFields = 256

// Parts writes the canonical line of a record that is no JSON object: a head, and fields behind it. A
// field called ts, level, service or msg gets ".original" appended to its name.
type Parts struct {
	parser *Scanner // its fields are those added so far
	line   []byte
	room   int  // bytes that further parts may have
	rename bool // repeated keys
	keys   partKeys
}

// Begin begins a record by parts whose head has n bytes. The parts share the scanner's memory, so Scan
// must not be called before End. renames says that a repeated key gets the first free number from 2
// appended; such a record has at most [MaxFields] fields. fits is false if the head is too long: then End
// has the error.
func (p *Scanner) Begin(b *Parts, n int, renames bool) (fits bool) {
	b.parser, b.room, b.rename = p, MaxRecord, renames
	b.keys.begin(renames)
	if len(p.Fields) > 0 || p.Src != nil || p.Found != (Tags{}) || p.reject != nil {
		p.reset()
	}
	return b.fits(n)
}

// Head sets the line, which has a head: a text up to the quote behind the message.
func (b *Parts) Head(line []byte) { b.line = line }

// Keep adds a string of the head, whose bytes are counted already.
func (b *Parts) Keep(key string, text []byte) {
	b.room += len(key) + len(text)
	b.Text(key, text)
}

// FreeKey is [Scanner.FreeKey] of the fields that were added.
func (b *Parts) FreeKey(want string) string {
	b.keys.leave(b.parser)
	return b.parser.FreeKey(want)
}

// fits counts n bytes, and rejects the record when it has become too long.
func (b *Parts) fits(n int) bool {
	if b.room -= n; b.room < 0 && b.parser.reject == nil {
		b.parser.reject = &RejectError{Offset: MaxRecord, Reason: "longer than 1 MiB"}
	}
	return b.parser.reject == nil
}

// key begins a field with a value of n bytes; false when the record is rejected.
func (b *Parts) key(name string, n int) bool {
	p, at := b.parser, MaxRecord-b.room
	if !b.fits(len(name) + n) {
		return false
	}
	if k := b.keys.next(p, name); k != nil {
		b.line = append(b.line, b.keys.text[k.key:k.end]...)
		return true
	}
	from := len(p.names)
	p.names = AppendEscaped(p.names, []byte(name))
	switch name {
	case "ts", "level", "service", "msg":
		p.names = append(p.names, ".original"...)
	}
	if b.rename && !b.renamed(from) {
		return false
	}
	key := p.names[from:]
	p.Fields = append(p.Fields, Field{Key: int32(at + 1), flags: keyDirty, name: int32(from), nameEnd: int32(len(p.names))})
	p.addName(nil, &p.Fields[len(p.Fields)-1], key, firstWord(key))
	b.line = append(b.line, ',', '"')
	b.line = append(b.line, key...)
	b.line = append(b.line, '"', ':')
	if p.reject != nil {
		return false
	}
	b.keys.learn(len(p.Fields)-1, name, key, &p.Fields[len(p.Fields)-1])
	return true
}

// renamed gives the key that begins at from in names a number if it is taken. It reports
// whether the record may have one more field.
func (b *Parts) renamed(from int) bool {
	p := b.parser
	if len(p.Fields) == MaxFields {
		p.reject = &RejectError{Offset: MaxRecord - b.room, Reason: "more than 256 fields"}
		return false
	}
	end := len(p.names)
	for n := 2; p.taken(p.names[from:]); n++ {
		p.names = append(p.names[:end], '.')
		p.names = strconv.AppendInt(p.names, int64(n), 10)
	}
	return true
}

// taken reports whether a field by parts has a key. There are at most [MaxFields].
func (p *Scanner) taken(key []byte) bool {
	for i := range p.Fields {
		f := &p.Fields[i]
		if int(f.nameEnd-f.name) == len(key) && string(p.names[f.name:f.nameEnd]) == string(key) {
			return true
		}
	}
	return false
}

// Text adds a string. Bytes that are no UTF-8 become the text \xnn.
func (b *Parts) Text(key string, text []byte) {
	if b.key(key, len(text)) {
		b.line = append(b.line, '"')
		b.line = AppendEscaped(b.line, text)
		b.line = append(b.line, '"')
	}
}

// Int adds an integer.
func (b *Parts) Int(key string, n int64) {
	if b.key(key, 1) {
		b.line = strconv.AppendInt(b.line, n, 10)
	}
}

// Float adds a number. One that JSON cannot express is added as text, such as "NaN".
func (b *Parts) Float(key string, f float64) {
	switch {
	case math.IsNaN(f), math.IsInf(f, 0):
		b.Text(key, strconv.AppendFloat(nil, f, 'g', -1, 64))
	case b.key(key, 1):
		b.line = AppendFloat(b.line, f)
	}
}

// Bool adds true or false.
func (b *Parts) Bool(key string, v bool) {
	if b.key(key, 1) {
		b.line = strconv.AppendBool(b.line, v)
	}
}

// JSON adds a value of any kind. If it is not one valid JSON value, or is nested too
// deeply, the record is rejected.
func (b *Parts) JSON(key string, value []byte) {
	if !b.key(key, len(value)) {
		return
	}
	p := b.parser
	end, bad := p.scanValue(value)
	switch {
	case bad != nil:
		p.reject = bad
	case end != len(value):
		p.reject = syntaxError(value, end, "after a value")
	case (value[0] == '{' || value[0] == '[') && p.nested.maybe:
		b.line = appendUnique(b.line, appendCompact(nil, value))
	default:
		b.line = appendCompact(b.line, value)
	}
}

// End ends the record and returns its line. The error is a *[RejectError]: a key is repeated, or the
// parts have more than [MaxRecord] bytes together.
func (b *Parts) End() ([]byte, error) {
	p := b.parser
	if len(p.Fields) > manyFields {
		p.checkMany()
	}
	line := append(b.line, "}\n"...)
	b.line = nil
	if p.reject != nil {
		b.keys.cut(0) // one of them may be there twice
		return nil, p.reject
	}
	return line, nil
}
