package newest

import (
	"context"

	"blobtail/query"
	"blobtail/record"
)

// read passes the records of a query to each, with the unflushed ones.
func (r *Reader) read(ctx context.Context, q query.Query, each func(*record.Entry) error) (report *Report, err error) {
	var sum query.Summary
	if q.Limit > 0 {
		sum, report, err = r.Tail(ctx, q, each)
	} else {
		var g *Gathered
		if g, err = r.Gather(ctx, q, Auto); err != nil {
			return &Report{}, err
		}
		defer g.Close()
		report = &g.Report
		sum, err = r.o.Blobs.NewestEntries(ctx, g.Query, each)
	}
	report.Problems = append(report.Problems, sum.Problems...)
	for _, w := range sum.Warnings {
		report.note("%v", w)
	}
	return report, err
}
