package body

import (
	"bytes"
	"math"

	"blobtail/record"
	"blobtail/record/times"
)

// latest is the latest time that a text of a body may have.
func latest(to Sink) int64 {
	if at := to.Arrived(); at != 0 {
		return at + record.MaxAhead.Nanoseconds()
	}
	return math.MaxInt64
}

// TextTime returns the time of a message in the forms of lines of text, if it has one.
func TextTime(r *times.Reader, msg []byte) (ns int64, ok bool) {
	_, ns, ok = textTime(r, msg)
	return ns, ok && (r.Now == 0 || ns <= r.Now+record.MaxAhead.Nanoseconds())
}

// textHead finds the time and the level in a line of text. rest is the line behind its time. own
// reports whether it has a time.
func (m *mixed) textHead(line []byte) (h record.Head, rest []byte, own bool) {
	rest, ns, own := m.textTime(line)
	if own {
		h.Time = ns
	}
	h.Level = textLevel(&m.times, rest, own && len(rest) < len(line))
	return h, rest, own
}

// textTime is [textTime], without times that a record of this arrival cannot have.
func (m *mixed) textTime(line []byte) (rest []byte, ns int64, ok bool) {
	if rest, ns, ok = textTime(&m.times, line); !ok || ns > m.latest {
		return line, 0, false
	}
	return rest, ns, true
}

// textTime finds the time of a line of text, in the order of docs/SENDING.md: the line begins
// with it, perhaps behind a mark; or it has the form of a server's log of requests. Times
// without a zone are UTC, so that all ingesters agree. rest is the line behind the time if its
// level is to be looked for there, else the line.
func textTime(r *times.Reader, line []byte) (rest []byte, ns int64, ok bool) {
	rest, _, ns, ok = findTextTime(r, line)
	return rest, ns, ok
}

// findTextTime is textTime, with the part of the line that is the time.
func findTextTime(r *times.Reader, line []byte) (rest, text []byte, ns int64, ok bool) {
	at := skipColours(line, 0)
	key := false
	if at < len(line) && line[at] == 't' {
		for _, name := range [...]string{"time=", "ts=", "timestamp=", "t="} {
			if bytes.HasPrefix(line[at:], []byte(name)) {
				at, key = at+len(name), true
				break
			}
		}
	}
	start := at
	if at < len(line) && (line[at] == '[' || line[at] == '(' || line[at] == '"' || line[at] == '<') {
		at++
	}
	if ns, n := r.Prefix(line[at:]); n > 0 {
		return restOf(line, at, n), line[at : at+n], ns, true
	}
	if key || at < len(line) && isDigit(line[at]) {
		if ns, n := number(line[at:], key); n > 0 {
			return restOf(line, at, n), line[at : at+n], ns, true
		}
	}
	if start < len(line) && line[start] == 'd' {
		if text, ns, ok := apart(r, line[start:]); ok {
			return line, text, ns, true
		}
	}
	if text, ns, ok := inside(r, line[start:]); ok {
		return line, text, ns, true
	}
	return line, nil, 0, false
}

// restOf is the line behind its time, or the whole line if the time is a part of the level's
// form, as in I1120 15:04:05, or has the words of syslog.
func restOf(line []byte, at, n int) []byte {
	if c := line[at]; isDigit(c) {
		return line[at+n:]
	}
	return line
}

// skipColours skips blanks and the colours of terminals.
func skipColours(line []byte, at int) int {
	for {
		at = skipBlanks(line, at)
		if !bytes.HasPrefix(line[at:], []byte("\x1b[")) {
			return at
		}
		n := at + len("\x1b[")
		for n < len(line) && (isDigit(line[n]) || line[n] == ';') {
			n++
		}
		if n == len(line) || line[n] != 'm' {
			return at
		}
		at = n + 1
	}
}

// number reads Unix time at the start of a line. Without a name in front of it, it has seconds
// with a fraction, because an identifier is a number too.
func number(line []byte, key bool) (ns int64, n int) {
	point := false
	for n < len(line) && n < 32 && (isDigit(line[n]) || line[n] == '.' || n > 0 && (line[n]|0x20 == 'e' || line[n] == '+' && line[n-1]|0x20 == 'e')) {
		point = point || line[n] == '.'
		n++
	}
	const seconds = len("1795168800.257")
	if n == 0 || !key && (n < seconds || !point) || n < len(line) && isWord(line, n) {
		return 0, 0
	}
	var r times.Reader
	ns, part := r.Read(line[:n])
	if part != times.Full {
		return 0, 0
	}
	return ns, n
}

