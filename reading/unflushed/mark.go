package unflushed

import (
	"maps"
	"time"

	"blobtail/reading/unflushed/live"
)

// markEvery is how often a follower gives a cursor at most, and restEvery how often while it
// has no records.
const (
	markEvery = time.Second
	restEvery = 10 * time.Second
)

// mark is a cursor in the making. Records wait a moment before they are emitted, so at each
// moment the logs have been read further than records were emitted. A cut divides the records:
// those before it are emitted first, and then the cursor is exact. The later ones wait
// meanwhile. Nearly always that delays none, because they came later.
type mark struct {
	cut       bool
	positions live.Positions // at the cut
	later     order          // the records that came behind it
	at        time.Time      // of the last cursor
	moved     bool           // records were emitted since
	last      string         // its text
}

// pending is where new records wait.
func (f *follower) pending() *order {
	if f.mark.cut {
		return &f.mark.later
	}
	return &f.order
}

// cut begins a mark if one is due, behind the records that were read so far.
func (f *follower) cut() {
	m := &f.mark
	every := restEvery
	if m.moved || m.at.IsZero() {
		every = markEvery
	}
	if f.o.Mark == nil || m.cut || time.Since(m.at) < every {
		return
	}
	if f.r.asks() && (!f.exact || !f.debt.from.IsZero() || len(f.positions) == 0) {
		return
	}
	m.cut, m.positions = true, maps.Clone(f.positions)
}

// marked gives the cursor if all records before the cut have been emitted. Then those behind
// it are next, and it returns true.
func (f *follower) marked() (bool, error) {
	m := &f.mark
	if !m.cut || len(f.order.pending) > 0 {
		return false, nil
	}
	f.order, m.later = m.later, order{wait: f.order.wait}
	m.cut, m.moved, m.at = false, false, time.Now()
	c := Cursor{Last: f.cursor.Last, Positions: m.positions}
	if c.Last.Time == 0 {
		c.Last.Time = f.floor
	}
	if text := c.String(); text != m.last {
		m.last = text
		return true, f.o.Mark(c)
	}
	return true, nil
}
