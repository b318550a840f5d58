package newest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"blobtail/query"
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
// q.Reverse). They come from tables of the tail, from ingesters and from blobs. The
// report names records that may be missing.
func (r *Reader) Tail(ctx context.Context, q query.Query, emit func(*record.Entry) error) (query.Summary, *Report, error) {
	g := &Gathered{Query: q}
	defer g.Close()
	t := &tail{r: r, g: g}
	if err := t.gather(ctx); err != nil {
		return query.Summary{}, &g.Report, err
	}
	sum, err := r.o.Blobs.NewestEntries(ctx, g.Query, func(e *record.Entry) error {
		t.given.add(e.Time)
		return emit(e)
	})
	if err != nil {
		return sum, &g.Report, err
	}
	t.judge()
	return sum, &g.Report, nil
}

// tail is one call of Tail.
type tail struct {
	r        *Reader
	g        *Gathered
	rows     []serviceRow
	tableErr error
	expired  bool     // some records of rows have expired
	standing standing // set if no answer covers all ingesters
	given    span
}

// gather finds the unflushed records.
func (t *tail) gather(ctx context.Context) error {
	t.g.looking, t.g.known = t.r.look(ctx, t.g.Query.Services), t.r.survey(ctx)
	t.rows, t.tableErr = t.r.newestRows(ctx, &t.g.Query)
	if err := t.g.know(Auto); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	t.expired = t.g.hidden.rows(t.rows)
	if err := t.g.addRows("the tail", t.rows); err != nil {
		return err
	}
	if err := t.askLive(ctx); err != nil || t.g.Live {
		return err
	}
	t.standing = t.g.known.wait().standing()
	return t.addWritten(ctx)
}

// addWritten adds the other rows that may have unflushed records, if the rows with the
// newest records do not suffice.
func (t *tail) addWritten(ctx context.Context) error {
	q := &t.g.Query
	holes := slices.ContainsFunc(t.rows, func(row serviceRow) bool { return !row.OldestOmitted() })
	if t.r.o.Tail == nil || t.tableErr != nil || t.standing.since.IsZero() || q.Limit <= tailindex.MaxLines && rowsTell(q) && !t.expired && !holes {
		return nil
	}
	rows, err := t.r.written(ctx, q, t.standing.writtenSince(q))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	t.tableErr = err
	t.g.hidden.rows(rows)
	known := map[string]bool{}
	for i := range t.rows {
		known[t.rows[i].service+" "+t.rows[i].Key] = true
	}
	rows = slices.DeleteFunc(rows, func(row serviceRow) bool { return known[row.service+" "+row.Key] })
	t.rows = append(t.rows, rows...)
	return t.g.addRows("the tail", rows)
}

// span is the oldest and the newest time emitted.
type span struct {
	any            bool
	oldest, newest int64
}

func (s *span) add(t int64) {
	if !s.any {
		s.any, s.oldest, s.newest = true, t, t
	}
	s.oldest, s.newest = min(s.oldest, t), max(s.newest, t)
}

// serviceRow is a row with its service.
type serviceRow struct {
	service string
	tailindex.Row
}

// errorsOnly reports whether the rows of errors answer a query.
func errorsOnly(q *query.Query) bool {
	return q.Filter.Levels != 0 && q.Filter.Levels&^errorLevels == 0
}

const errorLevels = query.LevelSet(1<<record.Error | 1<<record.Critical)

// newestRows are the rows that may have some of the newest records.
func (r *Reader) newestRows(ctx context.Context, q *query.Query) ([]serviceRow, error) {
	if r.o.Tail == nil {
		return nil, nil
	}
	services, err := r.services(ctx, q.Services)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, tablePatience)
	defer cancel()
	n := min(q.Limit, tailindex.MaxLines)
	return each(ctx, services, func(ctx context.Context, service string) ([]tailindex.Row, error) {
		return r.o.Tail.Newest(ctx, service, errorsOnly(q), n)
	})
}

// each asks for the rows of several services concurrently. It returns the rows it got
// with the first error.
func each(ctx context.Context, services []string, ask func(context.Context, string) ([]tailindex.Row, error)) ([]serviceRow, error) {
	type answer struct {
		rows []tailindex.Row
		err  error
	}
	answers := make([]answer, len(services))
	var asking errgroup.Group
	asking.SetLimit(readers)
	for i, service := range services {
		asking.Go(func() error {
			answers[i].rows, answers[i].err = ask(ctx, service)
			return nil
		})
	}
	asking.Wait()
	var rows []serviceRow
	var failed error
	for i, a := range answers {
		for _, row := range a.rows {
			rows = append(rows, serviceRow{services[i], row})
		}
		if a.err != nil && !absent(a.err) && failed == nil {
			failed = a.err
		}
	}
	return rows, failed
}

// askLive asks the ingesters for records that may be among the newest. It asks for none
// older than the oldest of q.Limit records already found.
func (t *tail) askLive(ctx context.Context) error {
	ask := question(&t.g.Query)
	if floor, ok, err := t.g.Query.Floor(ctx); err != nil {
		return err
	} else if ok {
		ask.From = max(ask.From, floor)
	}
	err := t.r.askLive(ctx, ask, t.g, Auto)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	t.r.settle(ctx, t.g, Auto, err)
	return ctx.Err()
}

// judge reports the records that a tail may lack.
func (t *tail) judge() {
	report, s, tableErr := &t.g.Report, &t.standing, t.tableErr
	var bad *tailindex.RowError
	leftOut := errors.As(tableErr, &bad)
	from := "the beginning"
	if t.given.any {
		from = utc(time.Unix(0, t.given.newest))
	}
	if t.g.Live {
		switch {
		case leftOut:
			report.note("some rows of the tail are left out; ingesters and blobs have their records: %v", tableErr)
		case tableErr != nil:
			report.note("the tail is stale from %s on, for its tables cannot be read; ingesters and blobs were asked instead, which miss nothing: %v", from, tableErr)
		}
		return
	}
	if leftOut {
		report.problem(fmt.Errorf("some rows of the tail are left out: %w", tableErr))
		tableErr = nil
	}
	if tableErr != nil || s.err != nil {
		report.problem(fmt.Errorf("the tail is stale from %s on: its tables cannot be read: %w", from, errors.Join(tableErr, s.err)))
		return
	}
	heard := s.heard
	for _, row := range t.rows { // after an outage rows come before heartbeats
		if row.Arrived.After(heard) {
			heard = row.Arrived
		}
	}
	if s.live > 0 && s.now.Sub(heard) > stale {
		report.problem(fmt.Errorf("the tail is stale from %s on: no ingester has written to its tables since", utc(heard)))
	}
	for _, row := range t.rows {
		if !s.since.IsZero() && !row.Arrived.Before(s.since) {
			report.gap(row, &t.g.Query)
		}
	}
	report.trim(&t.given)
}

// trim leaves only the gaps among the emitted times.
func (r *Report) trim(given *span) {
	left := r.Gaps[:0]
	for _, gap := range r.Gaps {
		if !given.any || gap.To >= given.oldest {
			left = append(left, gap)
		}
	}
	r.Gaps = left
}
