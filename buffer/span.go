package buffer

import (
	"math"
	"time"
)

// span is from the first to the last time of some lines, Unix nanoseconds, both
// included.
type span struct{ first, last int64 }

// noSpan is that of no lines.
func noSpan() span { return span{math.MaxInt64, math.MinInt64} }

func (s *span) add(t span) {
	s.first = min(s.first, t.first)
	s.last = max(s.last, t.last)
}

// touches reports whether a line of the span may lie in [from, to).
func (s span) touches(from, to int64) bool {
	return s.last >= from && (s.first < to || to == math.MaxInt64)
}

// longestPeriod is that of any batch: which one an older batch was cut by is not
// recorded.
const longestPeriod = 60

// periodSpan is where all lines of a batch lie, if not a little more.
func periodSpan(k key) span {
	return span{minuteStart(k.period), minuteStart(k.period + longestPeriod)}
}

// seconds says in few bytes where in its period a run lies.
type seconds struct{ first, last uint16 }

func secondsOf(r *run) seconds {
	start := minuteStart(r.key.period)
	in := func(t int64) uint16 { return uint16(min(max(t-start, 0)/int64(time.Second), longestPeriod*60)) }
	return seconds{in(r.time0), in(r.last)}
}

// of is the span, rounded outwards.
func (s seconds) of(k key) span {
	start := minuteStart(k.period)
	in := func(second int64) int64 {
		if d := second * int64(time.Second); start <= math.MaxInt64-d {
			return start + d
		}
		return math.MaxInt64
	}
	return span{in(int64(s.first)), in(int64(s.last) + 1)}
}

// minuteStart is the start of a minute, or the end of what nanoseconds can say.
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