// apart reads the date and the time of two pairs, date=2026-11-20 time=15:04:05, with the
// offset of a third, tz="+0100". text is the two pairs.
func apart(r *times.Reader, line []byte) (text []byte, ns int64, ok bool) {
	behind, ok := bytes.CutPrefix(line, []byte("date="))
	if !ok {
		return nil, 0, false
	}
	date, rest, _ := bytes.Cut(behind, []byte(" "))
	clock, ok := bytes.CutPrefix(rest, []byte("time="))
	clock, _, _ = bytes.Cut(clock, []byte(" "))
	if !ok {
		return nil, 0, false
	}
	whole := append(append(append([]byte(nil), bytes.Trim(date, `"`)...), ' '), bytes.Trim(clock, `"`)...)
	if _, zone, ok := bytes.Cut(behind, []byte(" tz=\"")); ok { // FortiGate writes its offset apart
		zone, _, _ = bytes.Cut(zone, []byte(`"`))
		whole = append(whole, zone...)
	}
	ns, part := r.Read(whole)
	return line[:len("date= time=")+len(date)+len(clock)], ns, part == times.Full
}

// longestHead is how many bytes a line may have in front of its time.
const longestHead = 256

// inside finds a time that does not begin its line, in the forms of these loggers:
//
//	192.0.2.1 - - [20/Nov/2026:15:04:05 +0100] "GET / HTTP/1.1" 200 12    nginx, Apache, Traefik
//	I, [2026-11-20T15:04:05.123456 #812]  INFO -- : text                  Ruby
//	INFO  [main] 2026-11-20 15:04:05,123 text                             Cassandra, log4j
//	1:M 20 Nov 2026 15:04:05.123 * text                                   Redis
//	<34>Nov 20 15:04:05 web1 app: text                                    syslog
//	type=SYSCALL msg=audit(1795168800.257:812): text                      auditd
func inside(r *times.Reader, line []byte) (text []byte, ns int64, ok bool) {
	if len(line) > 5 && line[4] == '=' && (string(line[:4]) == "type" || string(line[:4]) == "node") {
		if at := bytes.Index(line[:min(len(line), longestHead)], []byte("audit(")); at >= 0 {
			at += len("audit(")
			ns, n := number(line[at:], false)
			return line[at : at+n], ns, n > 0
		}
	}
	for at, head := 0, line[:min(len(line), longestHead)]; at < len(head); at++ {
		n := bytes.IndexByte(head[at:], '[')
		if n < 0 {
			break
		}
		if at += n; at+3 >= len(line) || line[at+3] != '/' {
			continue
		}
		if bytes.IndexByte(head[:at], '"') >= 0 { // the text of somebody
			break
		}
		if ns, n := r.Prefix(line[at+1:]); n > 0 {
			return line[at+1 : at+1+n], ns, true
		}
	}
	at := markLen(line)
	if at == 0 {
		return nil, 0, false
	}
	ns, n := r.Prefix(line[at:])
	return line[at : at+n], ns, n > 0
}

// markLen is the length of what loggers write in front of a time; 0: it is nothing of that.
func markLen(line []byte) int {
	n := 0
	for n < len(line) && (isDigit(line[n]) || line[n] == '<') {
		n++
	}
	switch {
	case n > 1 && n < len(line) && line[0] == '<' && line[n] == '>': // a priority of syslog
		if bytes.HasPrefix(line[n+1:], []byte("1 ")) {
			return n + len(">1 ")
		}
		return skipBlanks(line, n+1)
	case n > 0 && n+2 < len(line) && line[n] == ':' && line[n+2] == ' ': // the process and role of Redis
		return n + 3
	case len(line) > 4 && line[1] == ',' && line[2] == ' ' && line[3] == '[': // the letter of Ruby
		return 4
	}
	return levelFirst(line)
}

// levelFirst is the length of a level in upper case, and of the name in brackets of a thread,
// at the start of a line.
func levelFirst(line []byte) int {
	n := 0
	for n < len(line) && line[n]-'A' < 26 {
		n++
	}
	if n < 4 || record.ParseLevel(line[:n]) == record.Other {
		return 0
	}
	at := skipBlanks(line, n)
	if at < len(line) && line[at] == '[' {
		end := bytes.IndexByte(line[at:min(len(line), at+longestHead)], ']')
		if end < 0 {
			return 0
		}
		if isDigit(line[at+1]) && end > len("[2026-11-20 15:04:05") {
			return at + 1
		}
		at = skipBlanks(line, at+end+1)
	}
	return at
}
