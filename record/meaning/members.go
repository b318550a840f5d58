package meaning

import (
	"bytes"
	"iter"

	"blobtail/record"
	"blobtail/record/names"
)

// Head returns the head that [Reader.AppendLine] would find in the object scanned last, for a
// record by parts, and iterates over the other members. Its bytes are a
// copy.
func (p *Reader) Head(d *Defaults) (h Head, rest iter.Seq2[[]byte, []byte]) {
	var s record.Stamp
	p.find(names.Ts, d, &s)
	at := p.last
	h.Time, h.Unread, h.Guessed, h.Far = s.Time, s.TimeUnread, s.Guessed, s.TimeFar
	if h.Msg = copied(p, at.msg); at.msg >= 0 && p.Fields[at.msg].Tag == names.Log {
		h.Msg = bytes.TrimSuffix(h.Msg, []byte("\n"))
	} else if at.msg < 0 {
		h.Msg = bytes.Clone(p.message())
	}
	if v := p.Level(); v != nil {
		h.Level = record.TextOf(v)
	}
	var name []byte
	var nested bool
	at.service, name, nested = p.serviceField()
	p.last.service = at.service
	if h.Service = bytes.Clone(name); nested {
		at.service = -1 // the object is a member
	}
	return h, members(p, &at)
}

// shows returns the time and the level that the object scanned last has by its fields, the time in
// a stamp and Other for no level, and its message, which is valid until the next use of the parser.
func (p *Reader) shows(d *Defaults) (s record.Stamp, l record.Level, msg []byte) {
	p.find(names.Ts, d, &s)
	return s, p.last.is, p.message()
}

// members iterates over the members that are not in a head.
func members(p *Reader, h *head) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		for i := range p.Fields {
			if h != nil && (i == h.time || i == h.level || i == h.service || i == h.msg) {
				continue
			}
			f := &p.Fields[i]
			if h != nil && p.IsEmpty(f) && isHead(p.Key(f)) {
				continue
			}
			if !yield(p.Key(f), p.Value(f)) {
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
func copied(p *Reader, at int) []byte {
	if at < 0 {
		return nil
	}
	return record.TextOf(p.Src[p.Fields[at].Val:p.Fields[at].ValEnd])
}
