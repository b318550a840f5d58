package newest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"blobtail/newest/live"
	"blobtail/query"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/tailindex"
)

// Gathered is a query completed by unflushed records.
type Gathered struct {
	Query  query.Query
	Report Report
	// Live says that all ingesters that may hold records have answered.
	Live bool

	looking *look
	hidden  hidden // set once it is known
	known   *survey
	heard   heard
}

// Close releases the gathered records.
func (g *Gathered) Close() {
	for _, u := range g.Query.Unflushed {
		u.Close()
	}
}

// Gather finds the unflushed records of a query and adds them to the query. Call it
// before blobs are listed. It reports records that it cannot get. It returns an error
// only if no result is possible, as when ctx ends.
func (r *Reader) Gather(ctx context.Context, q query.Query, mode Mode) (*Gathered, error) {
	g := &Gathered{Query: q}
	if mode == Off {
		return g, nil
	}
	g.looking, g.known = r.look(ctx, q.Services), r.survey(ctx)
	err := r.askLive(ctx, question(&q), g, mode)
	kerr := g.know(mode)
	if ctx.Err() != nil {
		kerr = ctx.Err()
	}
	if kerr != nil {
		g.Close()
		return nil, kerr
	}
	if r.settle(ctx, g, mode, err) {
		return g, ctx.Err()
	}
	if err := r.addWritten(ctx, g, g.heard.any); err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

// settle reports the records of ingesters that a read lacks, after asking them ended with
// this error. It returns true if rows of the tail have nothing to add.
func (r *Reader) settle(ctx context.Context, g *Gathered, mode Mode, err error) (done bool) {
	known := g.known.wait()
	if r.o.Unasked {
		return false
	}
	g.heard.err = err
	nobody := errors.Is(err, ErrNobody)
	switch {
	case !r.asks() && mode == Only:
		g.Report.problem(errors.New("no ingester to ask for live records is known; set BLOBTAIL_LIVE to the URL of one"))
	case !r.asks():
		g.Report.note("no ingester to ask is known (BLOBTAIL_LIVE): of the records that are in no blob yet only those are here that the tables of the tail have, the newest %d of each second and none that came late", tailindex.MaxLines)
	case nobody && mode == Only:
		g.Report.note("%v, so there are no live records", err)
	}
	if err != nil && r.o.Live != nil {
		g.Report.problem(err) // the user named this ingester, so its failure is always a problem
		g.heard.err = nil
	}
	whole := r.verify(ctx, &g.Query, known, &g.heard, &g.Report)
	g.Live = g.Live && whole
	return g.Live || mode == Only
}

// askLive asks the ingesters and adds their records to the query. An incomplete answer is
// a problem, and its records are added as far as they came. An error means that there is
// no answer.
func (r *Reader) askLive(ctx context.Context, question live.Query, g *Gathered, mode Mode) error {
	if !r.asks() {
		return nil
	}
	answer, err := r.ask(ctx, question, g.known)
	if err != nil {
		return err
	}
	defer answer.Close()
	if err := g.know(mode); err != nil {
		return err
	}
	g.heard = hear(answer)
	records := query.NewUnflushed("live records")
	whole, expired, err := fill(records, answer, g)
	if err == nil && expired && question.Newest > 0 {
		// Expired records took the places of others, which were not sent.
		records.Close()
		question.Newest = 0
		return r.askLive(ctx, question, g, mode)
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		records.Close()
		return err
	}
	g.Query.Unflushed, g.Live = append(g.Query.Unflushed, records), whole
	return nil
}

// fill adds all records of an answer that have not expired. An incomplete answer is a
// problem; an error means that no more records can be added.
func fill(records *query.Unflushed, answer *live.Answer, g *Gathered) (whole, expired bool, err error) {
	for {
		e, err := answer.Next()
		switch {
		case err == io.EOF:
			return true, expired, nil
		case err != nil:
			g.Report.problem(err)
			for id := range missingOf(err) {
				g.heard.told[id] = true
			}
			return false, expired, nil
		case g.hidden.entry(&e):
			expired = true
			continue
		}
		if err := records.Add(&e); err != nil {
			return false, expired, err
		}
	}
}

// addWritten adds the rows of the tail since the oldest record that may be unflushed.
// partly says that some ingesters answered.
func (r *Reader) addWritten(ctx context.Context, g *Gathered, partly bool) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s := g.known.wait().standing()
	if s.err != nil {
		g.Report.note("whether there are records that are in no blob yet is not known: %v", s.err)
		return nil
	}
	to := g.Query.Range.To
	if r.o.Tail == nil || s.since.IsZero() || to != query.Newest && to <= s.since.Add(-tailindex.Late).UnixNano() {
		return nil
	}
	since := s.writtenSince(&g.Query)
	rows, err := r.written(ctx, &g.Query, since)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	g.hidden.rows(rows)
	if err != nil {
		g.Report.note("the tables of the newest records cannot be read, so records since %s may be missing: %v", utc(since), err)
	}
	for _, row := range rows {
		if !partly { // otherwise it would report gaps that live records fill
			g.Report.gap(row, &g.Query)
		}
	}
	return g.addRows("the tail", rows)
}

// written reads the rows since a time.
func (r *Reader) written(ctx context.Context, q *query.Query, since time.Time) ([]serviceRow, error) {
	services, err := r.services(ctx, q.Services)
	if err != nil {
		return nil, err
	}
	return each(ctx, services, func(ctx context.Context, service string) ([]tailindex.Row, error) {
		return r.o.Tail.Written(ctx, service, errorsOnly(q), since)
	})
}

// services resolves names and globs. If the store does not exist yet, globs match
// nothing, and only the plain names stay.
func (r *Reader) services(ctx context.Context, names []string) ([]string, error) {
	services, err := r.o.Blobs.Services(ctx, names)
	if absent(err) {
		services, err = r.o.Blobs.Services(ctx, slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			return strings.ContainsAny(name, `*?[\`)
		}))
	}
	return services, err
}

// gap reports the records that a row omits, if any may be in the range.
func (r *Report) gap(row serviceRow, q *query.Query) {
	g, ok := gapOf(row, q)
	if !ok || g.To < q.Range.From || q.Range.To != query.Newest && g.From >= q.Range.To {
		return
	}
	g.AtMost = g.AtMost || g.From < q.Range.From || q.Range.To != query.Newest && g.To >= q.Range.To
	r.Gaps = append(r.Gaps, g)
}

// addRows adds the records of rows to the query.
func (g *Gathered) addRows(name string, rows []serviceRow) error {
	if len(rows) == 0 {
		return nil
	}
	var entries []*record.Entry
	for i := range rows {
		for j := range rows[i].Entries {
			entries = append(entries, &rows[i].Entries[j])
		}
	}
	slices.SortFunc(entries, (*record.Entry).Compare)
	records := query.NewUnflushed(name)
	g.Query.Unflushed = append(g.Query.Unflushed, records)
	for _, e := range entries {
		if err := records.Add(e); err != nil {
			return fmt.Errorf("take in rows of the tail: %w", err)
		}
	}
	return nil
}

// readers is how many services are asked for concurrently.
const readers = 8

// absent reports whether a table is missing. That is no failure: it was never written.
func absent(err error) bool { return errors.Is(err, storage.ErrNotExist) }

func utc(t time.Time) string { return string(record.AppendTime(nil, t.UnixNano())) }
