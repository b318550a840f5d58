package syslog

import (
	"bytes"
	"time"

	"blobtail/record"
)

// A parser reads messages. It belongs to one goroutine at a time.
type parser struct {
	zone *time.Location // of times without a zone
	now  time.Time      // when the messages came, in that zone

	// The hour of the time without a zone that was read last: those of one connection
	// are nearly all of the same hour.
	hour   civilHour
	hourNs int64
	hourAt time.Time // when that was the nearest year
}

// A civilHour is an hour of a calendar without a zone. Year 0 is that nearest to now.
type civilHour struct{ year, month, day, hour int }

// farYear is how long the nearest year of an hour is kept.
const farYear = time.Hour

// arrive sets the time of arrival. Times without a year get the nearest one.
func (p *parser) arrive(now time.Time) { p.now = now.In(p.zone) }

// stamp reads the time at the start of b, in one of the forms of devices. n is its length
// with its zone, 0 if there is none. One of the bytes *, . and ! may stand before it:
// Cisco's devices say so whether their clocks are set.
func (p *parser) stamp(b []byte) (ns int64, n int) {
	at := 0
	if len(b) > 0 && (b[0] == '*' || b[0] == '.' || b[0] == '!') {
		at = 1
	}
	s := b[at:]
	if len(s) > 10 && s[4] == '-' {
		ns, n = p.isoStamp(s)
	} else {
		ns, n = p.bsdStamp(s)
	}
	if n == 0 {
		return 0, 0
	}
	return ns, at + n
}

// isoStamp reads 2026-11-20T15:04:05.123+01:00, or with a space for the T.
func (p *parser) isoStamp(s []byte) (ns int64, n int) {
	const least = len("2026-11-20T15:04:05")
	if len(s) < least || s[13] != ':' || s[16] != ':' {
		return 0, 0
	}
	n = least
	for n < len(s) && n < 40 && (isDigit(s[n]) || s[n] == '.' || s[n] == ',') {
		n++
	}
	naive := n
	if n < len(s) && (s[n] == 'Z' || s[n] == 'z') {
		n++
	} else {
		n += offsetLen(s[n:])
	}
	ns, ok := record.ParseTime(s[:n])
	if !ok {
		return 0, 0
	}
	if n == naive {
		_, offset := time.Unix(0, ns).In(p.zone).Zone()
		// The offset may differ at the time that it is subtracted from: once more.
		_, offset = time.Unix(0, ns-int64(offset)*int64(time.Second)).In(p.zone).Zone()
		ns -= int64(offset) * int64(time.Second)
	}
	return ns, n
}

// offsetLen is the length of +01, +0100 or +01:00 at the start of s, or 0.
func offsetLen(s []byte) int {
	if len(s) < 3 || s[0] != '+' && s[0] != '-' || !allDigits(s[1:3]) {
		return 0
	}
	switch {
	case len(s) >= 6 && s[3] == ':' && allDigits(s[4:6]):
		return 6
	case len(s) >= 5 && allDigits(s[3:5]):
		return 5
	}
	return 3
}

// bsdStamp reads Nov 20 15:04:05, with a year before the month, before the clock or behind
// it, with a fraction, and with a zone.
func (p *parser) bsdStamp(s []byte) (ns int64, n int) {
	var h civilHour
	h.year, n = yearOf(s, 0)
	if n+3 >= len(s) {
		return 0, 0
	}
	if h.month = monthOf(s[n : n+3]); h.month == 0 || s[n+3] != ' ' {
		return 0, 0
	}
	n = skipSpaces(s, n+3)
	for from := n; n < len(s) && n < from+2 && isDigit(s[n]); n++ {
		h.day = h.day*10 + int(s[n]-'0')
	}
	if h.day == 0 || n >= len(s) || s[n] != ' ' {
		return 0, 0
	}
	n = skipSpaces(s, n)
	if year, end := yearOf(s, n); h.year == 0 && year > 0 {
		h.year, n = year, end
	}
	const clock = len("15:04:05")
	if len(s) < n+clock || s[n+2] != ':' || s[n+5] != ':' {
		return 0, 0
	}
	hour, minute, second := two(s[n:]), two(s[n+3:]), two(s[n+6:])
	if hour > 23 || minute > 59 || second > 60 {
		return 0, 0
	}
	h.hour = hour
	n += clock
	var nano int64
	nano, n = fraction(s, n)
	var year int
	if year, n = yearBehind(s, n); h.year == 0 {
		h.year = year
	}
	east, zoned, end := zoneOf(s, n)
	start, ok := p.hourStart(h, zoned)
	if !ok {
		return 0, 0
	}
	return start + int64(minute)*int64(time.Minute) + int64(second-east)*int64(time.Second) + nano, end
}

