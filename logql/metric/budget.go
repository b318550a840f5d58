package metric

import "sync/atomic"

// budget counts down the cells and samples that a query may hold.
type budget struct {
	limits         Limits
	cells, samples atomic.Int64
}

func newBudget(l Limits) *budget {
	b := &budget{limits: l}
	b.cells.Store(int64(l.Cells))
	b.samples.Store(int64(l.Samples))
	return b
}

// take takes cells.
func (b *budget) take(n int) error {
	if b.cells.Add(-int64(n)) < 0 {
		return b.tooMany()
	}
	return nil
}

func (b *budget) tooMany() error {
	return errorf("the query has more than %s cells (series times points); consider a larger step, a shorter range, "+
		"or fewer labels with sum by (…)", thousands(b.limits.Cells))
}

// keep takes a sample.
func (b *budget) keep() error {
	if b.samples.Add(-1) < 0 {
		return errorf("the query keeps more than %s samples for quantile_over_time; consider a shorter time, or a narrower selector",
			thousands(b.limits.Samples))
	}
	return nil
}
