package meaning

import (
	"slices"

	"blobtail/record"
	"blobtail/record/names"
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
	Level    []byte // any word: aliases as in [record.ParseLevel] become the level's own
	Service  []byte // the sender's name for it, not folded
	Msg      []byte
	// Assumed says that the sender gives a level to all lines of a program. One that the message
	// shows counts before it, if it is info.
	Assumed bool
	// Sought says that the caller has looked into the message for a time and a level.
	Sought bool
	// Renames says that a repeated key is no mistake, because the fields come from several
	// places: it gets the first free number from 2 appended. Such a record has at most
	// [record.MaxFields] fields.
	Renames bool
	// Why says where the parts come from, to a sink that asks. Nil: they are the protocol's.
	Why *Why
}

// Parts are a record by parts that has no end yet.
type Parts struct {
	record.Parts
	reader   *Reader
	stamp    record.Stamp
	own      []byte // the record's own service, when it is kept as a field
	assumed  bool   // the level is an assumed one
	observed bool   // the time is [Head.Observed]
	sought   bool   // the caller has looked into the message
	d        *Defaults
	from     int    // where the line begins
	mapped   []byte // room for the line under a mapping
	head     Head   // if the record is explained
	why      Why
}

// Begin begins a record by parts, and will append its line to dst. [Parts.End] ends it. The line is the
// same as that of [Reader.AppendLine] for an object with the members ts, level, msg, the fields and
// service, in this order, without the empty ones, but that the names of fields have no meaning: no field
// is used as the time or the level, unless a [Mapping] names it: that applies to the finished line. The
// parts share the reader's memory, so Scan must not be called before End. d must not change before.
func (p *Reader) Begin(dst []byte, h Head, d *Defaults) *Parts {
	b := &p.parts
	if b.d, b.from, b.sought = d, len(dst), h.Sought; d.Explains {
		b.head, p.seeker.found = h, sought{}
	}
	if d.Mapping != nil && p.mapsLevel(&h, d) { // no other level is sought before the fields are known
		h.Level = p.seeker.found.word
	}
	if !p.Scanner.Begin(&b.Parts, len(h.Level)+len(h.Service)+len(h.Msg), h.Renames) {
		h.Level, h.Service, h.Msg = nil, nil, nil
	}
	s := record.Stamp{Time: d.Time, Level: record.Other, Service: d.Service}
	if s.TimeUnread, s.TimeFar = h.Unread, h.Far; h.Time != 0 {
		s.Time, s.OwnTime, s.Guessed = h.Time, true, h.Guessed
	}
	if b.own = nil; p.setService(h.Service, d.Fallback, &s) {
		b.own = h.Service
	}
	var odd []byte // a number that is no level
	if len(h.Level) > 0 {
		if s.Level = record.ParseLevel(h.Level); s.Level == record.Other {
			if _, number := names.Number(h.Level); number {
				odd, h.Level = h.Level, nil
			}
		}
	}
	p.last.soughtTime, p.last.soughtLevel = false, false
	b.assumed = h.Assumed && s.Level == record.Info
	if named := len(h.Level) > 0 && !b.assumed; d.Seeks && d.Mapping == nil && !h.Sought && (h.Time == 0 || !named) && len(h.Msg) > 0 {
		p.soughtOr(d, h.Msg, &s, named)
	}
	if b.observed = h.Observed != 0 && !s.OwnTime; b.observed {
		s.Time, s.OwnTime = h.Observed, true
	}
	dst = p.clock.AppendHead(slices.Grow(dst, len(h.Level)+len(h.Msg)+lineRoom), s.Time, nil)
	if s.Level != record.Other {
		dst = append(dst, s.Level.String()...)
	} else {
		dst = record.AppendEscaped(dst, h.Level)
		s.LevelUnread = len(h.Level)+len(odd) > 0
	}
	dst = record.AppendEscaped(record.AppendService(dst, s.Service), h.Msg)
	b.stamp = s
	if b.Head(append(dst, '"')); odd != nil {
		b.Keep("level", odd)
	}
	if d.Explains && d.Mapping == nil {
		b.explain()
	}
	return b
}

// End ends the record and returns its line, appended to the dst of Begin. The error is that of
// [record.Parts.End].
func (b *Parts) End() ([]byte, record.Stamp, error) {
	if b.own != nil {
		name := "service.name"
		if b.reader.Found.Has(names.ServiceName) {
			name = b.FreeKey("service.original")
		}
		b.Keep(name, b.own)
	}
	line, err := b.Parts.End()
	if err == nil && b.d.Mapping != nil {
		return b.reader.remap(b, line)
	}
	return line, b.stamp, err
}

// Why explains the head of the record that was begun, or with a mapping ended, last.
func (b *Parts) Why() Why { return b.why }

// explain notes where the parts of the head are from.
func (b *Parts) explain() {
	h, d, w := &b.head, b.d, &b.why
	*w = Why{}
	if h.Why != nil {
		*w = *h.Why
	}
	own := func(c *Cause, there bool) {
		switch {
		case !there:
			*c = Cause{Passed: c.Passed}
		case c.Place == 0:
			c.Place = FromProtocol
		}
	}
	own(w.Time(), h.Time != 0 || h.Observed != 0)
	own(w.Level(), len(h.Level) > 0)
	own(w.Message(), len(h.Msg) > 0)
	own(w.Service(), len(h.Service) > 0)
	switch {
	case d.Service != "":
		*w.Service() = Cause{Place: FromPath}
	case len(h.Service) == 0 && d.Fallback != "":
		w.Service().Place = FromFallback
	}
	b.reader.whySought(w, h.Msg)
	if d.Mapping != nil {
		b.reader.remapped(w)
	}
}
