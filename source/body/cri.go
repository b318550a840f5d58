package body

import (
	"bytes"
	"cmp"
	"slices"

	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/record/text"
	"blobtail/record/trace"
)

// A container runtime writes each line of a program behind a head of its own: the time, the stream,
// and F, or P for a part of a line that goes on in the next one of its stream.
//
//	2026-11-20T10:00:06.257312841Z stderr F text
//
// The head is no part of the message. A window of such lines is decoded at once: the text of each
// stream is put together without the heads, and its records are found there like those of any text.
// So the two streams may be mixed. An object gets the time and the stream as its first members.

const (
	// criWindow and criLines are the size from which on a window ends, if no line is in parts
	// there. A record of several lines fits.
	criWindow = 512 << 10
	criLines  = 2 * trace.MaxLines
	// criMost is the size at which a window ends in any case. A record has at most half of it.
	criMost = 2 << 20
)

// A criText is the text of a stream in a window.
type criText struct {
	stream string
	text   []byte // a line feed is behind each line
	lines  []criSource
	open   bool // the last line goes on
}

// A criSource is the place of a line of the program in the body.
type criSource struct {
	at       int // of its text
	time     int64
	stamp    []byte
	off, end int // of the lines of the runtime
	parts    int
}

// A criRecord is a record of a stream: its lines from..to.
type criRecord struct {
	of       *criText
	from, to int
	level    []byte
	trace    bool // the level is that of a trace
}

// isCRI reports whether a line is one of a container runtime. rest is the line behind its time.
func isCRI(line, rest []byte) bool {
	if len(rest) < len(" stdout F") || rest[0] != ' ' || rest[1] != 's' || rest[2] != 't' {
		return false
	}
	_, _, _, ok := text.Stream(rest)
	return ok && text.LooksTimed(line) && line[len("2026-11-20")] == 'T'
}

// cri passes the records of the lines of a container runtime from off on, and returns the end of
// the last line.
func (m *mixed) cri(off int) (next int, more bool) {
	streams := [2]criText{{stream: "stdout"}, {stream: "stderr"}}
	next, full := m.criRead(off, &streams)
	found := m.criFind(&streams[1], m.criFind(&streams[0], nil))
	// The ends of records rise.
	slices.SortFunc(found, func(a, b criRecord) int { return cmp.Compare(a.end(), b.end()) })
	if full {
		found, next = criHold(found, off, next)
	}
	m.lines.Cut = false
	for i := range found {
		if !m.criPass(&found[i]) {
			return next, false
		}
	}
	if ns, own, any := m.to.Last(); any {
		m.begun, m.time, m.own = true, ns, own
	}
	return next, true
}

// criHold leaves records to the next window that may go on there, the last one of each stream, and
// those that end behind the first one left. It returns the others, and their end. A window passes
// half of its bytes at least.
func criHold(found []criRecord, off, end int) ([]criRecord, int) {
	last := map[*criText]*criRecord{}
	for i := range found {
		last[found[i].of] = &found[i]
	}
	middle, from, held := off+(end-off)/2, end, len(found)
	for _, r := range last {
		if r.start() > middle {
			from = min(from, r.start())
		}
	}
	for held > 0 && found[held-1].end() > from {
		held--
		from = min(from, found[held].start())
	}
	if from <= middle || from == end {
		return found, end
	}
	return found[:held], from - 1
}

// criRead reads a window of lines, and returns the end of the last one. full says that more may
// follow.
func (m *mixed) criRead(off int, streams *[2]criText) (next int, full bool) {
	next = off
	for at, size, lines := off, 0, 0; at < len(m.body) && !full; lines++ {
		end := text.LineEnd(m.body, at)
		line := bytes.TrimSuffix(m.body[at:end], []byte("\r"))
		var head text.Stamp
		if !head.ReadPast(&m.times, line) || !isCRI(line, head.Rest) {
			break
		}
		stream, part, final, _ := text.Stream(head.Rest)
		s := &streams[0]
		if stream[3] == 'e' {
			s = &streams[1]
		}
		s.add(criSource{time: head.NS, stamp: head.Text, off: at, end: end}, part, final)
		size += len(part)
		next, at = end, end+1
		full = (size >= criWindow || lines >= criLines) && !streams[0].open && !streams[1].open || size >= criMost
	}
	for i := range streams {
		if streams[i].open { // its last part did not come
			streams[i].text = append(streams[i].text, '\n')
		}
	}
	return next, full
}

