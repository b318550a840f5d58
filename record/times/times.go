// Package times reads times as programs, devices and protocols write them.
//
// It is the one reader of times: lines of text, JSON fields, the headers of syslog and the
// free forms of protocols all pass it. A [Reader] reads the time that a text begins with, or
// a text that is one time. docs/send/native.md lists the forms in the order in which they are
// tried.
package times

import (
	"bytes"
	"time"
)

const (
	second = 1_000_000_000
	daySec = 86400
	// ahead is how far a date without a year may be ahead of now.
	ahead = daySec * second
	// first and end are the range of numbers that are times: the years 2000 to 2099.
	first = 946684800 * second
	end   = 4102444800 * second
)

// A Reader reads times. The zero value takes times without a zone as UTC, and no dates
// without a year. It belongs to one goroutine at a time.
type Reader struct {
	// Zone is that of times without one; nil is UTC.
	Zone *time.Location
	// Now is the time of arrival in Unix nanoseconds. A date without a year is of the latest
	// year that is not more than 24 h ahead of it. 0: such a date is no time.
	Now int64
	// Guess reports whether a time that may be another one is believed. dated is false. Nil: each is.
	Guess func(ns int64, dated bool) bool
	// MonthFirst says that the source writes 11/20/2026 for a day in November.
	MonthFirst bool
	// MonthDay says that the source writes 11-20 15:04:05 without a fraction.
	MonthDay bool

	head   uint64 // the text of the last date
	tail   uint16
	daySec int64 // its midnight

	year       int   // of Now
	yearOf     int64 // the Now of that year
	hour, east int64 // a local hour, and the offset of Zone in it
	cached     bool
	placeName  string // the last name of a zone by its place
	place      *time.Location
	unknown    int   // names that are no place
	unknownOf  int64 // the Now at which they came
}

// Believes reports whether a time that may be another one is believed.
func (r *Reader) Believes(ns int64) bool { return r.Guess == nil || r.Guess(ns, false) }

// A Part says how much of a time a text has.
type Part uint8

// The parts. A date alone is its midnight, a clock alone the time since a midnight.
const (
	None Part = iota
	Full
	Date
	Clock
)

// Parse reads a text that is one time or one date, for [Reader.Read] with the zero Reader.
func Parse(s []byte) (ns int64, ok bool) {
	var r Reader
	ns, part := r.Read(s)
	return ns, part == Full || part == Date
}

// Read reads a text that is one time, a date or a clock, as Unix nanoseconds. White space
// and one pair of brackets around it do not count. A number is Unix time in seconds,
// milliseconds, microseconds or nanoseconds, by its size, if that is of the years 2000 to
// 2099.
func (r *Reader) Read(s []byte) (ns int64, part Part) {
	if ns, ok := r.iso(s); ok {
		return ns, Full
	}
	s = bytes.TrimSpace(s)
	if n := len(s); n > 1 && s[0] == '[' && s[n-1] == ']' {
		s = s[1 : n-1]
	}
	if len(s) == 0 || len(s) > longest {
		return 0, None
	}
	if inner, ok := bytes.CutPrefix(s, []byte("/Date(")); ok {
		inner, ok = bytes.CutSuffix(inner, []byte(")/"))
		number := inner
		if at := bytes.LastIndexAny(inner, "+-"); at > 0 { // a zone to show it in
			number = inner[:at]
		}
		if ns, ok = number2000(number, ok); ok {
			return ns, Full
		}
		return 0, None
	}
	if ns, ok := number2000(s, isDigit(s[0])); ok {
		return ns, Full
	}
	c := scan{r: r, s: s, whole: true}
	if !c.time() {
		c = scan{r: r, s: s, whole: true}
		if !c.onlyClock() {
			return 0, None
		}
	}
	if c.tail(); c.at < len(s) {
		return 0, None
	}
	return c.value()
}

