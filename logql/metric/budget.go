package metric

import "sync"

// budget counts down what a query may hold.
type budget struct {
	limits Limits

	mu             sync.Mutex
	cells, samples int
}

func newBudget(l Limits) *budget { return &budget{limits: l, cells: l.Cells, samples: l.Samples} }

// take takes cells.
func (b *budget) take(n int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cells -= n; b.cells < 0 {
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
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.samples--; b.samples < 0 {
		return errorf("the query keeps more than %s samples for quantile_over_time; consider a shorter time, or a narrower selector",
			thousands(b.limits.Samples))
	}
	return nil
}
