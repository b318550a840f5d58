package metric

import "sync/atomic"

// allowance counts down the cells and samples that a query may hold.
type allowance struct {
	limits         Limits
	cells, samples atomic.Int64
}

func newAllowance(l Limits) *allowance {
	b := &allowance{limits: l}
	b.cells.Store(int64(l.Cells))
	b.samples.Store(int64(l.Samples))
	return b
}

// The memory of a cell, of a sample that is kept, and of a value of a result.
const (
	cellBytes   = 24
	sampleBytes = 16
	valueBytes  = 8
)

// take takes cells.
func (b *allowance) take(n int) error {
	if b.cells.Add(-int64(n)) < 0 {
		return b.tooMany()
	}
	return b.limits.Budget.Take(cellBytes * int64(n))
}

func (b *allowance) tooMany() error {
	return errorf("the query has more than %s cells (series times points); consider a larger step, a shorter range, "+
		"or fewer labels with sum by (…)", thousands(b.limits.Cells))
}

// keep takes a sample.
func (b *allowance) keep() error {
	if b.samples.Add(-1) < 0 {
		return errorf("the query keeps more than %s samples for quantile_over_time; consider a shorter time, or a narrower selector",
			thousands(b.limits.Samples))
	}
	return b.limits.Budget.Take(sampleBytes)
}
