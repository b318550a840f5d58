package record

import (
	"bytes"
	"iter"
	"strings"
)

// Members iterates over the object scanned last: the keys, escaped as in canonical lines, and
// the values as they are in the source. Neither may be kept, or the parser used for another
// object, until the iteration has ended.
func (p *Parser) Members() iter.Seq2[[]byte, []byte] { return p.members(nil) }

// Head returns the head that [Parser.AppendLine] would find in the object scanned last, for a
// record by parts, and iterates over the other members. Its bytes are a
// copy.
func (p *Parser) Head(d *Defaults) (h Head, rest iter.Seq2[[]byte, []byte]) {
	var s Stamp
	p.find(nameTs, d, &s)
	at := p.last
	h.Time, h.Unread, h.Guessed, h.Far = s.Time, s.TimeUnread, s.Guessed, s.TimeFar
	if h.Msg = p.copied(at.msg); at.msg >= 0 && p.fields[at.msg].known == nameLog {
		h.Msg = bytes.TrimSuffix(h.Msg, []byte("\n"))
	} else if at.msg < 0 {
		h.Msg = bytes.Clone(p.message())
	}
	if v := p.Level(); v != nil {
		h.Level = TextOf(v)
	}
	var name []byte
	var nested bool
	at.service, name, nested = p.serviceField()
	p.last.service = at.service
	if h.Service = bytes.Clone(name); nested {
		at.service = -1 // the object is a member
	}
	return h, p.members(&at)
}

// Shows returns the time and the level that the object scanned last has by its fields, the time in
// a stamp and Other for no level, and its message, which is valid until the next use of the parser.
func (p *Parser) Shows(d *Defaults) (s Stamp, l Level, msg []byte) {
	p.find(nameTs, d, &s)
	return s, p.last.is, p.message()
}

// members iterates over the members that are not in a head.
func (p *Parser) members(h *head) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		for i := range p.fields {
			if h != nil && (i == h.time || i == h.level || i == h.service || i == h.msg) {
				continue
			}
			f := &p.fields[i]
			if h != nil && p.isEmpty(f) && isHead(p.key(p.src, f)) {
				continue
			}
			if !yield(p.key(p.src, f), p.src[f.val:f.valEnd]) {
				return
			}
		}
	}
}

// isHead reports whether a key is one of the head of a line.
func isHead(key []byte) bool {
	switch string(key) {
	case "ts", "level", "service", "msg":
		return true
	}
	return false
}

// copied returns the text of a string, or the JSON of any other value; nil for null, and for
// the index -1.
func (p *Parser) copied(at int) []byte {
	if at < 0 {
		return nil
	}
	return TextOf(p.src[p.fields[at].val:p.fields[at].valEnd])
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

// Member adds a member of an object, as [Parser.Members] yields it. A prefix of its name is cut
// off.
func (b *Parts) Member(key, value []byte, prefix string) {
	if bytes.IndexByte(key, '\\') >= 0 {
		key = AppendUnescaped(nil, key)
	}
	b.JSON(strings.TrimPrefix(string(key), prefix), value)
}
