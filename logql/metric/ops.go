package metric

import (
	"math"

	"blobtail/logql"
)

// operation is how a range aggregation makes cells of samples, and points of cells.
type operation struct {
	counts bool // numbers of records suffice
	weight int  // of a cell, for the budget
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
}

// operationOf finds the operation of a range aggregation.
func operationOf(a *logql.RangeAgg) (operation, error) {
	seconds := a.Range.Window.Seconds()
	perSecond := func(s sum) float64 { return s.total() / seconds }
	total := sum.total
	n, v, plus := one, value, add
	switch a.Op {
	case "count_over_time":
		return operation{counts: true, weight: 1, make: summing(n, plus, total)}, nil
	case "absent_over_time":
		return operation{counts: true, weight: 1, make: summing(n, plus, total)}, nil
	case "rate":
		if a.Range.Unwrap != nil {
			n, plus = v, nil
		}
		return operation{counts: true, weight: 1, make: summing(n, plus, perSecond)}, nil
	case "bytes_over_time":
		return operation{weight: 1, make: summing(v, plus, total)}, nil
	case "bytes_rate":
		return operation{weight: 1, make: summing(v, plus, perSecond)}, nil
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
	total := sum.total
	switch a.Op {
	case "sum_over_time":
		return operation{weight: 1, make: summing(value, nil, total)}, nil
	case "avg_over_time":
		return operation{weight: 1, make: summing(value, nil, func(s sum) float64 { return s.total() / s.N })}, nil
	case "min_over_time":
		return operation{weight: 1, make: summing(value, smaller, total)}, nil
	case "max_over_time":
		return operation{weight: 1, make: summing(value, larger, total)}, nil
	case "first_over_time":
		return operation{weight: 1, make: summing(value, func(a, _ float64) float64 { return a }, total)}, nil
	case "last_over_time":
		return operation{weight: 1, make: summing(value, func(_, b float64) float64 { return b }, total)}, nil
	case "stddev_over_time":
		return operation{weight: 1, make: spreading(func(m moments) float64 { return math.Sqrt(m.m2 / m.n) })}, nil
	case "stdvar_over_time":
		return operation{weight: 1, make: spreading(func(m moments) float64 { return m.m2 / m.n })}, nil
	case "rate_counter":
		return operation{weight: 2, make: counting(seconds)}, nil
	case "quantile_over_time":
		return operation{weight: 1, make: keeping(a.Param)}, nil
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
