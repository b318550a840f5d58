package newest

import (
	"context"

	"blobtail/query"
	"blobtail/record"
)

// read passes all records of a query to each, with the unflushed ones.
func (r *Reader) read(ctx context.Context, q query.Query, each func(*record.Entry) error) (*Report, error) {
	g, err := r.Gather(ctx, q, Auto)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	plan, err := r.o.Blobs.Plan(ctx, g.Query)
	if err != nil {
		return &g.Report, err
	}
	sum, err := plan.Entries(ctx, each)
	g.Report.Problems = append(g.Report.Problems, sum.Problems...)
	for _, w := range sum.Warnings {
		g.Report.note("%v", w)
	}
	return &g.Report, err
}
