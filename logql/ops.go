package logql

// A Need says whether something must, may or must not be there.
type Need int

// The needs.
const (
	Never Need = iota
	Maybe
	Always
)

// Groups reports whether an aggregation takes by and without.
func (o RangeOp) Groups() bool {
	switch o {
	case "avg_over_time", "min_over_time", "max_over_time", "stddev_over_time", "stdvar_over_time",
		"quantile_over_time", "first_over_time", "last_over_time":
		return true
	}
	return false
}

// Unwraps says whether an aggregation is of unwrapped values.
func (o RangeOp) Unwraps() Need {
	switch o {
	case "rate", "absent_over_time":
		return Maybe
	case "count_over_time", "bytes_over_time", "bytes_rate":
		return Never
	}
	return Always
}

func isRangeOp(s string) bool {
	switch s {
	case "count_over_time", "rate", "bytes_over_time", "bytes_rate", "absent_over_time", "rate_counter",
		"sum_over_time", "avg_over_time", "min_over_time", "max_over_time", "first_over_time", "last_over_time",
		"stddev_over_time", "stdvar_over_time", "quantile_over_time":
		return true
	}
	return false
}

func isVectorOp(s string) bool {
	switch s {
	case "sum", "count", "avg", "min", "max", "stddev", "stdvar", "topk", "bottomk", "approx_topk", "sort", "sort_desc":
		return true
	}
	return false
}
