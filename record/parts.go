package record

import (
	"math"
	"slices"
	"strconv"
)

// Head is the beginning of a record by parts. The bytes are the caller's; nil and
// empty mean the same.
type Head struct {
	Time int64 // Unix nanoseconds; 0 when the record has no time
	// Observed is when somebody read the record, in Unix nanoseconds. It is the time of a record
	// without one, if the message shows none. 0: it is not known.
	Observed int64
	Unread   bool   // a part of the protocol for the time could not be read
	Guessed  bool   // the time is a guess that was believed
	Far      bool   // a guessed time was too far off
	Level    []byte // any word: aliases as in [ParseLevel] become the level's own
	Service  []byte // the sender's name for it, not folded
	Msg      []byte
	// Assumed says that the sender gives a level to all lines of a program. One that the message
	// shows counts before it, if it is info.
	Assumed bool
	// Sought says that the caller has looked into the message for a time and a level.
	Sought bool
	// Renames says that a repeated key is no mistake, because the fields come from several
	// places: it gets the first free number from 2 appended. Such a record has at most
	// [MaxFields] fields.
	Renames bool
	// Why says where the parts come from, to a sink that asks. Nil: they are the protocol's.
	Why *Why
}

// MaxFields is the number of fields that a record with [Head.Renames] may have.
const MaxFields = 256

// Parts writes the canonical line of a record that is not a JSON object. Begin it
// with [Parser.Begin], add fields, and call [Parts.End]. The line is the same as that
// of [Parser.AppendLine] for an object with the members ts, level, msg, the fields
// and service, in this order, without the empty ones.
//
// Two rules differ. The names of fields have no meaning: no field is used as the time
// or the level, unless a [Mapping] names it: [Parser.Remap] applies that to the finished line. And a
// field called ts, level, service or msg gets ".original" appended to its name.
type Parts struct {
	parser *Parser // its fields are those added so far
	line   []byte
	stamp  Stamp
	own    []byte // the record's own service, when it is kept as a field
	room   int    // bytes that further parts may have
	rename bool   // repeated keys
	// The level is an assumed one.
	assumed bool
	// The time is [Head.Observed].
	observed bool
	keys     partKeys
}

// Begin begins a record by parts, and will append its line to dst. The parts are
// valid until the next call of Begin. They share the parser's memory, so Scan must
// not be called before End.
func (p *Parser) Begin(dst []byte, h Head, d *Defaults) *Parts {
	b := &p.parts
	b.room, b.own, b.rename = MaxRecord, nil, h.Renames
	b.keys.begin(h.Renames)
	if len(p.fields) > 0 || p.found != (present{}) || p.reject != nil {
		p.reset()
	}
	if !b.fits(len(h.Level) + len(h.Service) + len(h.Msg)) {
		h.Level, h.Service, h.Msg = nil, nil, nil
	}
	s := Stamp{Time: d.Time, Level: Other, Service: d.Service}
	if s.TimeUnread, s.TimeFar = h.Unread, h.Far; h.Time != 0 {
		s.Time, s.OwnTime, s.Guessed = h.Time, true, h.Guessed
	}
	if p.setService(h.Service, d.Fallback, &s) {
		b.own = h.Service
	}
	var odd []byte // a number that is no level
	if len(h.Level) > 0 {
		if s.Level = ParseLevel(h.Level); s.Level == Other {
			if _, number := numberOf(h.Level); number {
				odd, h.Level = h.Level, nil
			}
		}
	}
	p.last.soughtTime, p.last.soughtLevel = false, false
	b.assumed = h.Assumed && s.Level == Info
	if named := len(h.Level) > 0 && !b.assumed; d.Seek != nil && !h.Sought && (h.Time == 0 || !named) && len(h.Msg) > 0 {
		p.soughtOr(d, h.Msg, &s, named)
	}
	if b.observed = h.Observed != 0 && !s.OwnTime; b.observed {
		s.Time, s.OwnTime = h.Observed, true
	}
	dst = slices.Grow(dst, len(h.Level)+len(h.Msg)+lineRoom)
	dst = append(dst, tsPrefix...)
	dst = p.clock.append(dst, s.Time)
	dst = append(dst, levelPrefix...)
	if s.Level != Other {
		dst = append(dst, s.Level.String()...)
	} else {
		dst = AppendEscaped(dst, h.Level)
		s.LevelUnread = len(h.Level)+len(odd) > 0
	}
	dst = append(dst, servicePrefix...)
	dst = append(dst, s.Service...)
	dst = append(dst, msgPrefix...)
	dst = AppendEscaped(dst, h.Msg)
	b.line, b.stamp = append(dst, '"'), s
	if odd != nil {
		b.room += len("level") + len(odd) // they are already counted
		b.Text("level", odd)
	}
	return b
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
	p.fields = append(p.fields, field{key: int32(at + 1), flags: keyDirty, name: int32(from), nameEnd: int32(len(p.names))})
	p.addName(nil, &p.fields[len(p.fields)-1], key, firstWord(key))
	b.line = append(b.line, ',', '"')
	b.line = append(b.line, key...)
	b.line = append(b.line, '"', ':')
	if p.reject != nil {
		return false
	}
	b.keys.learn(len(p.fields)-1, name, key, &p.fields[len(p.fields)-1])
	return true
}

// renamed gives the key that begins at from in names a number if it is taken. It reports
// whether the record may have one more field.
func (b *Parts) renamed(from int) bool {
	p := b.parser
	if len(p.fields) == MaxFields {
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
func (p *Parser) taken(key []byte) bool {
	for i := range p.fields {
		f := &p.fields[i]
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

// End ends the record and returns its line appended to dst. The error is a
// *[RejectError]: a key is repeated, or the parts have more than [MaxRecord] bytes
// together.
func (b *Parts) End() ([]byte, Stamp, error) {
	p := b.parser
	if b.own != nil {
		if p.has(nameServiceName) {
			b.keys.leave(p)
		}
		name := p.serviceKey(&field{known: nameService})
		b.room += len(name) + len(b.own) // they are already counted
		b.Text(name, b.own)
	}
	if len(p.fields) > manyFields {
		p.checkMany()
	}
	line := append(b.line, "}\n"...)
	b.line = nil
	if p.reject != nil {
		return nil, b.stamp, p.reject
	}
	return line, b.stamp, nil
}