// add adds a line, or a part of one.
func (s *criText) add(l criSource, part []byte, final bool) {
	if !s.open {
		l.at = len(s.text)
		s.lines = append(s.lines, l)
	}
	last := &s.lines[len(s.lines)-1]
	last.end, last.parts = l.end, last.parts+1
	if s.text = append(s.text, part...); final {
		s.text = append(s.text, '\n')
	}
	s.open = !final
}

// criFind appends the records of a stream: an object, or a text with the lines that belong to it.
func (m *mixed) criFind(s *criText, found []criRecord) []criRecord {
	lines := trace.New(s.text, &m.times)
	for i := 0; i < len(s.lines); {
		off := s.lines[i].at
		end := s.textEnd(i)
		from := text.SkipBlanks(s.text[:end], off)
		if from == end { // an empty line
			i++
			continue
		}
		r := criRecord{of: s, from: i}
		if i++; text.LooksLikeObject(s.text[from:end]) {
			r.to = i
			found = append(found, r)
			lines.Cut = false
			continue
		}
		line := bytes.TrimSuffix(s.text[off:end], []byte("\r"))
		var at text.Stamp
		at.Read(&m.times, line)
		r.level = text.Level(&m.times, at.Rest, len(at.Rest) < len(line))
		cut, named := lines.Cut, r.level != nil
		if !cut {
			lines = trace.New(s.text, &m.times)
		}
		next, _ := lines.Join(off, end, at.Rest, r.level)
		if !named || cut {
			r.level = lines.Level()
			r.trace = r.level != nil && lines.IsTrace()
		}
		for i < len(s.lines) && s.lines[i].at < next {
			i++
		}
		r.to = i
		found = append(found, r)
	}
	return found
}

// textEnd is the end of the text of a line.
func (s *criText) textEnd(i int) int {
	if i+1 < len(s.lines) {
		return s.lines[i+1].at - 1
	}
	return len(s.text) - 1
}

// start and end are the bounds of a record in the body. Lines of the other stream may stand between.
func (r *criRecord) start() int { return r.of.lines[r.from].off }
func (r *criRecord) end() int   { return r.of.lines[r.to-1].end }

// criPass passes a record.
func (m *mixed) criPass(r *criRecord) bool {
	lines := r.of.lines[r.from:r.to]
	first, msg := &lines[0], bytes.TrimRight(r.of.text[lines[0].at:r.of.textEnd(r.to-1)], "\r\n")
	places := 0
	for i := range lines {
		places += lines[i].parts
	}
	raw := msg
	if places == 1 {
		raw = bytes.TrimRight(m.body[first.off:first.end], "\r\n")
	}
	if o := bytes.TrimSpace(msg); text.LooksLikeObject(o) {
		object := make([]byte, 0, len(o)+len(`{"ts":"2026-11-20T10:00:06.257312841Z","stream":"stdout",`))
		object = append(record.AppendTime(append(object, `{"ts":"`...), first.time), `","stream":"`...)
		object = append(append(object, r.of.stream...), '"')
		if behind := text.SkipSpace(o, 1); o[behind] != '}' {
			object = append(object, ',')
		}
		object = append(object, o[1:]...)
		if n, err := m.to.Scan(object); err == nil && n == len(object) {
			return m.to.Object(object, r.end())
		}
	}
	// The msg may be an object that was cut.
	h := meaning.Head{Time: first.time, Level: r.level, Msg: msg, Sought: !text.LooksLikeObject(msg) && !bytes.HasSuffix(msg, []byte("}"))}
	if h.Why = m.to.Why(); h.Why != nil {
		*h.Why.Time() = meaning.Cause{Place: meaning.FromText, Text: string(first.stamp)}
		h.Why.Message().Place = meaning.FromText
		switch {
		case r.trace:
			h.Why.Level().Place = meaning.FromTrace
		case len(r.level) > 0:
			*h.Why.Level() = meaning.TextCause(msg, r.level)
		}
	}
	m.to.Begin(h).Text("stream", []byte(r.of.stream))
	return m.to.Record(raw, places, r.end())
}
