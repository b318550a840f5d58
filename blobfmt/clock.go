package blobfmt

import "math"

const (
	nsPerMinute int64 = 60e9
	nsPerHour         = 60 * nsPerMinute
)

// lastOfHour is the last nanosecond of the UTC hour of t.
func lastOfHour(t int64) int64 {
	into := (t%nsPerHour + nsPerHour) % nsPerHour
	return t + min(nsPerHour-1-into, math.MaxInt64-max(t, 0))
}

// minuteOf is the minute of a time, rounded down before 1970 too.
func minuteOf(t int64) int64 {
	return t/nsPerMinute + (t%nsPerMinute)>>63 // -1 for a negative remainder
}
