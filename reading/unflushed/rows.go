package unflushed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"blobtail/internal/units"
	"blobtail/reading/blobs"
	"blobtail/tailindex"
)

const (
	// handover is how long before its start a follower looks for rows. Rows with records
	// beyond the first output were written since.
	handover = 5 * time.Second
	// refreshEvery is how often services that match a glob are listed.
	refreshEvery = 10 * time.Second
	// gapsEvery is how often a follower with a filter gets reports of gaps. A gap may
	// have no record that matches.
	gapsEvery = 10 * time.Second
)

// lookRows asks the tables of the tail for new rows.
func (f *follower) lookRows(ctx context.Context) error {
	if f.company.wait().copied != nil {
		return &blobs.BadQueryError{Err: errors.New("there is nothing to follow: no ingester writes to this store, which is a copy")}
	}
	if f.r.o.Tail == nil {
		return errors.New("there is nothing to follow: no ingester can be asked, and the store has no tables")
	}
	if err := f.refresh(ctx); err != nil {
		return err
	}
	failed := f.pollRows(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if failed != nil {
		failed = fmt.Errorf("the tail is stale from %s on: %w", utc(f.goodRows), failed)
	} else {
		f.goodRows = f.now()
	}
	f.say(tablesOver, failed)
	return nil
}

// pollRows polls all watches, some at a time, and handles their rows.
func (f *follower) pollRows(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*(tablePatience+time.Duration(len(f.watches))*servicePatience))
	defer cancel()
	var handling sync.Mutex
	var all []tailindex.Row
	failed := each(slices.Collect(maps.Keys(f.watches)), func(_ int, service string) error {
		rows, missed, err := f.watches[service].Poll(ctx)
		handling.Lock()
		defer handling.Unlock()
		all = append(all, rows...)
		for _, m := range missed {
			f.problem(fmt.Errorf("%s of ingester process %s to the tail of %s between %s and %s %s missing here, and will be in blobs: logquery %s --from %s",
				units.Count(m.Rows, "write"), m.Process, service, utc(m.From), utc(m.To), units.Word(m.Rows, "is", "are"), service, utc(m.From)))
		}
		if bad := (*tailindex.RowError)(nil); errors.As(err, &bad) { // then it is the only failure
			f.problem(fmt.Errorf("some rows of the tail are left out; blobs will have their records: %w", err))
			return nil
		}
		return err
	})
	f.hidden.rows(all)
	now := time.Now()
	for _, row := range all {
		f.takeRow(row, now)
	}
	return failed
}

// refresh begins to watch services that are new matches of a glob.
func (f *follower) refresh(ctx context.Context) error {
	if time.Since(f.refreshed) < refreshEvery {
		return nil
	}
	services, err := f.r.services(ctx, f.o.Query.Services)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f.say(servicesOver, err)
	for _, s := range services {
		if f.watches[s] == nil {
			f.watches[s] = f.r.o.Tail.Watch(s, errorsOnly(&f.o.Query), f.started.Add(-handover))
		}
	}
	f.refreshed = time.Now()
	return nil
}

func (f *follower) takeRow(row tailindex.Row, now time.Time) {
	early := row.Arrived.Before(f.started)
	store := f.now()
	for i := range row.Entries {
		e := &row.Entries[i]
		if early && e.Time <= f.floor || !f.match.Line(e.Line) || !f.seen.add(e, store) {
			continue
		}
		f.pending().add(*e, now)
	}
	f.tellUnjudged()
	if g, ok := gapOf(row, &f.o.Query); ok && !early {
		f.addGap(g, now)
	}
}

// addGap merges a gap with those of its service. They are reported after the records
// around them have been emitted.
func (f *follower) addGap(g Gap, now time.Time) {
	if d, ok := f.gaps[g.Service]; ok {
		g.Records += d.Records
		g.From, g.To = min(d.From, g.From), max(d.To, g.To)
	} else if len(f.gaps) == 0 {
		f.gapsDue = now.Add(f.order.wait)
		if g.AtMost {
			f.gapsDue = now.Add(gapsEvery)
		}
	}
	f.gaps[g.Service] = g
}

// gapOf is the gap of the records that a row omits.
func gapOf(row tailindex.Row, q *blobs.Query) (Gap, bool) {
	if row.Omitted == 0 {
		return Gap{}, false
	}
	g := Gap{Service: row.Service, Records: row.Omitted, From: row.First, To: row.Last, AtMost: !rowsTell(q)}
	if row.OldestOmitted() {
		g.To = row.Entries[0].Time
	}
	return g, true
}

// rowsTell reports whether a query matches all records of a row.
func rowsTell(q *blobs.Query) bool {
	f := &q.Filter
	return !f.ReadsLines() && (f.Levels == 0 || f.Levels == errorLevels)
}
