package newest

import (
	"context"
	"io"
	"math"

	"blobtail/newest/live"
	"blobtail/tailindex"
)

// Holds reports whether ingesters, or else the tables of the tail, have records of a
// service, whatever their times and levels. An error means that nobody can tell.
func (r *Reader) Holds(ctx context.Context, service string) (bool, error) {
	if r.asks() {
		answer, err := r.ask(ctx, live.Query{Service: askable([]string{service}), From: math.MinInt64, To: math.MaxInt64, Newest: 1}, r.survey(ctx, nil))
		if err == nil {
			defer answer.Close()
			if _, err = answer.Next(); err == nil {
				return true, nil
			}
		}
		if err == io.EOF {
			return false, nil
		}
	}
	rows, err := r.rows(ctx, []string{service}, tablePatience, func(ctx context.Context, service string) ([]tailindex.Row, error) {
		return r.o.Tail.Newest(ctx, service, false, 1)
	})
	return len(rows) > 0, err
}
