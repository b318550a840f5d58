package tailindex

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"blobtail/record"
)

// Missed reports that rows of a process were written, by their numbers, and have not been
// found for 10 s. They are lost or late, or their records are far older than their
// arrival.
type Missed struct {
	Process string
	Rows    int
	// From and To are the arrivals of the rows before and after the gap.
	From, To time.Time
}

const (
	// shallow is the greatest age of a row's newest record at which every poll finds the
	// row. Rows with ages up to Late are found every deepEvery. If rows turn out to be
	// older, all polls search as far back as necessary.
	shallow   = time.Minute
	deepEvery = 10 * time.Second
	// deepGap is the pause between deep polls while numbers are missing.
	deepGap = 2 * time.Second
	// missing is the time for which a missing number is searched.
	missing = 10 * time.Second
	// pastMidnight is the time for which the table of yesterday is searched: rows are
	// written again and again while the store is unavailable.
	pastMidnight = 15 * time.Minute
)

// Watch follows a service. Only one goroutine may use it.
type Watch struct {
	r       *Reader
	service string
	errs    bool
	after   time.Time

	polled time.Time     // the last complete poll; zero: none yet
	low    int64         // the oldest time that such a poll has covered
	depth  time.Duration // of the other polls
	// seen has the known keys, of those that a poll may list.
	seen      map[string]bool
	processes map[string]*numbers
}

// numbers is the state of the rows of one process.
type numbers struct {
	next    uint64    // the number after the greatest
	arrived time.Time // of the greatest
	gaps    []gap     // in order
}

// gap is the numbers from <= n < to that have not been seen.
type gap struct {
	from, to      uint64
	before, after time.Time // arrivals around it
	noticed       time.Time
}

// Watch returns a watch of the rows of the service that arrive after a time.
func (r *Reader) Watch(service string, errs bool, after time.Time) *Watch {
	return &Watch{r: r, service: service, errs: errs, after: after, depth: shallow,
		seen: map[string]bool{}, processes: map[string]*numbers{}}
}

// Poll returns the rows that were not returned before, in order of arrival, and the
// missing ones. Errors are as with [Reader.Newest]. Unreadable rows are not reported
// again. After any other error nothing is lost: the next poll returns the rows instead.
func (w *Watch) Poll(ctx context.Context) (rows []Row, missed []Missed, err error) {
	now := w.r.o.Now()
	low, tables, deep := w.reach(now)
	scans, rows, err := w.r.read(ctx, w.service, w.errs, tables, func(ctx context.Context, s *scan) error {
		return s.fresh(ctx, s.since(low), w.seen, w.after)
	})
	if scans == nil {
		return nil, nil, err
	}
	w.learn(scans, now, deep)
	if deep {
		w.polled, w.low = now, low
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(a.Arrived.Compare(b.Arrived), strings.Compare(a.Process, b.Process), cmp.Compare(a.Number, b.Number))
	})
	return rows, w.missed(now), err
}

// reach is how far back this poll searches, in which tables, and whether that is the full
// depth.
func (w *Watch) reach(now time.Time) (low int64, tables []string, deep bool) {
	if w.polled.IsZero() {
		return record.ClampTime(w.after.Add(-Late)), w.r.days(w.after), true
	}
	pause := deepEvery
	for _, p := range w.processes {
		if len(p.gaps) > 0 {
			pause = deepGap
		}
	}
	depth, arrived := w.depth, 2*shallow
	if deep = now.Sub(w.polled).Abs() >= pause; deep {
		depth, arrived = Late, pastMidnight
	}
	return max(w.low, record.ClampTime(now.Add(-depth))), w.r.days(now.Add(-arrived)), deep
}

// learn remembers the listed rows.
func (w *Watch) learn(scans []*scan, now time.Time, deep bool) {
	seen := w.seen
	if deep {
		// A later poll lists no key that this one omitted: the ends only move forward.
		seen = map[string]bool{}
	}
	var lag time.Duration // of arrivals behind the newest records of their rows
	var fresh []head
	for _, s := range scans {
		for _, h := range s.heads {
			if h.good && !w.seen[h.Key] {
				fresh = append(fresh, h)
			}
			if h.good && now.Sub(h.Arrived) < shallow {
				ticks := maxTicks - unixTicks - h.inverse
				lag = max(lag, h.Arrived.Sub(time.Unix(ticks/1e7, ticks%1e7*100)))
			}
			seen[h.Key] = true
		}
	}
	if deep {
		w.depth = min(Late, lag+shallow)
	}
	w.seen = seen
	slices.SortFunc(fresh, func(a, b head) int {
		return cmp.Or(strings.Compare(a.Process, b.Process), cmp.Compare(a.Number, b.Number))
	})
	for _, h := range fresh {
		w.count(h, now)
	}
}

// count notes the number of a row, which may close a gap or reveal one.
func (w *Watch) count(h head, now time.Time) {
	p := w.processes[h.Process]
	switch {
	case p == nil:
		// Earlier numbers are unknown.
		w.processes[h.Process] = &numbers{next: h.Number + 1, arrived: h.Arrived}
	case h.Number < p.next:
		p.fill(h.Number)
	default:
		if h.Number > p.next && h.Arrived.After(w.after) {
			p.gaps = append(p.gaps, gap{p.next, h.Number, p.arrived, h.Arrived, now})
		}
		p.next, p.arrived = h.Number+1, h.Arrived
	}
}

// fill removes n from its gap.
func (p *numbers) fill(n uint64) {
	for i, g := range p.gaps {
		if g.from <= n && n < g.to {
			left, right := g, g
			left.to, right.from = n, n+1
			p.gaps = slices.Replace(p.gaps, i, i+1, left, right)
			break
		}
	}
	p.gaps = slices.DeleteFunc(p.gaps, func(g gap) bool { return g.from == g.to })
}

// missed removes and returns the old gaps.
func (w *Watch) missed(now time.Time) []Missed {
	var all []Missed
	for name, p := range w.processes {
		p.gaps = slices.DeleteFunc(p.gaps, func(g gap) bool {
			if now.Sub(g.noticed) < missing {
				return false
			}
			all = append(all, Missed{name, int(min(g.to-g.from, math.MaxInt32)), g.before, g.after})
			return true
		})
	}
	slices.SortFunc(all, func(a, b Missed) int { return a.From.Compare(b.From) })
	return all
}
