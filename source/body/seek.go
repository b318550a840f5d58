package body

import (
	"bytes"
	"cmp"

	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/record/names"
	"blobtail/record/text"
	"blobtail/record/times"
	"blobtail/record/trace"
)

// A seeker looks for the time and the level in the message of a record that lacks one of them:
// in a text, in a line of logfmt, in JSON, and in the message of that. All doors pass it, so that
// a line has the same time and level behind each.
type seeker struct {
	parser   *meaning.Reader // of an object in the message
	deeper   *meaning.Reader // of one in that object's message
	main     *meaning.Reader // that of the record, if there is a mapping
	explains bool            // there is a Watch
	times    times.Reader    // its Now is the arrival
	judge    *meaning.Defaults
	find     func(msg []byte, s *record.Stamp) record.Level // stamp, made once
	found    sought
}

// sought is where a seeker found the time and the level of a message. The bytes are the message's
// or the parser's.
type sought struct {
	stamp, word             []byte       // in the text
	timeWithin, levelWithin bool         // it is of the object that was scanned last
	level                   string       // the name of a first member of the message with the level
	indented, guessed       bool         // the message is, and the time is
	far                     []byte       // a guessed time that is not believed
	farWithin               bool         // there is one in a field of the object that was scanned last
	inner                   *meaning.Why // of that object, for a Watch
}

func newSeeker() *seeker {
	s := &seeker{parser: meaning.NewReader(), deeper: meaning.NewReader(), judge: &meaning.Defaults{}}
	s.find = s.stamp
	return s
}

// stamp gives a stamp the time that a message shows, if it has none, and returns the level.
func (s *seeker) stamp(msg []byte, to *record.Stamp) record.Level {
	ns, l := s.seek(msg, to.OwnTime)
	switch {
	case to.OwnTime:
		s.found.far, s.found.farWithin = nil, false
	case ns != 0:
		to.Time, to.OwnTime, to.Guessed = ns, true, s.found.guessed
	}
	to.TimeFar = to.TimeFar || s.found.far != nil || s.found.farWithin
	return l
}

// seek returns the time and the level that a message shows, 0 and Other for none. timed says that
// no time is needed.
func (s *seeker) seek(msg []byte, timed bool) (ns int64, l record.Level) {
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
	if s.main != nil {
		if word := text.NamedLevel(msg, s.main.NamesOfLevel()); word != nil {
			ns, _ = s.text(msg)
			s.found.word = word
			return ns, record.ParseLevel(word)
		}
	}
	if msg[0] == '{' {
		if timed && s.main == nil {
			if l, ok := names.FirstLevel(msg); ok {
				s.found.level = "level"
				return 0, l
			}
		}
		if ns, l, ok := s.object(msg); ok {
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
		return s.behind(msg, at, ns, l)
	}
	return ns, l
}

// behind looks into the object behind a text, at at, with this time and this level.
func (s *seeker) behind(msg []byte, at int, ns int64, l record.Level) (int64, record.Level) {
	head := s.found
	inner, level, ok := s.object(msg[at:])
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
func (s *seeker) object(msg []byte) (ns int64, l record.Level, ok bool) {
	if n, err := s.parser.Scan(msg); err != nil || n != len(msg) {
		return 0, record.Other, false
	}
	shown, l, inner := s.parser.Shows(s.judge)
	ns = shown.Time
	if s.main != nil {
		if mapped := s.parser.MappedLevel(s.main); mapped != record.Other {
			l = mapped
		}
	}
	if s.explains {
		w := s.parser.Why(s.judge)
		s.found.inner = &w
	}
	s.found.timeWithin, s.found.levelWithin = ns != 0, l != record.Other
	s.found.guessed, s.found.farWithin = shown.Guessed, shown.TimeFar && ns == 0
	if inner = bytes.TrimSpace(inner); ns != 0 && l != record.Other || len(inner) == 0 {
		return ns, l, true
	}
	at, level := int64(0), record.Other
	if n, err := s.deeper.Scan(inner); err == nil && n == len(inner) {
		shown, level, _ = s.deeper.Shows(s.judge)
		at = shown.Time
	} else {
		at, level = s.text(inner)
	}
	if l == record.Other {
		l = level
	}
	return cmp.Or(ns, at), l, true
}
