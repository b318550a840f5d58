// Package metric evaluates queries with numbers as their results: aggregations over time and over
// series, and operators.
//
// The package reads no records. [Compile] makes a [Request] of each range aggregation of a query,
// with the times and the labels that it needs. The caller fills it, with the samples of a scan or
// with the counts of an index. [Query.Result] then computes the points.
//
//	expression, grid -> Requests -> Add or AddCount by the caller -> Result
//
// A [Grid] has the points; [Align] moves them to multiples of the step. An instant query is a
// grid of one point. The window of the point of t is [t - range, t), moved by the offset. A
// series has a point where its window has samples.
//
// A Request keeps no samples. The borders of all windows divide time into cells, at most four for
// each point, and each series adds its samples up in cells. A point joins the cells of its
// window. Only quantile_over_time keeps the samples themselves. [Limits] bounds all of them, so
// the memory of a query does not grow with its records: it stays below 100 MiB with the default
// limits.
//
// These rules may surprise:
//
//   - min and max pass over NaN, if there is any other value. topk and bottomk put it last, and of
//     equal values take the series with the first labels.
//   - A comparison of two numbers is 1 or 0. Any other one, without bool, keeps the values
//     for which it is true: those on the left, if both sides are series.
//   - Division by 0 is infinite, and 0/0 is NaN.
//   - An operator joins one series on each side. If several match, the query fails.
//   - rate_counter is the rate of Prometheus, with its extrapolation; of one sample it is 0.
//   - A quantile between two samples lies between their values. NaN is less than all others.
//
// An [*Error] is the fault of the query. All other errors come from the caller or its context.
package metric

import (
	"fmt"
	"iter"

	"blobtail/internal/budget"
	"blobtail/logql"
)

// Limits bound a query. Each zero stands for its default.
type Limits struct {
	// Series is how many series a result may have; 0: 500.
	Series int
	// Points is how many steps a grid may have; 0: 11,000.
	Points int
	// Cells is how many cells all series of a query may have, of about 24 bytes each; 0:
	// 2,000,000. A series counts for its labels too, as for the cells that would need their
	// memory.
	Cells int
	// Samples is how many samples a query may keep; 0: 1,000,000.
	Samples int
	// Budget is that of the query, from which the memory of cells and values is taken; nil: it
	// has no bounds.
	Budget *budget.Budget `json:"-"`
}

func (l Limits) filled() Limits {
	for _, d := range []struct {
		limit *int
		value int
	}{{&l.Series, 500}, {&l.Points, 11_000}, {&l.Cells, 2_000_000}, {&l.Samples, 1_000_000}} {
		if *d.limit == 0 {
			*d.limit = d.value
		}
	}
	return l
}

// Error says that a query cannot be answered, and why: its own fault, not that of a store.
type Error struct{ Msg string }

func (e *Error) Error() string { return e.Msg }

func errorf(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Result has the series of a query.
type Result struct {
	Grid Grid
	// Scalar says that the query is a number. Its one series has no labels and all points.
	Scalar bool
	// Series are in the order of their labels. Those of an instant query may be in the order of
	// their values: if its outermost operation is topk, bottomk, approx_topk, sort or sort_desc.
	Series []Series
}

// Series has the points of one set of labels.
type Series struct {
	Labels []Label // in the order of their names
	grid   Grid
	first  int
	values []float64 // of the points from first on; some may be missing
}

// Points are the times, in ns since 1970, and the values of the series, in order of time. There
// is at least one.
func (s *Series) Points() iter.Seq2[int64, float64] {
	return func(yield func(int64, float64) bool) {
		for i, v := range s.values {
			if there(v) && !yield(s.grid.Time(s.first+i), v) {
				return
			}
		}
	}
}

// Query is a compiled query over a grid. Several goroutines may fill its requests, one each, if
// none of them calls Result meanwhile.
type Query struct {
	expr     logql.Metric
	grid     Grid
	limits   Limits
	allows   *allowance
	requests []*Request
	of       map[*logql.RangeAgg]*Request
}

// Compile checks a query and makes its requests. Errors are of the type [*Error].
func Compile(expr logql.Metric, grid Grid, limits Limits) (*Query, error) {
	limits = limits.filled()
	if err := grid.check(limits); err != nil {
		return nil, err
	}
	q := &Query{
		expr: expr, grid: grid, limits: limits, of: map[*logql.RangeAgg]*Request{},
		allows: newAllowance(limits),
	}
	if err := q.plan(expr, nil, nil); err != nil {
		return nil, err
	}
	return q, nil
}

// Requests are those of the range aggregations, in the order of the text. A query of numbers
// alone has none.
func (q *Query) Requests() []*Request { return q.requests }
