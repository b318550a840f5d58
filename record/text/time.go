package text

import (
	"bytes"
	"time"

	"blobtail/record"
	"blobtail/record/names"
	"blobtail/record/times"
)

// A Stamp is the time of a line of text.
type Stamp struct {
	// Rest is the line behind the time if its level is to be looked for there, else the line. Text is
	// the time as it stands there.
	Rest, Text []byte
	NS         int64
	Head       bool // it stands where loggers write the time of a line; else it is a guess
	Far        bool // the guess is not believed
}

// Read finds the time of a line of text, in the order of docs/SENDING.md: the line begins with it,
// perhaps behind a mark; or it has the form of a server's log of requests. Times without a zone are
// UTC, so that all ingesters agree.
func (t *Stamp) Read(r *times.Reader, line []byte) (ok bool) {
	*t = Stamp{Rest: line}
	if !t.find(r, line) {
		return false
	}
	t.Head = t.Head && !IsIndented(line)
	return t.Head || t.Judge(r, line)
}

// ReadPast is Read without times that no record of an arrival at r.Now can have.
func (t *Stamp) ReadPast(r *times.Reader, line []byte) (ok bool) {
	if ok = t.Read(r, line); ok && r.Now != 0 && t.NS > r.Now+record.MaxAhead.Nanoseconds() {
		*t = Stamp{Rest: line, Text: t.Text}
		return false
	}
	return ok
}

// Judge reports whether a guess is believed. Else the line has no time.
func (t *Stamp) Judge(r *times.Reader, line []byte) bool {
	if r.Believes(t.NS) {
		return true
	}
	*t = Stamp{Rest: line, Text: t.Text, Far: true}
	return false
}

// Time returns the time of a line of text. ok is false if it has none.
func Time(r *times.Reader, line []byte) (ns int64, ok bool) {
	var at Stamp
	ok = at.Read(r, line)
	return at.NS, ok
}

// IsIndented reports whether a line is indented, and not by the blank of a level that is padded or
// that in front of a priority.
func IsIndented(line []byte) bool {
	return len(line) > 1 && (line[0] == ' ' || line[0] == '\t') && line[1] != '<' && !IsPadded(line)
}

// find finds the time of a line, whether it is believed or not.
func (t *Stamp) find(r *times.Reader, line []byte) (ok bool) {
	at := SkipColours(line, 0)
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
	if key || at < len(line) && IsDigit(line[at]) {
		if ns, n := number(line[at:], key); n > 0 {
			return t.at(line, at, n, ns)
		}
		if ns, n := seconds(line, at, r.Now); n > 0 {
			return t.at(line, at, n, ns)
		}
	}
	if start < len(line) && line[start] == 'd' {
		if text, ns, ok := apart(r, line[start:]); ok {
			t.Text, t.NS, t.Head = text, ns, true
			return true
		}
	}
	if text, ns, head, ok := inside(r, line[start:]); ok {
		t.Text, t.NS, t.Head = text, ns, head
		return true
	}
	text, ns, ok := marked(r, line[start:])
	if ok {
		t.Rest, t.Text, t.NS, t.Head = restBehind(r, line, text), text, ns, true
	}
	return ok
}

// at sets the time that stands at a place of a line.
func (t *Stamp) at(line []byte, at, n int, ns int64) bool {
	t.Rest, t.Text, t.NS, t.Head = restOf(line, at, n), line[at:at+n], ns, true
	return true
}

// restOf is the line behind its time, or the whole line if the time is a part of the level's
// form, as in I1120 15:04:05, or has the words of syslog and not the comma of Java.
func restOf(line []byte, at, n int) []byte {
	if IsDigit(line[at]) || bytes.IndexByte(line[at:at+n], ',') > 0 {
		return line[at+n:]
	}
	return line
}

// number reads Unix time at the start of a line. Without a name in front of it, it has seconds
// with a fraction, because an identifier is a number too.
func number(line []byte, key bool) (ns int64, n int) {
	point := false
	for n < len(line) && n < 32 && (IsDigit(line[n]) || line[n] == '.' || n > 0 && (line[n]|0x20 == 'e' || line[n] == '+' && line[n-1]|0x20 == 'e')) {
		point = point || line[n] == '.'
		n++
	}
	const seconds = len("1795168800.257")
	if n == 0 || !key && (n < seconds || !point) || n < len(line) && IsWord(line, n) {
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
	if now == 0 || end+1 >= len(line) || !AllDigits(line[at:end]) {
		return 0, 0
	}
	inBrackets := at > 0 && line[at-1] == '[' && line[end] == ']'
	if !inBrackets && (line[end] != ':' || line[end+1] != ' ') {
		return 0, 0
	}
	var r times.Reader
	ns, part := r.Read(line[at:end])
	if part != times.Full || ns < now-years.Nanoseconds() || ns > now+record.MaxAhead.Nanoseconds() {
		return 0, 0
	}
	return ns, digits
}

// isShort reports whether a time of n bytes has a year of two digits and no level behind it: it
// may be another date then.
func isShort(s []byte, n int) bool {
	if n < len("26/11/20 15:04:05") || s[2] != '/' || s[5] != '/' || IsDigit(s[8]) {
		return false
	}
	from := SkipBlanks(s, n)
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
	if part != times.Full && length < len(whole) && !IsDigit(whole[len(whole)-1]) { // letters of several meanings
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
		if names.TimePlace(string(key)) == 0 {
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

// IsPadded reports whether a line is indented by the blank of a level that is padded to five
// characters, as of log4j's %5p.
func IsPadded(line []byte) bool {
	return len(line) > 6 && line[0] == ' ' && line[5] == ' ' && (string(line[1:5]) == "INFO" || string(line[1:5]) == "WARN")
}
