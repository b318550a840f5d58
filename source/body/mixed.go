package body

import (
	"bytes"

	"blobtail/record/meaning"
	"blobtail/record/text"
	"blobtail/record/times"
	"blobtail/record/trace"
)

// decodeMixed decodes lines that may be objects or text. A service writes such lines if its
// runtime writes messages of its own between JSON. An object may take several lines. A line of
// text is a record with the line as its message, and with the lines behind it that belong to it
// (package trace).
//
// A text begins with its time, or has that of the record before it; the first texts of a
// body have that of the first record after them. So if all other records have times, a copy
// of the body is recognised at any ingester.
func decodeMixed(body []byte, off int, to Sink) {
	m := mixed{
		objects: objects{body: body, to: to}, times: times.Reader{Now: to.Arrived(), Guess: to.Arrival().Guess},
	}
	m.lines = trace.New(body, &m.times)
	for end := -1; off < len(body); {
		if off > end { // a line may have many objects
			end = text.LineEnd(body, off)
		}
		from := text.SkipBlanks(body[:end], off)
		next, more := end, true
		switch {
		case from == end: // an empty line
		case text.LooksLikeObject(body[from:]):
			next, more = m.object(from)
		default:
			next, more = m.text(off, end)
		}
		if !more {
			return
		}
		off = next
		if off < len(body) && body[off] == '\n' {
			off++
		}
	}
}

type mixed struct {
	objects
	times    times.Reader
	begun    bool // a record came
	own      bool // it has a time of its own, or of another record
	guessed  bool // that is a guess
	time     int64
	lines    trace.Joiner
	behind   bool // the text before has a prefix
	stripped trace.Stripped
}

// object passes the object at off, and returns its end.
func (m *mixed) object(off int) (next int, more bool) {
	m.lines.Cut = false
	next, more = m.objects.next(off)
	if ns, own, any := m.to.Last(); any {
		m.begun, m.time, m.own, m.guessed = true, ns, own, false
	}
	return next, more
}

// text passes the line of text from off to end, with the lines that belong to it, and returns
// the end.
func (m *mixed) text(off, end int) (next int, more bool) {
	line := bytes.TrimSuffix(m.body[off:end], []byte("\r"))
	prefix := text.SkipPrefix(line, 0)
	line = line[prefix:]
	var at text.Stamp
	own := at.ReadPast(&m.times, line)
	if !own && prefix > 0 {
		at.NS, own = m.objectTime(line)
		at.Head = own
	}
	if own && prefix == 0 && isCRI(line, at.Rest) {
		return m.cri(off)
	}
	head := m.textHead(line, &at, own)
	switch {
	case own:
	case m.begun && m.own:
		head.Time, head.Guessed = m.time, m.guessed
	case !m.begun:
		if ns, timed := m.ahead(end); timed {
			head.Time = ns
		}
	}
	m.lines.Cut = m.lines.Cut && m.behind == (prefix > 0)
	cut, named := m.lines.Cut, head.Level != nil
	places := 0
	if m.behind = prefix > 0; m.behind {
		next, places = m.stripped.Join(&m.lines, m.body, off, prefix, at.Rest, head.Level)
	} else {
		if !cut {
			m.lines = trace.New(m.body, &m.times)
		}
		next, places = m.lines.Join(off, end, at.Rest, head.Level)
	}
	if head.Level == nil || cut {
		head.Level = m.lines.Level()
	}
	head.Msg = bytes.TrimRight(m.body[off:next], "\r\n")
	head.Sought = !bytes.HasSuffix(head.Msg, []byte("}"))
	if head.Why = m.to.Why(); head.Why != nil {
		m.why(head.Why, &head, &at, own, named && !cut)
	}
	m.begun, m.time, m.own, m.guessed = true, head.Time, head.Time != 0, head.Guessed
	m.to.Begin(head)
	return next, m.to.Record(head.Msg, places, next)
}

// objectTime returns the time of a line behind its prefix that is an object, if it has one.
func (m *mixed) objectTime(line []byte) (ns int64, own bool) {
	if !text.LooksLikeObject(line) {
		return 0, false
	}
	if n, err := m.to.Scan(line); err != nil || n != len(line) {
		return 0, false
	}
	return m.to.Scanned()
}

// ahead returns the time of the first record from off on that is not a text without a time.
// ok is false if that record has none of its own.
func (m *mixed) ahead(off int) (ns int64, ok bool) {
	for off < len(m.body) {
		end := text.LineEnd(m.body, off)
		from := text.SkipBlanks(m.body[:end], off)
		if from < end && text.LooksLikeObject(m.body[from:]) {
			if _, err := m.to.Scan(m.body[from:]); err == nil {
				return m.to.Scanned()
			} else if _, looked := rejectionOf(err); looked > 0 {
				m.wasted += looked
			}
			if m.wasted > len(m.body) {
				return 0, false
			}
		} else if line := m.body[off+text.SkipPrefix(m.body[off:end], 0) : end]; text.LooksLikeObject(line) {
			return m.objectTime(line)
		} else if at := (text.Stamp{}); at.ReadPast(&m.times, line) {
			return at.NS, true
		}
		off = end + 1
	}
	return 0, false
}

// textHead finds the level in a line of text. own says that it has a time.
func (m *mixed) textHead(line []byte, at *text.Stamp, own bool) (h meaning.Head) {
	if own {
		h.Time, h.Guessed = at.NS, !at.Head
	}
	h.Level, h.Far = text.Level(&m.times, at.Rest, own && len(at.Rest) < len(line)), at.Far
	return h
}
