package metric

import (
	"cmp"
	"context"
	"math"
	"slices"

	"blobtail/logql"
)

// outcome is the value of an expression: a number, or series.
type outcome struct {
	scalar bool
	number float64
	series []points // no two have the same labels
}

// points are the values of a series. Missing ones may be among them.
type points struct {
	labels []Label
	first  int // the point of the first value
	values []float64
}

// run evaluates the expression of a query.
type run struct {
	ctx   context.Context
	q     *Query
	n     int // points
	steps int
}

// Result computes the series of the query from the filled requests, and empties them. Errors are
// that of the context, or of the type [*Error].
func (q *Query) Result(ctx context.Context) (*Result, error) {
	e := &run{ctx: ctx, q: q, n: q.grid.Len()}
	o, err := e.eval(q.expr)
	if err != nil {
		return nil, err
	}
	if o.scalar {
		o.series = []points{e.constant(o.number)}
	}
	if len(o.series) > q.limits.Series {
		return nil, errorf("maximum number of series (%d) reached for a single query; consider reducing query cardinality by adding "+
			"more specific stream selectors, reducing the time range, or aggregating results with functions like sum(), count() or topk()",
			q.limits.Series)
	}
	q.order(o.series)
	r := &Result{Grid: q.grid, Scalar: o.scalar}
	for _, s := range o.series {
		if slices.ContainsFunc(s.values, there) {
			r.Series = append(r.Series, Series{s.labels, q.grid, s.first, s.values})
		}
	}
	return r, nil
}

// order sorts the series of a result.
func (q *Query) order(all []points) {
	slices.SortFunc(all, func(a, b points) int { return compare(a.labels, b.labels) })
	a, ok := q.expr.(*logql.VectorAgg)
	if !ok || q.grid.Len() > 1 {
		return
	}
	sign := 1
	switch a.Op {
	case "topk", "approx_topk", "sort_desc":
		sign = -1
	case "bottomk", "sort":
	default:
		return
	}
	slices.SortStableFunc(all, func(a, b points) int {
		v, w := a.values[0], b.values[0]
		if math.IsNaN(v) || math.IsNaN(w) { // last in both orders
			return cmp.Compare(count(math.IsNaN(v)), count(math.IsNaN(w)))
		}
		return sign * cmp.Compare(v, w)
	})
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// eval evaluates an expression. The memory of its values is taken from the budget.
func (e *run) eval(x logql.Metric) (outcome, error) {
	if err := e.ctx.Err(); err != nil {
		return outcome{}, err
	}
	o, err := e.value(x)
	if err == nil {
		err = e.q.limits.Budget.Take(o.size())
	}
	return o, err
}

// size is the memory of the values.
func (o *outcome) size() (n int64) {
	for _, s := range o.series {
		n += valueBytes * int64(len(s.values))
	}
	return n
}

// operand evaluates a part of an expression. used gives back its memory when the expression is
// evaluated.
func (e *run) operand(x logql.Metric) (o outcome, used func(), err error) {
	o, err = e.eval(x)
	n := o.size() // the caller may change the values
	return o, func() { e.q.limits.Budget.Give(n) }, err
}

// value evaluates an expression of operands.
func (e *run) value(x logql.Metric) (outcome, error) {
	switch x := x.(type) {
	case *logql.Number:
		return outcome{scalar: true, number: x.Value}, nil
	case *logql.Vector:
		return outcome{series: []points{e.constant(x.Value)}}, nil
	case *logql.RangeAgg:
		return e.request(e.q.of[x])
	case *logql.VectorAgg:
		of, used, err := e.operand(x.Of)
		if err != nil {
			return of, err
		}
		defer used()
		if of.scalar {
			return of, errorf("%s needs series, and %s is a number", x.Op, x.Of)
		}
		return e.aggregate(x, of.series)
	case *logql.Binary:
		left, used, err := e.operand(x.Left)
		if err != nil {
			return left, err
		}
		defer used()
		right, used, err := e.operand(x.Right)
		if err != nil {
			return right, err
		}
		defer used()
		return e.binary(x, left, right)
	}
	return outcome{}, errorf("blobtail cannot evaluate %s", x)
}

// constant is a series without labels of one value at all points.
func (e *run) constant(v float64) points {
	values := make([]float64, e.n)
	for i := range values {
		values[i] = v
	}
	return points{values: values}
}

// tick lets the context end long computations.
func (e *run) tick() error {
	if e.steps++; e.steps%1024 == 0 {
		return e.ctx.Err()
	}
	return nil
}

// request computes the points of a range aggregation, and drops its cells.
func (e *run) request(r *Request) (outcome, error) {
	all := r.all
	r.all, r.byKey, r.byLabs, r.newest = nil, map[string]*column{}, map[string]*column{}, nil
	if r.Agg.Op == "absent_over_time" {
		return outcome{series: e.absent(r, all)}, nil
	}
	var o outcome
	slices.SortFunc(all, func(a, b *column) int { return compare(a.labels, b.labels) }) // which came first does not matter
	for i, c := range all {
		if err := e.tick(); err != nil {
			return o, err
		}
		from, to := r.geo.covering(c.first, c.last)
		s := points{labels: c.labels, first: from, values: nothing(to - from + 1)}
		c.cells.points(c.first, func(p int, v float64) { s.values[p-from] = v })
		o.series = append(o.series, s)
		all[i] = nil
		e.q.limits.Budget.Give(cellBytes * int64(c.charged))
	}
	return o, nil
}

// absent is 1 at the points without samples. Its labels are those that the selector wants to be
// equal to a text.
func (e *run) absent(r *Request, all []*column) []points {
	s := e.constant(1)
	for _, c := range all {
		c.cells.points(c.first, func(p int, _ float64) { s.values[p] = math.Float64frombits(missing) })
	}
	names := map[string]int{}
	for _, m := range r.Agg.Range.Log.Selector {
		names[m.Name]++
	}
	for _, m := range r.Agg.Range.Log.Selector {
		if m.Op == logql.Equal && names[m.Name] == 1 {
			s.labels = append(s.labels, Label{Name: m.Name, Value: m.Value})
		}
	}
	s.labels = grouped(s.labels, nil)
	return []points{s}
}
