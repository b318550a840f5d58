package newest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"blobtail/query"
	"blobtail/record"
	"blobtail/tailindex"
)

const (
	// tablePatience is how long the tables of the tail may take before a read goes
	// on without them.
	tablePatience = 3 * time.Second
	// heartbeats come every 10 s; an ingester from which none came for so long
	// writes no rows of the tail either.
	stale = 25 * time.Second
)

// Tail gives out the newest q.Limit records by calls of emit, oldest first (newest
// first with q.Reverse): those that tables of the tail have, what ingesters hold,
// and blobs. What may be missing is told in the report.
func (r *Reader) Tail(ctx context.Context, q query.Query, emit func(*record.Entry) error) (query.Summary, *Report, error) {
	g := &Gathered{Query: q}
	defer g.Close()
	rows, tableErr := r.newestRows(ctx, &q)
	if ctx.Err() != nil {
		return query.Summary{}, &g.Report, ctx.Err()
	}
	if err := g.addRows("the tail", rows); err != nil {
		return query.Summary{}, &g.Report, err
	}
	if err := r.tailLive(ctx, g); err != nil {
		return query.Summary{}, &g.Report, err
	}
	var span span
	sum, err := r.o.Blobs.NewestEntries(ctx, g.Query, func(e *record.Entry) error {
		span.add(e.Time)
		return emit(e)
	})
	if err != nil {
		return sum, &g.Report, err
	}
	r.judge(ctx, g, rows, tableErr, &span)
	return sum, &g.Report, nil
}

// span is which times were given out.
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

// errorsOnly says whether a query is answered by the rows of errors.
func errorsOnly(q *query.Query) bool {
	const errs = query.LevelSet(1<<record.Error | 1<<record.Critical)
	return q.Filter.Levels != 0 && q.Filter.Levels&^errs == 0
}

// newestRows are the rows that may have some of the newest records.
func (r *Reader) newestRows(ctx context.Context, q *query.Query) ([]serviceRow, error) {
	if r.o.Tail == nil {
		return nil, nil
	}
	services, err := r.o.Blobs.Services(ctx, q.Services)
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

// each asks for the rows of several services at once. What there is comes with the
// first error.
func each(ctx context.Context, services []string, ask func(context.Context, string) ([]tailindex.Row, error)) ([]serviceRow, error) {
	type answer struct {
		rows []tailindex.Row
		err  error
	}
	answers := make([]answer, len(services))
	slots := make(chan struct{}, readers)
	done := make(chan struct{})
	for i, service := range services {
		go func() {
			slots <- struct{}{}
			answers[i].rows, answers[i].err = ask(ctx, service)
			<-slots
			done <- struct{}{}
		}()
	}
	for range services {
		<-done
	}
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

// tailLive asks the ingesters for what may be among the newest: nothing older than
// the oldest of as many records as are asked for.
func (r *Reader) tailLive(ctx context.Context, g *Gathered) error {
	ask := question(&g.Query)
	if floor, ok, err := g.Query.Floor(ctx); err != nil {
		return err
	} else if ok {
		ask.From = max(ask.From, floor)
	}
	err := r.askLive(ctx, ask, g)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil && !errors.Is(err, ErrNobody) && !errors.Is(err, ErrUnknown) { // judge tells of these
		g.Report.problem(err)
	}
	return nil
}

// judge tells what a tail may lack.
func (r *Reader) judge(ctx context.Context, g *Gathered, rows []serviceRow, tableErr error, given *span) {
	var bad *tailindex.RowError
	if errors.As(tableErr, &bad) {
		g.Report.note("some rows of the tail are left out: %v", tableErr)
		tableErr = nil
	}
	if g.Live {
		if tableErr != nil {
			g.Report.note("the tables of the tail cannot be read, so ingesters and blobs were asked instead, which miss nothing: %v", tableErr)
		}
		return
	}
	s := r.standing(ctx)
	s.blame(query.Newest, &g.Report)
	if tableErr != nil || s.err != nil {
		from := "the beginning"
		if given.any {
			from = string(record.AppendTime(nil, given.newest))
		}
		g.Report.problem(fmt.Errorf("the tail is stale from %s on: its tables cannot be read: %w", from, errors.Join(tableErr, s.err)))
		return
	}
	if s.live > 0 && s.now.Sub(s.heard) > stale {
		g.Report.problem(fmt.Errorf("the tail is stale from %s on: no ingester has written to its tables since", utc(s.heard)))
	}
	for _, row := range rows {
		if !s.since.IsZero() && !row.Arrived.Before(s.since) {
			g.Report.gap(row)
		}
	}
	g.Report.trim(given)
}

// trim leaves only the gaps that lie among what was given out.
func (r *Report) trim(given *span) {
	left := r.Gaps[:0]
	for _, gap := range r.Gaps {
		if !given.any || gap.To >= given.oldest {
			left = append(left, gap)
		}
	}
	r.Gaps = left
}
