package reading

import (
	"bytes"
	"context"
	"time"

	"blobtail/internal/budget"
	"blobtail/logql"
	"blobtail/logql/metric"
	"blobtail/logql/stage"
	"blobtail/record"
)

// Numbers is a question in LogQL that has numbers as its answer.
type Numbers struct {
	Expr logql.Metric
	Grid metric.Grid
	// View is how its stages see records.
	View stage.View
	// Most bounds the series and the points; zero: any number.
	Most metric.Limits
	// Scan reads records even if the indexes of blobs could answer. Tests compare both.
	Scan bool
}

// manyBuckets is how many buckets of a range are counted at most. Beyond that a scan is as good.
const manyBuckets = 100_000

// Numbers answers a question with numbers: from the indexes of blobs where they have them, else
// from records. A mistake in the query is an [*AskError].
func (s *Store) Numbers(ctx context.Context, n Numbers) (*metric.Result, *Outcome, error) {
	q, out, err := s.query(ctx, n, Ask{Range: Always()})
	if err != nil {
		return nil, out, err
	}
	res, err := q.Result(ctx)
	return res, out, err
}

// query is a query that is filled with the records of a question without services.
func (s *Store) query(ctx context.Context, n Numbers, of Ask) (*metric.Query, *Outcome, error) {
	all := &Outcome{}
	n.Most.Budget = budget.Of(ctx)
	n.View.Budget = n.Most.Budget
	q, err := metric.Compile(n.Expr, n.Grid, n.Most)
	if err != nil {
		return nil, all, err
	}
	for _, r := range q.Requests() {
		out, err := s.fill(ctx, &n, r, of)
		if all.Add(out); err != nil {
			return nil, all, err
		}
	}
	return q, all, nil
}

// fill gives a question the samples of one of its aggregations.
func (s *Store) fill(ctx context.Context, n *Numbers, r *metric.Request, a Ask) (*Outcome, error) {
	sampler, err := n.View.Sampler(&r.Agg.Range, r.Wanted())
	if err != nil {
		return &Outcome{}, &AskError{"logql", err}
	}
	pipe, err := n.View.Compile(r.Agg.Range.Log)
	if err != nil {
		return &Outcome{}, &AskError{"logql", err}
	}
	a.Range, a.Here.Sure = Range{From: max(r.From, a.Range.From), To: min(r.To, a.Range.To)}, true
	if a.Range.From >= a.Range.To {
		return &Outcome{}, nil
	}
	a.Select(pipe, false)
	if by, ok := r.Index(); ok && sampler.Selection().All && !n.Scan && (a.Range.To-a.Range.From)/int64(by) <= manyBuckets {
		return s.count(ctx, a, by, r, sampler)
	}
	return s.scan(ctx, a, r, sampler)
}

// count takes the numbers of records from indexes. Services are counted apart if series differ by
// them.
func (s *Store) count(ctx context.Context, a Ask, by time.Duration, r *metric.Request, sampler *stage.Sampler) (*Outcome, error) {
	h, out, err := s.Histogram(ctx, a, Slices{By: by, Apart: func(services []string) bool {
		first := sampler.Series(services[0], record.Info).Key
		for _, service := range services[1:] {
			if sampler.Series(service, record.Info).Key != first {
				return true
			}
		}
		return false
	}})
	if err != nil {
		return out, err
	}
	for i := range h.Buckets {
		b := &h.Buckets[i]
		for l, n := range b.Levels {
			if n == 0 {
				continue
			}
			of := sampler.Series(b.Service, record.Level(l))
			if err := r.AddCount(b.Start, n, of.Key, of.Labels); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

// scan takes samples from records.
func (s *Store) scan(ctx context.Context, a Ask, r *metric.Request, sampler *stage.Sampler) (*Outcome, error) {
	made := budget.Of(ctx)
	return s.Records(ctx, a, func(lines []byte) error {
		for line := range bytes.Lines(lines) {
			if err := made.Err(); err != nil {
				return err
			}
			ns, ok := record.LineTime(line)
			if !ok || !r.Wants(ns) {
				continue
			}
			v, of, ok, err := sampler.Sample(line)
			if err != nil {
				return &AskError{"logql", err}
			}
			if !ok {
				continue
			}
			if err := r.Add(ns, v, of.Key, of.Labels); err != nil {
				return err
			}
		}
		return nil
	})
}
