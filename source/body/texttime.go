package body

import (
	"bytes"
	"math"
	"time"

	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/record/times"
)

// latest is the latest time that a text of a body may have.
func latest(to Sink) int64 {
	if at := to.Arrived(); at != 0 {
		return at + meaning.MaxAhead.Nanoseconds()
	}
	return math.MaxInt64
}

// TextTime returns the time of a message in the forms of lines of text, if it has one.
func TextTime(r *times.Reader, msg []byte) (ns int64, ok bool) {
	_, ns, ok = textTime(r, msg)
	return ns, ok && (r.Now == 0 || ns <= r.Now+meaning.MaxAhead.Nanoseconds())
}

// textHead finds the level in a line of text. own says that it has a time.
func (m *mixed) textHead(line []byte, at *stamp, own bool) (h meaning.Head) {
	if own {
		h.Time, h.Guessed = at.ns, !at.head
	}
	h.Level, h.Far = textLevel(&m.times, at.rest, own && len(at.rest) < len(line)), at.far
	return h
}

// textTime finds the time of a line, without times that a record of this arrival cannot have.
func (m *mixed) textTime(line []byte, at *stamp) (ok bool) {
	if ok = at.read(&m.times, line); ok && at.ns > m.latest {
		*at = stamp{rest: line, text: at.text}
		return false
	}
	return ok
}

// textTime finds the time of a line of text, in the order of docs/SENDING.md: the line begins
// with it, perhaps behind a mark; or it has the form of a server's log of requests. Times
// without a zone are UTC, so that all ingesters agree. rest is the line behind the time if its
// level is to be looked for there, else the line.
func textTime(r *times.Reader, line []byte) (rest []byte, ns int64, ok bool) {
	var at stamp
	ok = at.read(r, line)
	return at.rest, at.ns, ok
}

// A stamp is the time of a line of text.
type stamp struct {
	rest, text []byte // the line behind it, and the time as it stands there
	ns         int64
	head       bool // it stands where loggers write the time of a line; else it is a guess
	far        bool // the guess is not believed
}

// judge reports whether a guess is believed. Else the line has no time.
func (t *stamp) judge(r *times.Reader, line []byte) bool {
	if r.Believes(t.ns) {
		return true
	}
	*t = stamp{rest: line, text: t.text, far: true}
	return false
}

// isIndented reports whether a line is indented, and not by the blank of a level that is padded or
// that in front of a priority.
func isIndented(line []byte) bool {
	return len(line) > 1 && (line[0] == ' ' || line[0] == '\t') && line[1] != '<' && !isPadded(line)
}

// read is textTime, with the part of the line that is the time.
func (t *stamp) read(r *times.Reader, line []byte) (ok bool) {
	*t = stamp{rest: line}
	if !t.find(r, line) {
		return false
	}
	t.head = t.head && !isIndented(line)
	return t.head || t.judge(r, line)
}

// find finds the time of a line, whether it is believed or not.
func (t *stamp) find(r *times.Reader, line []byte) (ok bool) {
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
	if ns, n := r.Prefix(line[at:]); n > 0 && !isShort(line[at:], n) {
		return t.at(line, at, n, ns)
	}
	if key || at < len(line) && isDigit(line[at]) {
		if ns, n := number(line[at:], key); n > 0 {
			return t.at(line, at, n, ns)
		}
		if ns, n := seconds(line, at, r.Now); n > 0 {
			return t.at(line, at, n, ns)
		}
	}
	if start < len(line) && line[start] == 'd' {
		if text, ns, ok := apart(r, line[start:]); ok {
			t.text, t.ns, t.head = text, ns, true
			return true
		}
	}
	if text, ns, head, ok := inside(r, line[start:]); ok {
		t.text, t.ns, t.head = text, ns, head
		return true
	}
	text, ns, ok := marked(r, line[start:])
	if ok {
		t.rest, t.text, t.ns, t.head = restBehind(r, line, text), text, ns, true
	}
	return ok
}

// at sets the time that stands at a place of a line.
func (t *stamp) at(line []byte, at, n int, ns int64) bool {
	t.rest, t.text, t.ns, t.head = restOf(line, at, n), line[at:at+n], ns, true
	return true
}

// restOf is the line behind its time, or the whole line if the time is a part of the level's
// form, as in I1120 15:04:05, or has the words of syslog and not the comma of Java.
func restOf(line []byte, at, n int) []byte {
	if isDigit(line[at]) || bytes.IndexByte(line[at:at+n], ',') > 0 {
		return line[at+n:]
	}
	return line
}

