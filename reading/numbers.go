package reading

import (
	"bytes"
	"context"
	"errors"
	"time"

	"blobtail/internal/budget"
	"blobtail/logql"
	"blobtail/logql/metric"
	"blobtail/logql/stage"
	"blobtail/reading/blobs"
	"blobtail/record"
)

// Numbers is a question in LogQL that has numbers as its answer.
type Numbers struct {
	Expr logql.Metric `json:"-"`
	Text string       // of Expr; "": no other process is asked
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
	all := &Outcome{}
	n.Most.Budget = budget.Of(ctx)
	n.View.Budget = n.Most.Budget
	q, err := metric.Compile(n.Expr, n.Grid, n.Most)
	if err != nil {
		return nil, all, err
	}
	for i := range q.Requests() {
		out, err := s.fill(ctx, &n, q, i)
		if all.Add(out); err != nil {
			return nil, all, err
		}
	}
	res, err := q.Result(ctx)
	return res, all, err
}

// fill gives a question the samples of one of its aggregations.
func (s *Store) fill(ctx context.Context, n *Numbers, q *metric.Query, request int) (*Outcome, error) {
	r := q.Requests()[request]
	sampler, err := n.View.Sampler(&r.Agg.Range, r.Wanted())
	if err != nil {
		return &Outcome{}, &AskError{"logql", err}
	}
	a := Ask{Range: Range{From: r.From, To: r.To}, Here: Here{Sure: true}}
	if err := n.choose(&a, r); err != nil {
		return &Outcome{}, err
	}
	if by, ok := r.Index(); ok && sampler.Selection().All && !n.Scan && (r.To-r.From)/int64(by) <= manyBuckets {
		return s.count(ctx, a, by, r, sampler)
	}
	return s.run(ctx, a, func(ctx context.Context, reader *blobs.Reader, of blobs.Query) (blobs.Summary, error) {
		plan, err := a.plan(ctx, reader, of)
		if err != nil {
			return blobs.Summary{}, err
		}
		return s.joined(ctx, &a, plan, Joint{Numbers: n, Request: request}, &Part{request: r, sampler: sampler})
	})
}

// request compiles the text, and returns one of the requests of the query.
func (n Numbers) request(number int, made *budget.Budget) (*metric.Request, *stage.Sampler, error) {
	e, err := logql.Parse(n.Text)
	if err != nil {
		return nil, nil, &AskError{"logql", err}
	}
	n.View.Budget, n.Most.Budget = made, made
	var all []*metric.Request
	if of, ok := e.(logql.Metric); ok {
		q, err := metric.Compile(of, n.Grid, n.Most)
		if err != nil {
			return nil, nil, mistaken(err)
		}
		all = q.Requests()
	}
	if number < 0 || number >= len(all) || !all[number].Joins() {
		return nil, nil, &AskError{"joint", errors.New("the query has no such aggregation")}
	}
	sampler, err := n.View.Sampler(&all[number].Agg.Range, all[number].Wanted())
	return all[number], sampler, err
}

// choose has the records of a request chosen.
func (n *Numbers) choose(a *Ask, r *metric.Request) error {
	pipe, err := n.View.Compile(r.Agg.Range.Log)
	if err != nil {
		return &AskError{"logql", err}
	}
	a.Select(pipe, false)
	return nil
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

// sampled takes samples from records.
func sampled(ctx context.Context, r *metric.Request, sampler *stage.Sampler) func(lines []byte) error {
	made := budget.Of(ctx)
	return func(lines []byte) error {
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
	}
}
