package unflushed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"blobtail/reading/blobs"
	"blobtail/record"
	"blobtail/tailindex"
)

const (
	// tablePatience is how long the tables of the tail may take before a read goes
	// on without them.
	tablePatience = 3 * time.Second
	// stale is how old the last heartbeat may be. Heartbeats come every 10 s. An ingester
	// without one for so long writes no rows of the tail either.
	stale = 25 * time.Second
)

// Tail passes the newest q.Limit records to emit, oldest first (newest first with
// q.Reverse); without a limit, all of them. They come from ingesters and blobs, and from
// tables of the tail unless all ingesters answered. The report names records that may be
// missing, and the summary those services that are absent, as [Gathered.Settle] decides.
func (r *Reader) Tail(ctx context.Context, q blobs.Query, emit func(*record.Entry) error) (blobs.Summary, *Report, error) {
	sum, report, _, err := r.tail(ctx, q, emit)
	return sum, report, err
}

// tail is Tail. It also returns the ingesters by which it was judged; nil: none, after an error.
func (r *Reader) tail(ctx context.Context, q blobs.Query, emit func(*record.Entry) error) (sum blobs.Summary, report *Report, known *survey, err error) {
	rows := (*Gathered).addWritten
	if q.Limit > 0 {
		rows = (*Gathered).newest
	}
	g, err := r.gather(ctx, q, Auto, rows)
	if err != nil {
		return sum, &Report{}, nil, err
	}
	defer g.Close()
	oldest, newest := int64(math.MaxInt64), int64(math.MinInt64)
	if absent := q.Absent; absent != nil {
		g.Query.Absent = func(names []*blobs.NoServiceError) {
			told := blobs.Summary{Absent: slices.Clone(names)}
			_ = g.Settle(ctx, &told, nil)
			absent(told.Absent)
		}
	}
	sum, err = r.o.Blobs.NewestEntries(ctx, g.Query, func(e *record.Entry) error {
		oldest, newest = min(oldest, e.Time), max(newest, e.Time)
		return emit(e)
	})
	if err == nil && q.Limit > 0 && !g.Live {
		g.judge(oldest, newest)
	}
	err = g.Settle(ctx, &sum, err)
	return sum, &g.Report, g.known, err
}

// manyServices is the number of services from which on a tail reads only the rows that may have
// unflushed records.
const manyServices = 1000

// newest adds the rows with the newest records. If these do not suffice, it adds the
// other rows that may have unflushed records.
func (g *Gathered) newest(ctx context.Context) error {
	q := &g.Query
	k := g.known.wait()
	since := k.writtenSince(q)
	services, err := g.r.services(ctx, q.Services)
	if err == nil && len(services) > manyServices && !k.dark && k.unlisted() == nil {
		// The other records are in blobs, and two looks at all services take long.
		if since.IsZero() {
			return nil
		}
		return g.addSince(ctx, since, tablePatience)
	}
	rows, failed := g.r.rows(ctx, q.Services, tablePatience, func(ctx context.Context, service string) ([]tailindex.Row, error) {
		return g.r.o.Tail.Newest(ctx, service, errorsOnly(q), min(q.Limit, tailindex.MaxLines))
	})
	expired, err := g.addRows(ctx, rows, failed)
	if err != nil || failed != nil {
		return err
	}
	holes := slices.ContainsFunc(g.rows, func(row tailindex.Row) bool { return !row.OldestOmitted() })
	if since.IsZero() || q.Limit <= tailindex.MaxLines && rowsTell(q) && !expired && !holes {
		return nil
	}
	return g.addSince(ctx, since, 0)
}

// errorsOnly reports whether the rows of errors answer a query.
func errorsOnly(q *blobs.Query) bool {
	return q.Filter.Levels != 0 && q.Filter.Levels&^errorLevels == 0
}

const errorLevels = blobs.LevelSet(1<<record.Error | 1<<record.Critical)

// judge reports the records that a tail may lack. It has emitted records from oldest to
// newest, or none if newest is less.
func (g *Gathered) judge(oldest, newest int64) {
	report, tableErr := &g.Report, g.tableErr
	from := "the beginning"
	if oldest <= newest {
		from = utc(time.Unix(0, newest))
	}
	if bad := (*tailindex.RowError)(nil); errors.As(tableErr, &bad) {
		report.problem(fmt.Errorf("some rows of the tail are left out: %w", tableErr))
		tableErr = nil
	}
	k := g.known.wait()
	if k.dark {
		return // a problem says it
	}
	if err := errors.Join(tableErr, k.unlisted()); err != nil {
		report.problem(fmt.Errorf("the tail is stale from %s on: its tables cannot be read: %w", from, err))
		return
	}
	var heard []time.Time
	for _, i := range k.rows {
		if i.Live(k.now) {
			heard = append(heard, i.At)
		}
	}
	running := len(heard) > 0
	since := k.unflushed()
	for _, row := range g.rows {
		heard = append(heard, row.Arrived) // after an outage rows come before heartbeats
		if !since.IsZero() && !row.Arrived.Before(since) {
			report.gap(row, &g.Query)
		}
	}
	if last := slices.MaxFunc(append(heard, time.Time{}), time.Time.Compare); running && k.now.Sub(last) > stale {
		report.problem(fmt.Errorf("the tail is stale from %s on: no ingester has written to its tables since", utc(last)))
	}
	report.Gaps = slices.DeleteFunc(report.Gaps, func(gap Gap) bool { return oldest <= newest && gap.To < oldest })
}
