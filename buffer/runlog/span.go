package runlog

import (
	"math"
	"time"
)

// Span is from the first to the last time of some lines, Unix nanoseconds, both
// included.
type Span struct{ First, Last int64 }

// NoSpan is the span of no lines.
func NoSpan() Span { return Span{math.MaxInt64, math.MinInt64} }

// Extend makes s cover t too.
func (s *Span) Extend(t Span) {
	s.First = min(s.First, t.First)
	s.Last = max(s.Last, t.Last)
}

// Touches reports whether a line of the span may be in [from, to). A to of
// math.MaxInt64 bounds nothing.
func (s Span) Touches(from, to int64) bool {
	return s.Last >= from && !beyond(s.First, to)
}

// beyond reports whether a time is not before to.
func beyond(t, to int64) bool { return t >= to && to != math.MaxInt64 }

// longestPeriod is the period of any batch, in minutes. The log does not
// record the period of an older batch.
const longestPeriod = 60

// Span covers all lines of the bin, and possibly more.
func (b Bin) Span() Span {
	return Span{minuteStart(b.Period), minuteStart(b.Period + longestPeriod)}
}

// minuteStart is the start of a minute, or the nearest time that nanoseconds can
// represent.
func minuteStart(minute int64) int64 {
	const most = math.MaxInt64 / int64(time.Minute)
	switch {
	case minute > most:
		return math.MaxInt64
	case minute < -most:
		return math.MinInt64
	}
	return minute * int64(time.Minute)
}
