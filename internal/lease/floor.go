package lease

import (
	"math"
	"time"
)

// A claim is the promise of a row on the unflushed records: the state, and with Holding the floor,
// a time that none of them is before.
//
// The floor bounds the times of records, not their arrival. So a reader can compare it
// with the range of a read. It falls for a record that is older: the row first, then the
// file, then the acknowledgement. It rises when no unflushed record is older: the file
// first, then the row.
type claim struct {
	state State
	floor int64 // Unix nanoseconds
}

// unknown is the floor of a log that may have records of any time.
const unknown = math.MinInt64

// time is the floor as the row and the file have it; zero: none.
func (c claim) time() time.Time {
	if c.state != Holding || c.floor == unknown {
		return time.Time{}
	}
	return time.Unix(0, c.floor).UTC()
}

// The steps of the floor. Records that are younger than prompt need no lower floor than
// the row has anyway. Late records of the last hour share one step, and older ones the
// step of their day. So a backfill costs a few writes.
const (
	prompt = 15 * time.Minute
	delay  = time.Hour
	day    = 24 * time.Hour
	// grain is by how much the floor rises at least, since the file changes with it.
	grain = time.Minute
)

// distances are the times of the first two steps. For an hour after a late record of the
// last hour there is only the second one: most senders of these send more.
func (a *Announcer) distances() (near, far int64) {
	now := a.o.Now()
	near, far = now.Add(-prompt).Truncate(grain).UnixNano(), now.Add(-delay).Truncate(grain).UnixNano()
	if now.Before(a.wide) {
		near = far
	}
	return near, far
}

// step is the floor for records of a time. The caller has the turn.
func (a *Announcer) step(oldest int64) int64 {
	near, far := a.distances()
	switch {
	case oldest >= near:
		return near
	case oldest >= far:
		return far
	case oldest < math.MinInt64+int64(day):
		return unknown
	}
	into := oldest % int64(day)
	if into < 0 {
		into += int64(day)
	}
	return oldest - into
}

// ask notes that a record of a time waits.
func (a *Announcer) ask(oldest int64) {
	a.late.Store(time.Now().UnixNano())
	for {
		was := a.need.Load()
		if oldest >= was || a.need.CompareAndSwap(was, oldest) {
			return
		}
	}
}

// lowered returns the claim that lets in the records that wait. The caller of the claim
// has the turn.
func (a *Announcer) lowered() func() claim {
	oldest := int64(math.MaxInt64)
	return func() claim {
		oldest = min(oldest, a.need.Swap(math.MaxInt64))
		if near, far := a.distances(); oldest < near && oldest >= far {
			a.wide = a.o.Now().Add(delay)
		}
		return claim{Holding, a.under(oldest)}
	}
}

// under is a floor that is under a time and under all unflushed records. The caller has
// the turn.
func (a *Announcer) under(oldest int64) int64 {
	switch {
	case a.o.Earliest == nil:
		return unknown
	case a.holding.Load():
		return min(a.step(oldest), a.floor.Load())
	case !a.o.Replayed():
		return unknown
	}
	if earliest, some := a.o.Earliest(); some {
		oldest = min(oldest, earliest)
	}
	return a.step(oldest)
}

// lull is how long no record may have waited for a lower floor when the floor rises: the
// record may not be in the log yet.
const lull = time.Second

// writes reports whether the last write of the row succeeded. While the row cannot be
// written a higher floor would be of no use, and late records would be refused.
func (a *Announcer) writes() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failed == nil
}

// lifted is the floor that the row may have now. From now on no older record gets into
// the log. The caller has the turn, and entering for writing, and the log is replayed.
func (a *Announcer) lifted() int64 {
	if a.o.Earliest == nil || !a.holding.Load() {
		return a.under(math.MaxInt64)
	}
	floor, earliest := a.floor.Load(), int64(math.MaxInt64)
	if t, some := a.o.Earliest(); some {
		earliest = t
	}
	switch higher := a.step(earliest); {
	case earliest < floor: // as far as a start can tell
		return higher
	case higher > floor && a.writes() && time.Since(time.Unix(0, a.late.Load())) >= lull:
		a.floor.Store(higher)
		return higher
	}
	return floor
}
