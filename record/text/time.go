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

// Read finds the time of a line of text, in the order of docs/send/native.md: the line begins with it,
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
	return t.first(r, line, at, false) || t.pairTime(r, line, at) || t.accessTime(r, line, at) || t.marked(r, line, at)
}

// first finds the time at a place of a line, perhaps in a bracket. The line behind it has the level, but
// for the words of syslog without the comma of Java, and where the time is a part of the level's form, as
// in I1120 15:04:05.
func (t *Stamp) first(r *times.Reader, line []byte, at int, key bool) bool {
	if at < len(line) && (line[at] == '[' || line[at] == '(' || line[at] == '"' || line[at] == '<') {
		at++
	}
	if !t.at(r, line, at, key) || isShort(line[at:]) {
		*t = Stamp{Rest: line}
		return false
	}
	if IsDigit(line[at]) || bytes.IndexByte(t.Text, ',') > 0 {
		t.Rest = line[at+len(t.Text):]
	}
	return true
}

// at reads the time at a place of a line. key says that its name stands before it.
func (t *Stamp) at(r *times.Reader, line []byte, at int, key bool) bool {
	if at >= len(line) {
		return false
	}
	s := line[at:]
	ns, n := r.Prefix(s)
	switch c := s[0]; {
	case n > 0:
	case key || IsDigit(c):
		ns, n = unix(line, at, key, r.Now)
	case c == 'd':
		ns, n = apart(r, s)
	}
	if n > 0 {
		t.Text, t.NS, t.Head = s[:n], ns, true
	}
	return n > 0
}

// unix reads the Unix time at a place of a line: in any form behind its name, else with a fraction, because
// an identifier is a number too; or in seconds of the ten years before now, in a bracket or before a colon,
// as [1795168800] of unbound, 1795168800: of Mosquitto.
func unix(line []byte, at int, key bool, now int64) (ns int64, n int) {
	const seconds, milli, years = len("1795168800"), len("1795168800.257"), 10 * 366 * 24 * time.Hour
	s, point := line[at:], false
	for n < len(s) && n < 32 && (IsDigit(s[n]) || s[n] == '.' || n > 0 && (s[n]|0x20 == 'e' || s[n] == '+' && s[n-1]|0x20 == 'e')) {
		point = point || s[n] == '.'
		n++
	}
	whole := !point && n == seconds && now != 0 && n+1 < len(s) &&
		(s[n] == ']' && at > 0 && line[at-1] == '[' || s[n] == ':' && s[n+1] == ' ')
	if n == 0 || isWord(s, n) || !key && !whole && (n < milli || !point) {
		return 0, 0
	}
	var r times.Reader
	ns, part := r.Read(s[:n])
	if part != times.Full || whole && !key && (ns < now-years.Nanoseconds() || ns > now+record.MaxAhead.Nanoseconds()) {
		return 0, 0
	}
	return ns, n
}

// isShort reports whether a time has a year of two digits and no level behind it: it may be another
// date then.
func isShort(s []byte) bool {
	if len(s) <= len("26/11/20 ") || s[2] != '/' || s[5] != '/' || IsDigit(s[8]) {
		return false
	}
	_, from, to := fit("99/99/99 @_$", s)
	return to-from < len("INFO") || record.ParseLevel(s[from:to]) == record.Other
}

// apart reads the date and the time of two pairs, date=2026-11-20 time=15:04:05, with the
// offset or the zone of another one, tz="+0100" or timezone="CET". n is the length of the two pairs.
func apart(r *times.Reader, line []byte) (ns int64, n int) {
	var whole, zone []byte
	p := pairs{line: line}
	for i := 0; ; i++ {
		key, value, more := p.next()
		value = bytes.Trim(value, `"`)
		switch name := string(key); {
		case i == 0 && name == "date":
			whole = append(whole, value...)
		case i == 1 && name == "time":
			whole, n = append(append(whole, ' '), value...), p.at
		case n == 0:
			return 0, 0
		case name == "tz", name == "timezone": // of FortiGate, of Sophos
			zone = value
		}
		if !more {
			break
		}
	}
	ns, part := r.Read(append(whole, zone...))
	if part != times.Full && len(zone) > 0 && !IsDigit(zone[len(zone)-1]) { // letters of several meanings
		ns, part = r.Read(whole)
	}
	if part != times.Full {
		return 0, 0
	}
	return ns, n
}

// longestHead is how many bytes a line may have in front of its time.
const longestHead = 256

// pairTime finds the time in a line of logfmt: the first of its pairs with the name of a time
// that has one. created is a guess, and date behind another pair.
//
//	level=info ts=2026-11-20T15:04:05Z msg=text    go-kit, Grafana, Loki
func (t *Stamp) pairTime(r *times.Reader, line []byte, from int) bool {
	const mostPairs = 16
	if from < len(line) && line[from] == 't' {
		switch key, _, ok := bytes.Cut(line[from:min(len(line), from+len("timestamp="))], []byte("=")); string(key) {
		case "time", "ts", "timestamp", "t":
			if ok && t.first(r, line, from+len(key)+1, true) {
				return true
			}
		}
	}
	p := pairs{line: line, at: from}
	for i := range mostPairs {
		key, value, more := p.next()
		if !more {
			break
		}
		if names.TimePlace(string(key)) == 0 {
			continue
		}
		if string(key) == "date" && t.at(r, line, p.at-len(value)-len("date="), false) { // of Sophos
			return true
		}
		value = bytes.Trim(value, `"`)
		if at, part := r.Read(value); part == times.Full {
			head := !bytes.EqualFold(key, []byte("created")) && (i == 0 || !bytes.EqualFold(key, []byte("date")))
			if head || t.Text == nil {
				t.Text, t.NS, t.Head = value, at, head
			}
			if head {
				break
			}
		}
	}
	return t.Text != nil
}

// IsPadded reports whether a line is indented by the blank of a level that is padded to five
// characters, as of log4j's %5p.
func IsPadded(line []byte) bool {
	return len(line) > 6 && line[0] == ' ' && line[5] == ' ' && (string(line[1:5]) == "INFO" || string(line[1:5]) == "WARN")
}
