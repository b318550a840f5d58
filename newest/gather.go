package newest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"blobtail/live"
	"blobtail/query"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/tailindex"
)

// Gathered is a query completed by what is in no blob.
type Gathered struct {
	Query  query.Query
	Report Report
	// Live says that ingesters were asked and that all of them answered.
	Live bool
}

// Close gives up what was gathered.
func (g *Gathered) Close() {
	for _, l := range g.Query.Loose {
		l.Close()
	}
}

// Gather finds what blobs do not have yet of a query, and adds it to the query. It
// must come before blobs are listed. What cannot be had is told in the report; an
// error is returned only where nothing can be expected, as when ctx ends.
func (r *Reader) Gather(ctx context.Context, q query.Query, mode Mode) (*Gathered, error) {
	g := &Gathered{Query: q}
	if mode == Off {
		return g, nil
	}
	err := r.askLive(ctx, question(&q), g)
	if ctx.Err() != nil {
		g.Close()
		return nil, ctx.Err()
	}
	switch {
	case errors.Is(err, ErrNobody):
		s := r.standing(ctx)
		s.blame(q.Range.To, &g.Report)
		return g, nil
	case errors.Is(err, ErrUnknown):
		g.Report.note("%v", err)
	case err != nil:
		g.Report.problem(err)
	case r.o.Live != nil:
		return g, nil
	}
	if mode == Only {
		if r.o.Live == nil {
			g.Report.problem(errors.New("no ingester to ask for live records is known; set BLOBTAIL_LIVE to the URL of one"))
		}
		return g, nil
	}
	if err := r.addWritten(ctx, g, err == nil); err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

// askLive asks the ingesters and adds their records to the query. An answer that
// lacks some is a problem, and is added as far as it came; an error means that
// there is none.
func (r *Reader) askLive(ctx context.Context, question live.Query, g *Gathered) error {
	if r.o.Live == nil {
		return nil
	}
	answer, err := r.o.Live.Ask(ctx, question)
	if err != nil {
		return err
	}
	defer answer.Close()
	loose := query.NewLoose("live records")
	g.Query.Loose = append(g.Query.Loose, loose)
	for {
		e, err := answer.Next()
		if err == io.EOF {
			g.Live = true
			break
		}
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			g.Report.problem(err)
			break
		}
		if err := loose.Add(&e); err != nil {
			return err
		}
	}
	return loose.Seal()
}

// addWritten adds rows of the tail that were written since the oldest record that
// may be in no blob. say tells that live records could be had.
func (r *Reader) addWritten(ctx context.Context, g *Gathered, say bool) error {
	s := r.standing(ctx)
	if s.err != nil {
		g.Report.note("whether there are records that are in no blob yet is not known: %v", s.err)
		return ctx.Err()
	}
	s.blame(g.Query.Range.To, &g.Report)
	if r.o.Tail == nil || s.since.IsZero() || g.Query.Range.To != query.Newest && g.Query.Range.To <= s.since.Add(-tailindex.Late).UnixNano() {
		return nil
	}
	services, err := r.o.Blobs.Services(ctx, g.Query.Services)
	if err != nil {
		return err
	}
	rows, err := r.written(ctx, services, s.since)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		g.Report.note("the tables of the newest records cannot be read, so records since %s may be missing: %v", utc(s.since), err)
	} else if say {
		g.Report.note("no ingester to ask is known (BLOBTAIL_LIVE), so of what came since %s only the newest of each second are here", utc(s.since))
	}
	for _, row := range rows {
		g.Report.gap(row)
	}
	return g.addRows("the tail", rows)
}

// written reads the rows of services that were written since a time.
func (r *Reader) written(ctx context.Context, services []string, since time.Time) ([]serviceRow, error) {
	return each(ctx, services, func(ctx context.Context, service string) ([]tailindex.Row, error) {
		return r.o.Tail.Written(ctx, service, false, since)
	})
}

// gap tells of what a row has no lines of.
func (r *Report) gap(row serviceRow) {
	if row.Omitted > 0 {
		to := row.Last
		if len(row.Entries) > 0 {
			to = row.Entries[0].Time
		}
		r.Gaps = append(r.Gaps, Gap{Service: row.service, Records: row.Omitted, From: row.First, To: to})
	}
}

// addRows adds the records of rows to the query.
func (g *Gathered) addRows(name string, rows []serviceRow) error {
	if len(rows) == 0 {
		return nil
	}
	loose := query.NewLoose(name)
	g.Query.Loose = append(g.Query.Loose, loose)
	for i := range rows {
		for j := range rows[i].Entries {
			if err := loose.Add(&rows[i].Entries[j]); err != nil {
				return fmt.Errorf("take in rows of the tail: %w", err)
			}
		}
	}
	return loose.Seal()
}

// readers is how many services are asked for at once.
const readers = 8

// absent tells that there is no table, which is no failure: nothing was written.
func absent(err error) bool { return errors.Is(err, storage.ErrNotExist) }

func utc(t time.Time) string { return string(record.AppendTime(nil, t.UnixNano())) }
