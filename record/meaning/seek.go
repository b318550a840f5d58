package meaning

import (
	"bytes"
	"cmp"

	"blobtail/record"
	"blobtail/record/names"
	"blobtail/record/text"
	"blobtail/record/times"
	"blobtail/record/trace"
)

// A seeker looks for the time and the level in the message of a record that lacks one of them:
// in a text, in a line of logfmt, in JSON, and in the message of that. All doors pass it, so that
// a line has the same time and level behind each.
type seeker struct {
	main   *Reader      // that of the record
	parser *Reader      // of an object in the message; nil before the first one
	deeper *Reader      // of one in that object's message
	times  times.Reader // its Now is the arrival
	found  sought
}

// sought is where a seeker found the time and the level of a message. The bytes are the message's
// or the parser's.
type sought struct {
	stamp, word             []byte // in the text
	timeWithin, levelWithin bool   // it is of the object that was scanned last
	level                   string // the name of a first member of the message with the level
	indented, guessed       bool   // the message is, and the time is
	far                     []byte // a guessed time that is not believed
	farWithin               bool   // there is one in a field of the object that was scanned last
	inner                   *Why   // of that object, if the record is explained
}

// Seek returns the time and the level that a text shows, 0 and Other for none, by the rules for the message
// of a record behind any door. timed says that no time is needed.
func (p *Reader) Seek(msg []byte, d *Defaults, timed bool) (ns int64, l record.Level) {
	s := &p.seeker
	s.main = p
	s.times.Now, s.times.Guess = d.Arrived, d.Guess
	return s.seek(msg, d, timed)
}

// sought gives a stamp the time that a message shows, if it has none, and returns the level. named says
// that the record has a level.
func (p *Reader) sought(d *Defaults, msg []byte, to *record.Stamp, named bool) {
	ns, l := p.Seek(msg, d, to.OwnTime)
	found, h := &p.seeker.found, &p.last
	h.soughtTime, h.soughtLevel = false, false
	switch {
	case to.OwnTime:
		found.far, found.farWithin = nil, false
	case ns != 0:
		to.Time, to.OwnTime, to.Guessed, h.soughtTime = ns, true, found.guessed, true
	}
	to.TimeFar = to.TimeFar || found.far != nil || found.farWithin
	if d.Explains { // before the reader's memory has another text
		found.stamp, found.word, found.far = bytes.Clone(found.stamp), bytes.Clone(found.word), bytes.Clone(found.far)
	}
	if !named && to.Level == record.Other && l != record.Other {
		to.Level, h.soughtLevel = l, true
	}
}

// seek returns the time and the level that a message shows, 0 and Other for none. timed says that
// no time is needed.
func (s *seeker) seek(msg []byte, d *Defaults, timed bool) (ns int64, l record.Level) {
	s.found = sought{indented: text.IsIndented(msg)}
	msg = bytes.TrimSpace(msg)
	if len(msg) == 0 {
		return 0, record.Other
	}
	if level, ok := text.Sentence(msg); ok {
		s.found.word = level
		return 0, record.ParseLevel(level)
	}
	if msg = trace.BehindPrefixes(msg); len(msg) == 0 {
		return 0, record.Other
	}
	if d.Mapping != nil {
		if word := text.NamedLevel(msg, s.main.namesOfLevel()); word != nil {
			ns, _ = s.text(msg)
			s.found.word = word
			return ns, record.ParseLevel(word)
		}
	}
	if msg[0] == '{' {
		if timed && d.Mapping == nil {
			if l, ok := names.FirstLevel(msg); ok {
				s.found.level = "level"
				return 0, l
			}
		}
		if ns, l, ok := s.object(msg, d); ok {
			return ns, l
		}
		if l, _ := names.FirstLevel(msg); l != record.Other { // of one that was cut
			s.found.level = "level"
			return 0, l
		}
	}
	ns, l = s.text(msg)
	if ns != 0 && l != record.Other || msg[len(msg)-1] != '}' {
		return ns, l
	}
	// JSON behind a head, such as that of CRI.
	if at := bytes.IndexByte(msg[:min(len(msg), text.Reach)], '{'); at > 0 {
		return s.behind(msg, d, at, ns, l)
	}
	return ns, l
}

// behind looks into the object behind a text, at at, with this time and this level.
func (s *seeker) behind(msg []byte, d *Defaults, at int, ns int64, l record.Level) (int64, record.Level) {
	head := s.found
	inner, level, ok := s.object(msg[at:], d)
	if !ok {
		return ns, l
	}
	switch {
	case ns != 0:
		s.found.stamp, s.found.timeWithin, s.found.farWithin, s.found.guessed = head.stamp, false, false, head.guessed
	case inner != 0 && !text.IsHead(msg[:at]):
		if s.found.guessed = s.times.Believes(inner); !s.found.guessed {
			s.found.far, s.found.timeWithin, inner = record.AppendTime(nil, inner), false, 0
		}
	}
	if l != record.Other {
		s.found.word, s.found.levelWithin = head.word, false
	} else {
		l = level
	}
	return cmp.Or(ns, inner), l
}

// text looks into a text.
func (s *seeker) text(msg []byte) (ns int64, l record.Level) {
	end := text.LineEnd(msg, 0)
	first := msg[:end]
	var at text.Stamp
	timed := at.ReadPast(&s.times, first)
	if timed && s.found.indented && at.Head {
		at.Head, timed = false, at.Judge(&s.times, first)
	}
	level := text.Level(&s.times, at.Rest, timed && len(at.Rest) < end)
	if level == nil {
		level = trace.Level(&s.times, msg, at.Rest, end)
	}
	ns, s.found.stamp, s.found.word, s.found.guessed = at.NS, at.Text, level, timed && !at.Head
	if at.Far {
		s.found.far = at.Text
	}
	if level == nil {
		return ns, record.Other
	}
	return ns, record.ParseLevel(level)
}

// object looks into a message that is an object, and into its message. ok is false if it is none.
func (s *seeker) object(msg []byte, d *Defaults) (ns int64, l record.Level, ok bool) {
	if s.parser == nil {
		s.parser, s.deeper = NewReader(), NewReader()
	}
	if n, err := s.parser.Scan(msg); err != nil || n != len(msg) {
		return 0, record.Other, false
	}
	shown, l, inner := s.parser.shows(d)
	ns = shown.Time
	if d.Mapping != nil {
		inner = bytes.Clone(inner) // the parser reads on
		if mapped := s.parser.mappedBy(s.main); mapped != record.Other {
			l = mapped
		}
	}
	if d.Explains {
		w := s.parser.Why(d, nil)
		s.found.inner = &w
	}
	s.found.timeWithin, s.found.levelWithin = ns != 0, l != record.Other
	s.found.guessed, s.found.farWithin = shown.Guessed, shown.TimeFar && ns == 0
	if inner = bytes.TrimSpace(inner); ns != 0 && l != record.Other || len(inner) == 0 {
		return ns, l, true
	}
	at, level := int64(0), record.Other
	if n, err := s.deeper.Scan(inner); err == nil && n == len(inner) {
		shown, level, _ = s.deeper.shows(d)
		at = shown.Time
	} else {
		at, level = s.text(inner)
	}
	if l == record.Other {
		l = level
	}
	return cmp.Or(ns, at), l, true
}