// hourStart is the beginning of an hour in Unix nanoseconds, in UTC or in the zone of the
// parser. ok is false for a day that does not exist.
func (p *parser) hourStart(h civilHour, utc bool) (ns int64, ok bool) {
	if !utc && h == p.hour && p.now.Sub(p.hourAt).Abs() < farYear {
		return p.hourNs, true
	}
	zone := p.zone
	if utc {
		zone = time.UTC
	}
	first, last := h.year, h.year
	if h.year == 0 {
		first, last = p.now.Year()-1, p.now.Year()+1
	}
	var best time.Duration
	for year := first; year <= last; year++ {
		if time.Date(year, time.Month(h.month), h.day, 0, 0, 0, 0, time.UTC).Day() != h.day {
			continue // no such day in that year
		}
		t := time.Date(year, time.Month(h.month), h.day, h.hour, 0, 0, 0, zone)
		if away := t.Sub(p.now).Abs(); !ok || away < best {
			best, ns, ok = away, t.UnixNano(), true
		}
	}
	if ok && !utc {
		p.hour, p.hourNs, p.hourAt = h, ns, p.now
	}
	return ns, ok
}

// yearOf reads a year and the spaces behind it at a place of s. It is 0 if there is none.
func yearOf(s []byte, at int) (year, end int) {
	if len(s) < at+5 || !allDigits(s[at:at+4]) || s[at+4] != ' ' {
		return 0, at
	}
	if year = two(s[at:])*100 + two(s[at+2:]); year < 1970 || year > 2261 {
		return 0, at
	}
	return year, skipSpaces(s, at+4)
}

// yearBehind reads a year that follows the clock.
func yearBehind(s []byte, at int) (year, end int) {
	if at < len(s) && s[at] == ' ' {
		if year, _ = yearOf(s, at+1); year > 0 {
			return year, at + 5
		}
	}
	return 0, at
}

// zoneOf reads a zone behind a clock, as seconds east of UTC. known is false if it has no
// single meaning, as most letters, or if there is none. Such letters need a colon behind
// them, or they may be the host.
func zoneOf(s []byte, at int) (east int, known bool, end int) {
	from := at
	if from < len(s) && s[from] == ' ' {
		from++
	}
	rest := s[from:]
	if n := offsetLen(rest); n > 3 {
		east = two(rest[1:])*3600 + two(rest[n-2:])*60
		if rest[0] == '-' {
			east = -east
		}
		return east, true, from + n
	}
	n := 0
	for n < len(rest) && n < 5 && rest[n] >= 'A' && rest[n] <= 'Z' {
		n++
	}
	ended := n == len(rest) || rest[n] == ' ' || rest[n] == ':'
	colon := bytes.HasPrefix(rest[n:], []byte(":")) || bytes.HasPrefix(rest[n:], []byte(" :"))
	switch letters := rest[:n]; {
	case n == 0 || !ended:
		return 0, false, at
	case string(letters) == "Z", string(letters) == "UTC", string(letters) == "GMT":
		return 0, true, from + n
	case colon && n >= 3:
		return 0, false, from + n
	}
	return 0, false, at
}

// fraction reads .123 or ,123 as nanoseconds.
func fraction(s []byte, at int) (nano int64, end int) {
	if at+1 >= len(s) || s[at] != '.' && s[at] != ',' || !isDigit(s[at+1]) {
		return 0, at
	}
	scale := int64(time.Second)
	for at++; at < len(s) && isDigit(s[at]); at++ {
		scale /= 10
		nano += int64(s[at]-'0') * scale
	}
	return nano, at
}

func monthOf(s []byte) int {
	const months = "janfebmaraprmayjunjulaugsepoctnovdec"
	low := [3]byte{s[0] | 0x20, s[1] | 0x20, s[2] | 0x20}
	for at := 0; at < len(months); at += 3 {
		if months[at] == low[0] && months[at+1] == low[1] && months[at+2] == low[2] {
			return at/3 + 1
		}
	}
	return 0
}

func skipSpaces(s []byte, at int) int {
	for at < len(s) && s[at] == ' ' {
		at++
	}
	return at
}

// two reads two digits; anything else is more than 99.
func two(s []byte) int {
	if len(s) < 2 || !isDigit(s[0]) || !isDigit(s[1]) {
		return 1 << 16
	}
	return int(s[0]-'0')*10 + int(s[1]-'0')
}
