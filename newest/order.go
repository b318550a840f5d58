package newest

import (
	"slices"
	"time"

	"blobtail/record"
)

// order holds records back for a moment, so that those of several ingesters come
// out in the order of time although they come in at different moments. What is
// later than that comes out when it comes.
type order struct {
	wait    time.Duration
	pending []pendingEntry // sorted but for what was added since
	sorted  bool
}

type pendingEntry struct {
	record.Entry
	due time.Time
}

// add takes a record, whose line it keeps.
func (o *order) add(e record.Entry, now time.Time) {
	o.pending = append(o.pending, pendingEntry{e, now.Add(o.wait)})
	o.sorted = false
}

// take gives out what has waited long enough, and all that stands before it in
// the order of records; everything with all. A record of a clock that is ahead
// comes when its turn has come, but hurries nothing else: it would every time. store
// is the time that clocks are held against.
func (o *order) take(now time.Time, store int64, all bool) []pendingEntry {
	if !o.sorted {
		slices.SortStableFunc(o.pending, func(a, b pendingEntry) int { return a.Compare(&b.Entry) })
		o.sorted = true
	}
	if all {
		out := o.pending
		o.pending = nil
		return out
	}
	bound := len(o.pending)
	for bound > 0 && (o.pending[bound-1].due.After(now) || o.pending[bound-1].Time > store) {
		bound--
	}
	out := slices.Clone(o.pending[:bound])
	rest := o.pending[bound:]
	if slices.ContainsFunc(rest, func(e pendingEntry) bool { return !e.due.After(now) }) {
		left := make([]pendingEntry, 0, len(rest))
		for _, e := range rest {
			if e.due.After(now) {
				left = append(left, e)
			} else {
				out = append(out, e)
			}
		}
		rest = left
	}
	clear(o.pending[:bound]) // which holds lines
	o.pending = rest
	return out
}
