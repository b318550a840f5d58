package metric

import (
	"context"

	"blobtail/logql"
)

// Evaluate compiles a query, has each of its requests filled, and computes the result. It returns
// an error of fill as it is.
func Evaluate(ctx context.Context, expr logql.Metric, grid Grid, limits Limits, fill func(context.Context, *Request) error) (*Result, error) {
	q, err := Compile(expr, grid, limits)
	if err != nil {
		return nil, err
	}
	for _, r := range q.requests {
		if err := fill(ctx, r); err != nil {
			return nil, err
		}
	}
	return q.Result(ctx)
}
