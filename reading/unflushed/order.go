package unflushed

import (
	"slices"
	"time"

	"blobtail/record"
)

// order holds records back for a moment. So records of several ingesters come out in the
// order of time although they arrive at different moments. A record that is later than
// that comes out on arrival.
type order struct {
	wait    time.Duration
	pending []pendingEntry // sorted except for records added since
}

type pendingEntry struct {
	record.Entry
	due time.Time
}

// add accepts a record, and keeps its line.
func (o *order) add(e record.Entry, now time.Time) {
	o.pending = append(o.pending, pendingEntry{e, now.Add(o.wait)})
}

// take returns the records that have waited long enough, and all records before them in
// the order of records; with all, everything. A record from a clock that is ahead comes
// when it is due, but releases no record before it: it would do so every time. store is the
// time to compare clocks with.
func (o *order) take(now time.Time, store int64, all bool) []pendingEntry {
	slices.SortStableFunc(o.pending, func(a, b pendingEntry) int { return a.Compare(&b.Entry) })
	bound := len(o.pending)
	for !all && bound > 0 && (o.pending[bound-1].due.After(now) || o.pending[bound-1].Time > store) {
		bound--
	}
	out := slices.Clone(o.pending[:bound])
	clear(o.pending[:bound]) // to free the lines
	o.pending = slices.DeleteFunc(o.pending[bound:], func(e pendingEntry) bool {
		if e.due.After(now) {
			return false
		}
		out = append(out, e)
		return true
	})
	return out
}
