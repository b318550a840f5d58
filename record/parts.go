package record

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
)

// Head is the beginning of a record by parts. The bytes are the caller's; nil and
// empty mean the same.
type Head struct {
	Time    int64  // Unix nanoseconds; 0 when the record has no time
	Level   []byte // any word: aliases as in [ParseLevel] become the level's own
	Service []byte // the sender's name for it, not folded
	Msg     []byte
}

// Parts writes the canonical line of a record that is not a JSON object. Begin it
// with [Parser.Begin], add fields, and call [Parts.End]. The line is the same as that
// of [Parser.AppendLine] for an object with the members ts, level, msg, the fields
// and service, in this order, without the empty ones.
//
// Two rules differ. The names of fields have no meaning: no field is used as the time
// or the level. And a field called ts, level, service or msg gets ".original"
// appended to its name.
type Parts struct {
	parser *Parser
	line   []byte
	stamp  Stamp
	own    []byte // the record's own service, when it is kept as a field
	room   int    // bytes that further parts may have
	reject *RejectError
	keys   []span              // of the fields, in line
	many   map[string]struct{} // the same, when they are many
}

// span is a part of a line.
type span struct{ from, to int }

// Begin begins a record by parts, and will append its line to dst. The parts are
// valid until the next call of Begin. They share the parser's memory, so Scan must
// not be called before End.
func (p *Parser) Begin(dst []byte, h Head, d Defaults) *Parts {
	b := &p.parts
	b.room, b.keys = MaxRecord, b.keys[:0]
	if b.many != nil || b.reject != nil || b.own != nil {
		*b = Parts{parser: p, room: MaxRecord}
	}
	if !b.fits(len(h.Level) + len(h.Service) + len(h.Msg)) {
		h.Level, h.Service, h.Msg = nil, nil, nil
	}
	s := Stamp{Time: d.Time, Level: Other, Service: d.Service}
	if h.Time != 0 {
		s.Time, s.OwnTime = h.Time, true
	}
	if p.setService(h.Service, &s) {
		b.own = h.Service
	}
	dst = slices.Grow(dst, len(h.Level)+len(h.Msg)+lineRoom)
	dst = append(dst, tsPrefix...)
	dst = p.appendTime(dst, s.Time)
	dst = append(dst, levelPrefix...)
	if len(h.Level) > 0 {
		if s.Level = parseLevel(h.Level); s.Level != Other {
			dst = append(dst, s.Level.String()...)
		} else {
			dst = AppendEscaped(dst, h.Level)
		}
	}
	dst = append(dst, servicePrefix...)
	dst = append(dst, s.Service...)
	dst = append(dst, msgPrefix...)
	dst = AppendEscaped(dst, h.Msg)
	b.line, b.stamp = append(dst, '"'), s
	return b
}

// fits counts n bytes, and rejects the record when it has become too long.
func (b *Parts) fits(n int) bool {
	if b.room -= n; b.room < 0 && b.reject == nil {
		b.reject = &RejectError{Offset: MaxRecord, Reason: "longer than 1 MiB"}
	}
	return b.reject == nil
}

// key begins a field with a value of n bytes; false when the record is rejected.
func (b *Parts) key(name string, n int) bool {
	if !b.fits(len(name) + n) {
		return false
	}
	b.line = append(b.line, ',', '"')
	from := len(b.line)
	b.line = AppendEscaped(b.line, []byte(name))
	switch name {
	case "ts", "level", "service", "msg":
		b.line = append(b.line, ".original"...)
	}
	if b.taken(b.line[from:]) {
		b.reject = &RejectError{Offset: MaxRecord - b.room - n - len(name), Reason: fmt.Sprintf("duplicate key %q", cutText([]byte(name), 64))}
		return false
	}
	b.keys = append(b.keys, span{from, len(b.line)})
	b.line = append(b.line, '"', ':')
	return true
}

// taken reports whether a field has a key.
func (b *Parts) taken(key []byte) bool {
	if len(b.keys) < manyFields {
		return slices.ContainsFunc(b.keys, func(s span) bool { return bytes.Equal(b.line[s.from:s.to], key) })
	}
	if b.many == nil {
		b.many = make(map[string]struct{}, 4*manyFields)
	}
	for _, s := range b.keys[len(b.many):] {
		b.many[string(b.line[s.from:s.to])] = struct{}{}
	}
	_, ok := b.many[string(key)]
	return ok
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

// JSON adds a value, such as 12.5, null or an array. It is unchanged except for white
// space between its tokens. A value that is not valid, or nested too deep, rejects the
// record.
func (b *Parts) JSON(key string, value []byte) {
	at := MaxRecord - b.room + len(key)
	value = bytes.Trim(value, " \t\r\n")
	if !b.key(key, len(value)) {
		return
	}
	if b.reject = b.parser.checkValue(value); b.reject != nil {
		b.reject.Offset += at
		return
	}
	b.line = appendCompact(b.line, value)
}

// checkValue checks one JSON value, which has no white space around it.
func (p *Parser) checkValue(src []byte) *RejectError {
	p.reject = nil
	end, bad := p.scanValue(src)
	switch {
	case bad != nil:
		return bad
	case end < len(src):
		return syntaxError(src, end, "after a value")
	}
	return p.reject
}

// End ends the record and returns its line appended to dst. The error is a
// *[RejectError]: a key is repeated, the parts have more than [MaxRecord] bytes
// together, or a JSON value is not valid.
func (b *Parts) End() ([]byte, Stamp, error) {
	if b.own != nil {
		b.keepService()
	}
	line := append(b.line, "}\n"...)
	b.line = nil
	if b.reject != nil {
		return nil, b.stamp, b.reject
	}
	return line, b.stamp, nil
}

// keepService adds the record's own service under the first free name.
func (b *Parts) keepService() {
	name := "service.name"
	for n := 1; b.taken([]byte(name)); n++ {
		if name = "service.original"; n > 1 {
			name += "." + strconv.Itoa(n)
		}
	}
	b.room += len(name) + len(b.own) // they are already counted
	b.Text(name, b.own)
}
