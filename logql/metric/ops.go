package metric

import (
	"math"

	"blobtail/internal/portable"
	"blobtail/logql"
)

// operation is how a range aggregation makes cells of samples, and points of cells.
type operation struct {
	counts bool // numbers of records suffice
	whole  bool // slices of time cannot be joined, or not exactly
	weight int  // of a cell, for the budget: its words of memory
	make   func(r *Request) cells
}

// cells hold the sums of a series, or the like. Cell 0 is the first that the series has.
type cells interface {
	// grow makes room for cells before the first one, and after the last one.
	grow(before, after int)
	// add adds a sample.
	add(cell int, ns int64, value float64) error
	// count adds records.
	count(cell int, n int64)
	// points calls set with the value of each point that has samples. First is the number of the
	// first cell.
	points(first int, set func(point int, value float64))
	// follow joins the cells from one on with those of later samples, unless the operation is whole.
	follow(at int, later cells)
	code(c *portable.Coder)
}

// operationOf finds the operation of a range aggregation.
func operationOf(a *logql.RangeAgg) (operation, error) {
	seconds := a.Range.Window.Seconds()
	perSecond := func(s sum) float64 { return s.v / seconds }
	total := func(s sum) float64 { return s.v }
	v, plus := value, add
	switch a.Op {
	case "count_over_time":
		return operation{counts: true, weight: 2, make: summing(one, plus, total)}, nil
	case "absent_over_time":
		return operation{counts: true, weight: 2, make: summing(one, plus, total)}, nil
	case "rate":
		if a.Range.Unwrap != nil {
			return operation{counts: true, weight: 3, make: adding(func(s exact) float64 { return (s.v + s.rest) / seconds })}, nil
		}
		return operation{counts: true, weight: 2, make: summing(one, plus, perSecond)}, nil
	case "bytes_over_time":
		return operation{weight: 2, make: summing(v, plus, total)}, nil
	case "bytes_rate":
		return operation{weight: 2, make: summing(v, plus, perSecond)}, nil
	}
	op, err := unwrapped(a)
	if err == nil && a.Range.Unwrap == nil {
		return op, errorf("invalid aggregation %s without unwrap", a.Op)
	}
	return op, err
}

// unwrapped finds the operations that need unwrapped values.
func unwrapped(a *logql.RangeAgg) (operation, error) {
	seconds := a.Range.Window.Seconds()
	total := func(s sum) float64 { return s.v }
	switch a.Op {
	case "sum_over_time":
		return operation{weight: 3, make: adding(func(s exact) float64 { return s.v + s.rest })}, nil
	case "avg_over_time":
		return operation{weight: 3, make: adding(func(s exact) float64 { return (s.v + s.rest) / s.n })}, nil
	case "min_over_time":
		return operation{weight: 2, make: summing(value, smaller, total)}, nil
	case "max_over_time":
		return operation{weight: 2, make: summing(value, larger, total)}, nil
	case "first_over_time":
		return operation{weight: 2, make: summing(value, func(a, _ float64) float64 { return a }, total)}, nil
	case "last_over_time":
		return operation{weight: 2, make: summing(value, func(_, b float64) float64 { return b }, total)}, nil
	case "stddev_over_time":
		return operation{whole: true, weight: 4, make: spreading(func(m moments) float64 { return math.Sqrt(m.m2 / m.n) })}, nil
	case "stdvar_over_time":
		return operation{whole: true, weight: 4, make: spreading(func(m moments) float64 { return m.m2 / m.n })}, nil
	case "rate_counter":
		return operation{whole: true, weight: 6, make: counting(seconds)}, nil
	case "quantile_over_time":
		return operation{whole: true, weight: 2, make: keeping(a.Param)}, nil
	}
	return operation{}, errorf("blobtail does not have %s", a.Op)
}

func one(float64) float64      { return 1 }
func value(v float64) float64  { return v }
func add(a, b float64) float64 { return a + b }

// smaller is the smaller number; NaN only if both are.
func smaller(a, b float64) float64 {
	if b < a || math.IsNaN(a) {
		return b
	}
	return a
}

// larger is the larger number; NaN only if both are.
func larger(a, b float64) float64 {
	if b > a || math.IsNaN(a) {
		return b
	}
	return a
}
