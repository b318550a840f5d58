package blobs

import (
	"math"
	"time"

	"blobtail/record"
)

// Buckets divide all times for a histogram. A bucket is Length long. Lengths of whole
// days are days of the zone's calendar, and those of whole weeks begin on Mondays. Shorter
// ones begin at multiples of their length of the zone's clock. Where that clock changes, a
// bucket ends and another one begins.
type Buckets struct {
	Length time.Duration  // more than 0
	Zone   *time.Location // nil: UTC
}

const (
	day    = 24 * time.Hour
	monday = 4 // days from 1970-01-01 to the first Monday
)

// Start returns the start of the bucket of a time, in ns since 1970.
func (b Buckets) Start(ns int64) int64 {
	if b.days() > 0 {
		return b.beginOf(b.firstDay(ns))
	}
	off, from, _ := b.clock(ns)
	return max(from, floor(ns, int64(b.Length), off))
}

// Next returns the start of the bucket behind the one with a start; [math.MaxInt64] if
// there is none.
func (b Buckets) Next(start int64) int64 {
	if n := b.days(); n > 0 {
		return b.beginOf(b.firstDay(start) + n)
	}
	off, _, until := b.clock(start)
	begin := floor(start, int64(b.Length), off)
	if begin > math.MaxInt64-int64(b.Length) {
		return until
	}
	return min(until, begin+int64(b.Length))
}

// days are how many days a bucket has; 0 if it has no whole ones.
func (b Buckets) days() int64 {
	if b.Length%day != 0 {
		return 0
	}
	return int64(b.Length / day)
}

// firstDay returns the first day of the bucket of a time, in days since 1970.
func (b Buckets) firstDay(ns int64) int64 {
	y, m, d := time.Unix(0, ns).In(b.zone()).Date()
	since, n, first := time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix()/int64(day/time.Second), b.days(), int64(0)
	if n%7 == 0 {
		first = monday
	}
	return floor(since, n, -first)
}

// beginOf returns the first moment of a day of the zone.
func (b Buckets) beginOf(since int64) int64 {
	y, m, d := time.Unix(since*int64(day/time.Second), 0).UTC().Date()
	t := time.Date(y, m, d, 0, 0, 0, 0, b.zone())
	if t.Day() != d { // clocks went forward at midnight
		_, t = t.ZoneBounds()
	}
	return record.ClampTime(t)
}

func (b Buckets) zone() *time.Location {
	if b.Zone == nil {
		return time.UTC
	}
	return b.Zone
}

// clock returns how far the zone's clock is ahead of UTC at a time, and between which
// times it is so.
func (b Buckets) clock(ns int64) (off, from, until int64) {
	from, until = math.MinInt64, math.MaxInt64
	if b.Zone == nil || b.Zone == time.UTC {
		return 0, from, until
	}
	t := time.Unix(0, ns).In(b.Zone)
	_, seconds := t.Zone()
	start, end := t.ZoneBounds()
	if !start.IsZero() {
		from = record.ClampTime(start)
	}
	if !end.IsZero() {
		until = record.ClampTime(end)
	}
	return int64(seconds) * int64(time.Second), from, until
}

// floor returns the greatest n*by-off that is not above x; [math.MinInt64] if that is too
// small.
func floor(x, by, off int64) int64 {
	past := (x%by + off%by) % by
	if past < 0 {
		past += by
	}
	if x < math.MinInt64+past {
		return math.MinInt64
	}
	return x - past
}
