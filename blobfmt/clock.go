package blobfmt

import (
	"math"

	"blobtail/record"
)

const (
	nsPerMinute int64 = 60e9
	nsPerHour         = 60 * nsPerMinute
)

// A minuteClock reports cheaply whether a time is in the same minute as the last.
type minuteClock struct {
	number     int64
	start, end int64 // end is past the last nanosecond; equal: nothing yet
}

func (c *minuteClock) holds(t int64) bool { return t >= c.start && t < c.end }

func (c *minuteClock) set(t int64) {
	c.number = minuteOf(t)
	// At the ends of int64 the bounds overflow: then the range is the time alone.
	c.start, c.end = c.number*nsPerMinute, (c.number+1)*nsPerMinute
	if c.number < math.MinInt64/nsPerMinute || c.number >= math.MaxInt64/nsPerMinute {
		c.start, c.end = t, t
	}
}

// lastOfHour is the last nanosecond of the UTC hour of t.
func lastOfHour(t int64) int64 {
	into := t % nsPerHour
	if into < 0 {
		into += nsPerHour
	}
	return t + min(nsPerHour-1-into, math.MaxInt64-max(t, 0))
}

// minuteOf is the minute of a time, rounded down before 1970 too.
func minuteOf(t int64) int64 {
	m := t / nsPerMinute
	if t%nsPerMinute < 0 {
		m--
	}
	return m
}

// A secondClock compares the text of a time with its value. Lines come in order, so
// nearly all share their second with the one before. Then only the fraction is parsed.
type secondClock struct {
	text  [secondLen]byte
	start int64
}

func (c *secondClock) matches(text []byte, t int64) bool {
	if string(text[:secondLen]) == string(c.text[:]) && text[timeLen-1] == 'Z' {
		fraction := int64(0)
		for _, d := range text[secondLen : timeLen-1] {
			if d -= '0'; d > 9 {
				return false
			}
			fraction = fraction*10 + int64(d)
		}
		return c.start+fraction == t
	}
	ns, ok := record.ParseCanonicalTime(text)
	if !ok || ns != t {
		return false
	}
	start := t - (t%1e9+1e9)%1e9
	if start <= t { // false only near the end of int64
		c.start = start
		copy(c.text[:], text)
	}
	return true
}