// The lengths of the longest text that may be a time, and of the shortest one with a clock.
const (
	longest  = 128
	shortest = len("Nov 1 1:04:05")
)

// Prefix reads the time that a text begins with, as Unix nanoseconds. n is its length with
// its zone; 0: there is none. It has a date and a clock with seconds.
func (r *Reader) Prefix(s []byte) (ns int64, n int) {
	if len(s) < shortest || !begins(s) {
		return 0, 0
	}
	if ns, n := r.isoPrefix(s, r.Zone == nil); n > 0 {
		return ns, n
	}
	c := scan{r: r, s: s[:min(len(s), longest)]}
	if !c.time() {
		return 0, 0
	}
	if ns, part := c.value(); part == Full {
		return ns, c.at
	}
	return 0, 0
}

// begins reports whether a text may begin with a time, by its first bytes.
func begins(s []byte) bool {
	if isDigit(s[0]) || isLetter(s[0]) && isDigit(s[1]) {
		return true
	}
	letters := uint32(s[0]|0x20)<<16 | uint32(s[1]|0x20)<<8 | uint32(s[2]|0x20)
	if n, _ := month(letters); n > 0 {
		return true
	}
	n, _ := weekday(letters)
	return n > 0
}

// number2000 reads a number that is a time of the years 2000 to 2099.
func number2000(s []byte, number bool) (ns int64, ok bool) {
	if n := digits(s); !number || n < len(s) && s[n] != '.' && s[n]|0x20 != 'e' {
		return 0, false
	}
	ns, ok = Number(s)
	return ns, ok && ns >= first && ns < end
}

// value is the time that was scanned.
func (c *scan) value() (ns int64, part Part) {
	sec := c.sec - c.east
	switch {
	case !c.dated:
		return sec*second + c.nano, Clock
	case c.year == 0:
		return c.latest()
	}
	if c.day < 1 || int64(c.day) > monthDays(c.year, c.month) {
		return 0, None
	}
	ns, ok := c.of(c.year)
	switch {
	case !ok:
		return 0, None
	case !c.clocked:
		return ns, Date
	}
	return ns, Full
}

// latest is a time without a year: the latest one that is not more than 24 h ahead of now.
func (c *scan) latest() (ns int64, part Part) {
	r := c.r
	if r.Now == 0 || !c.clocked {
		return 0, None
	}
	if r.yearOf != r.Now {
		r.year, r.yearOf = time.Unix(0, r.Now).UTC().Year(), r.Now
	}
	const longestGap = 9 // from one leap day to the next, over a year such as 2100
	for year := r.year + 1; year >= r.year-longestGap && year > 0; year-- {
		if c.day < 1 || int64(c.day) > monthDays(uint(year), c.month) {
			continue
		}
		if ns, ok := c.of(uint(year)); ok && ns-r.Now <= ahead {
			return ns, Full
		}
	}
	return 0, None
}

// of is the time in a year.
func (c *scan) of(year uint) (ns int64, ok bool) {
	sec := daysFromCivil(year, c.month, c.day)*daySec + c.sec
	if c.local != nil {
		return Join(sec-offset(c.local, sec), c.nano)
	}
	if !c.zoned && c.r.Zone != nil && c.r.Zone != time.UTC {
		return Join(sec-c.r.offset(sec), c.nano)
	}
	return Join(sec-c.east, c.nano)
}

// offset is the offset of the zone at a local time, in seconds.
func (r *Reader) offset(local int64) (east int64) {
	hour := local / 3600
	if r.cached && r.hour == hour {
		return r.east
	}
	r.hour, r.east, r.cached = hour, offset(r.Zone, local), true
	return r.east
}

// offset is the offset of a zone at a local time, in seconds.
func offset(zone *time.Location, local int64) (east int64) {
	t := time.Unix(local, 0).UTC()
	y, m, d := t.Date()
	_, off := time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), 0, zone).Zone()
	return int64(off)
}