// skipColours skips blanks and the colours of terminals.
func skipColours(line []byte, at int) int {
	for {
		at = skipBlanks(line, at)
		next := skipCodes(line, at)
		if next == at {
			return at
		}
		at = next
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

// seconds reads Unix time in whole seconds, which a bracket or a colon has to mark: as
// [1795168800] of unbound, 1795168800: of Mosquitto. It has to be of the ten years before now.
func seconds(line []byte, at int, now int64) (ns int64, n int) {
	const digits, years = len("1795168800"), 10 * 366 * 24 * time.Hour
	end := at + digits
	if now == 0 || end+1 >= len(line) || !allDigits(line[at:end]) {
		return 0, 0
	}
	inBrackets := at > 0 && line[at-1] == '[' && line[end] == ']'
	if !inBrackets && (line[end] != ':' || line[end+1] != ' ') {
		return 0, 0
	}
	var r times.Reader
	ns, part := r.Read(line[at:end])
	if part != times.Full || ns < now-years.Nanoseconds() || ns > now+meaning.MaxAhead.Nanoseconds() {
		return 0, 0
	}
	return ns, digits
}

// isShort reports whether a time of n bytes has a year of two digits and no level behind it: it
// may be another date then.
func isShort(s []byte, n int) bool {
	if n < len("26/11/20 15:04:05") || s[2] != '/' || s[5] != '/' || isDigit(s[8]) {
		return false
	}
	from := skipBlanks(s, n)
	to := from
	for to < len(s) && s[to]-'A' < 26 {
		to++
	}
	return to-from < len("INFO") || record.ParseLevel(s[from:to]) == record.Other
}

// apart reads the date and the time of two pairs, date=2026-11-20 time=15:04:05, with the
// offset or the zone of a third, tz="+0100" or timezone="CET". text is the two pairs.
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
	length := len(whole)
	for _, name := range [...]string{" tz=\"", " timezone=\""} { // of FortiGate, of Sophos
		if _, zone, ok := bytes.Cut(behind, []byte(name)); ok {
			zone, _, _ = bytes.Cut(zone, []byte(`"`))
			whole = append(whole[:length], zone...)
		}
	}
	ns, part := r.Read(whole)
	if part != times.Full && length < len(whole) && !isDigit(whole[len(whole)-1]) { // letters of several meanings
		ns, part = r.Read(whole[:length])
	}
	return line[:len("date= time=")+len(date)+len(clock)], ns, part == times.Full
}

// longestHead is how many bytes a line may have in front of its time.
const longestHead = 256

// inside finds a time that does not begin its line: in the words of an access log, in the mark of
// auditd, or in a pair of logfmt.
//
//	192.0.2.1 - - [20/Nov/2026:15:04:05 +0100] "GET / HTTP/1.1" 200 12    nginx, Apache, Traefik
//	192.0.2.1 - 20/Nov/2026:15:04:05 +0100 "GET / HTTP/1.1" 200           PHP-FPM
//	type=SYSCALL msg=audit(1795168800.257:812): text                      auditd
//	level=info ts=2026-11-20T15:04:05Z msg=text                           go-kit, Grafana, Loki
func inside(r *times.Reader, line []byte) (text []byte, ns int64, head, ok bool) {
	if len(line) > 5 && line[4] == '=' && (string(line[:4]) == "type" || string(line[:4]) == "node") {
		if at := bytes.Index(line[:min(len(line), longestHead)], []byte("audit(")); at >= 0 {
			at += len("audit(")
			ns, n := number(line[at:], false)
			return line[at : at+n], ns, true, n > 0
		}
	}
	if text, ns, ok = accessTime(r, line); ok {
		at := cap(line) - cap(text)
		return text, ns, isAccess(line[:at-1], line[at+len(text):]), true
	}
	if isPair(line) {
		return pairTime(r, line)
	}
	return nil, 0, false, false
}

// accessTime finds the time of an access log: a date with slashes or of ctime, in brackets or,
// behind an address, without.
func accessTime(r *times.Reader, line []byte) (text []byte, ns int64, ok bool) {
	head := line[:min(len(line), longestHead)]
	mark := byte('[')
	if len(line) > 0 && isDigit(line[0]) && bytes.IndexByte(head, mark) < 0 {
		mark = ' '
	}
	for at := 0; at < len(head); at++ {
		n := bytes.IndexByte(head[at:], mark)
		if n < 0 {
			break
		}
		if at += n; at+4 >= len(line) || line[at+3] != '/' && (line[at+4] != ' ' || line[at+1]-'A' >= 26) {
			continue
		}
		if bytes.IndexByte(head[:at], '"') >= 0 { // the text of somebody
			break
		}
		if ns, n := r.Prefix(line[at+1:]); n > 0 {
			return line[at+1 : at+1+n], ns, true
		}
	}
	return nil, 0, false
}

// pairTime finds the time in a line of logfmt: the first of its pairs with the name of a time
// that has one. created is a guess, and date behind another pair.
func pairTime(r *times.Reader, line []byte) (text []byte, ns int64, head, ok bool) {
	const mostPairs = 16
	p := pairs{line: line}
	for i := range mostPairs {
		key, value, more := p.next()
		if !more {
			break
		}
		if meaning.TimePlace(string(key)) == 0 {
			continue
		}
		if string(key) == "date" {
			at := cap(line) - cap(key)
			if text, ns, ok := apart(r, line[at:]); ok { // of Sophos
				return text, ns, true, true
			}
		}
		value = bytes.Trim(value, `"`)
		if at, part := r.Read(value); part == times.Full {
			if head = !bytes.EqualFold(key, []byte("created")) && (i == 0 || !bytes.EqualFold(key, []byte("date"))); head || !ok {
				text, ns, ok = value, at, true
			}
			if head {
				break
			}
		}
	}
	return text, ns, head, ok
}
