package body

import (
	"bytes"

	"blobtail/record"
)

const (
	// longestTrace and mostTraceLines bound a record of several lines.
	longestTrace   = 256 << 10
	mostTraceLines = 1000
)

// decodeMixed decodes lines that may be objects or text, as those of a service whose
// runtime writes its own messages between JSON. An object may take several lines. A line
// of text is a record with the line as its message. The lines of a stack trace belong to
// the text before them (trace.go).
//
// A text begins with its time, or has that of the record before it; the first texts of a
// body have that of the first record after them. So if all other records have times, a copy
// of the body is recognised at any ingester.
func decodeMixed(body []byte, off int, to Sink) {
	m := mixed{objects: objects{body: body, to: to}}
	for off < len(body) {
		end := lineEnd(body, off)
		from := skipBlanks(body[:end], off)
		next, more := end, true
		switch {
		case from == end: // an empty line
		case looksLikeObject(body[from:]):
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
	begun bool // a record came
	own   bool // it has a time of its own, or of another record
	time  int64
}

// object passes the object at off, and returns its end.
func (m *mixed) object(off int) (next int, more bool) {
	next, more = m.objects.next(off)
	if ns, own, any := m.to.Last(); any {
		m.begun, m.time, m.own = true, ns, own
	}
	return next, more
}

// text passes the line of text from off to end, with the lines of its stack trace, and
// returns the end.
func (m *mixed) text(off, end int) (next int, more bool) {
	line := bytes.TrimSuffix(m.body[off:end], []byte("\r"))
	head, own := textHead(line)
	switch {
	case own:
	case m.begun && m.own:
		head.Time = m.time
	case !m.begun:
		if ns, timed := m.ahead(end); timed {
			head.Time = ns
		}
	}
	next, places, framed := traceEnd(m.body, off, end)
	if framed && head.Level == nil {
		head.Level = []byte("error") // an exception that was printed without a level
	}
	head.Msg = bytes.TrimRight(m.body[off:next], "\r\n")
	head.Sought = head.Level == nil && next == end && line[len(line)-1] != '}'
	m.begun, m.time, m.own = true, head.Time, head.Time != 0
	m.to.Begin(head)
	return next, m.to.Record(head.Msg, places, next)
}

// ahead returns the time of the first record from off on that is not a text without a time.
// ok is false if that record has none of its own.
func (m *mixed) ahead(off int) (ns int64, ok bool) {
	for off < len(m.body) {
		end := lineEnd(m.body, off)
		from := skipBlanks(m.body[:end], off)
		if from < end && looksLikeObject(m.body[from:]) {
			if _, err := m.to.Scan(m.body[from:]); err == nil {
				return m.to.Scanned()
			} else if _, looked := rejectionOf(err); looked > 0 {
				m.wasted += looked
			}
			if m.wasted > len(m.body) {
				return 0, false
			}
		} else if _, ns, own := textTime(plain(m.body[off:end])); own {
			return ns, true
		}
		off = end + 1
	}
	return 0, false
}

// skipBlanks skips spaces and tabs.
func skipBlanks(b []byte, off int) int {
	for off < len(b) && (b[off] == ' ' || b[off] == '\t' || b[off] == '\r') {
		off++
	}
	return off
}

// textHead finds the time and the level in a line of text. own reports whether it has a
// time.
func textHead(line []byte) (h record.Head, own bool) {
	line = plain(line)
	rest, ns, own := textTime(line)
	if own {
		h.Time = ns
	}
	h.Level = textLevel(rest, own)
	return h, own
}

// textTime finds the time that a line begins with, perhaps in brackets, or as the first
// pair of logfmt. Times without a zone are UTC, so that all ingesters agree. A time without
// a year is none. rest is the line behind the time.
func textTime(line []byte) (rest []byte, ns int64, ok bool) {
	at := skipBlanks(line, 0)
	for _, key := range [...]string{"time=", "ts=", "timestamp=", "t="} {
		if bytes.HasPrefix(line[at:], []byte(key)) {
			at += len(key)
			break
		}
	}
	if at < len(line) && (line[at] == '[' || line[at] == '(' || line[at] == '"') {
		at++
	}
	s := line[at:]
	const least = len("2026-11-20 15:04:05")
	if len(s) < least || (s[4] != '-' && s[4] != '/') || s[7] != s[4] || s[13] != ':' || s[16] != ':' {
		return line, 0, false
	}
	n := least
	if n < len(s) && (s[n] == '.' || s[n] == ',') && n+1 < len(s) && isDigit(s[n+1]) {
		for n++; n < len(s) && isDigit(s[n]); n++ {
		}
	}
	var buf [64]byte
	text := append(buf[:0], s[:min(n, len(buf)-8)]...)
	text[4], text[7] = '-', '-'
	if zone, used := textZone(s[n:]); used > 0 {
		text, n = append(text, zone...), n+used
	}
	ns, ok = record.ParseTime(text)
	if !ok {
		return line, 0, false
	}
	return s[n:], ns, true
}

// textZone finds a zone behind a time: Z, an offset, UTC or GMT, perhaps behind a space.
func textZone(s []byte) (zone []byte, used int) {
	at := 0
	if len(s) > 0 && s[0] == ' ' {
		at = 1
	}
	end := at
	for end < len(s) && end-at < 6 && s[end] != ' ' && s[end] != ']' && s[end] != ')' && s[end] != '"' {
		end++
	}
	word := s[at:end]
	switch {
	case len(word) == 0:
		return nil, 0
	case at == 0 && (word[0] == 'Z' || word[0] == 'z') && !isWord(s, 1):
		return word[:1], 1
	case string(word) == "UTC", string(word) == "GMT":
		return nil, end
	case (word[0] == '+' || word[0] == '-') && isOffset(word[1:]):
		return word, end
	}
	return nil, 0
}

func isOffset(s []byte) bool {
	digits := 0
	for i, c := range s {
		switch {
		case isDigit(c):
			digits++
		case c != ':' || i != 2:
			return false
		}
	}
	return digits == 2 || digits == 4
}

func isDigit(c byte) bool { return c-'0' < 10 }

// isWord reports whether a letter or a digit is at a place.
func isWord(s []byte, at int) bool {
	return at < len(s) && (isDigit(s[at]) || (s[at]|0x20)-'a' < 26)
}
