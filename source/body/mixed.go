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
		head.Time, _ = m.ahead(end)
	}
	next, places := traceEnd(m.body, off, end)
	head.Msg = bytes.TrimRight(m.body[off:next], "\r\n")
	m.begun, m.time, m.own = true, head.Time, head.Time != 0
	m.to.Begin(head)
	return next, m.to.Record(head.Msg, places, next)
}

// ahead returns the time of the first record from off on that is not a text without a time;
// 0 if it has none.
func (m *mixed) ahead(off int) (ns int64, ok bool) {
	for off < len(m.body) {
		end := lineEnd(m.body, off)
		from := skipBlanks(m.body[:end], off)
		if from < end && looksLikeObject(m.body[from:]) {
			if n, err := m.to.Scan(m.body[from:]); err == nil && n > 0 {
				return m.to.Scanned()
			}
		} else if head, own := textHead(m.body[off:end]); own {
			return head.Time, true
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

// levelTokens is how many words behind the time may be a level: others put the name of a
// thread or of a module before it.
const levelTokens = 4

// textLevel finds the level of a line of text: in logfmt, a word in upper case, one in
// brackets or before a colon, right behind a time in any case, the letter of glog, or the
// number of syslog. It returns a part of the line, or nil.
func textLevel(rest []byte, timed bool) []byte {
	if word := logfmtLevel(rest); word != nil {
		return word
	}
	if n := bytes.IndexByte(rest, '>'); n > 1 && n < 5 && rest[0] == '<' {
		return severity(rest[1:n])
	}
	for range levelTokens {
		at := 0
		for at < len(rest) && bytes.IndexByte([]byte(" \t[](){}<>|:-\""), rest[at]) >= 0 {
			at++
		}
		end := at
		for isWord(rest, end) {
			end++
		}
		word := rest[at:end]
		if len(word) == 0 {
			return nil
		}
		marked := at > 0 && rest[at-1] == '[' && end < len(rest) && rest[end] == ']' || end < len(rest) && rest[end] == ':'
		switch {
		case len(word) == 5 && bytes.IndexByte([]byte("IWEF"), word[0]) >= 0 && allDigits(word[1:]):
			return word[:1] // I1120 of glog
		case len(word) < 3 || isDigit(word[0]) || record.ParseLevel(word) == record.Other:
		case timed, marked, allUpper(word):
			return word
		}
		timed = false // only the word right behind the time counts in any case
		rest = rest[end:]
	}
	return nil
}

// logfmtLevel finds the value of level, lvl or severity.
func logfmtLevel(line []byte) []byte {
	for _, key := range [...]string{"level=", "lvl=", "severity="} {
		at := bytes.Index(line, []byte(key))
		if at < 0 || at > 0 && line[at-1] != ' ' && line[at-1] != '\t' {
			continue
		}
		word := bytes.TrimPrefix(line[at+len(key):], []byte(`"`))
		if end := bytes.IndexAny(word, " \t\""); end >= 0 {
			word = word[:end]
		}
		if len(word) > 0 && record.ParseLevel(word) != record.Other {
			return word
		}
	}
	return nil
}

// severity returns the last of syslog's eight levels that a priority has, as a digit.
func severity(priority []byte) []byte {
	if !allDigits(priority) {
		return nil
	}
	n := 0
	for _, c := range priority {
		n = 10*n + int(c-'0')
	}
	if n > 191 {
		return nil
	}
	return []byte{'0' + byte(n%8)}
}

func allDigits(s []byte) bool {
	for _, c := range s {
		if !isDigit(c) {
			return false
		}
	}
	return len(s) > 0
}

func allUpper(s []byte) bool {
	for _, c := range s {
		if c-'A' >= 26 {
			return false
		}
	}
	return len(s) > 0
}
