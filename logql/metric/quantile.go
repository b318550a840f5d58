package metric

import (
	"cmp"
	"math"
	"slices"
)

// samples are all the samples of a series, for quantile_over_time.
type samples struct {
	r        *Request
	quantile float64
	values   []float64
	times    []int64
}

func keeping(quantile float64) func(*Request) cells {
	return func(r *Request) cells { return &samples{r: r, quantile: quantile} }
}

func (s *samples) grow(int, int) {}

func (s *samples) count(int, int64) {}

func (s *samples) add(_ int, ns int64, v float64) error {
	if err := s.r.allows.keep(); err != nil {
		return err
	}
	s.values, s.times = append(s.values, v), append(s.times, ns)
	return nil
}

// points moves a window over the samples, and keeps those in it in a tree by their ranks. So a
// window costs only the samples that enter and leave it.
func (s *samples) points(_ int, set func(int, float64)) {
	type ranked struct {
		value float64
		at    int32
	}
	sorted := make([]ranked, len(s.values))
	for i, v := range s.values {
		sorted[i] = ranked{v, int32(i)}
	}
	slices.SortFunc(sorted, func(a, b ranked) int { return cmp.Compare(a.value, b.value) })
	rank := make([]int32, len(sorted))
	for r, one := range sorted {
		rank[one.at] = int32(r)
	}
	in := newRanks(len(rank))
	from, to, x := 0, 0, s.r.geo
	for p := range x.points {
		begin := x.from + int64(p)*x.step
		for ; to < len(rank) && s.times[to] < begin+x.window; to++ {
			in.add(int(rank[to]), 1)
		}
		for ; from < to && s.times[from] < begin; from++ {
			in.add(int(rank[from]), -1)
		}
		if n := to - from; n > 0 {
			set(p, quantile(s.quantile, n, func(i int) float64 { return sorted[in.at(i)].value }))
		}
	}
}

// quantile lies between the two of n sorted values with ranks next to it. Below 0 and above 1 it
// is infinite. NaN is less than all other values.
func quantile(q float64, n int, value func(int) float64) float64 {
	switch {
	case math.IsNaN(q):
		return q
	case q < 0:
		return math.Inf(-1)
	case q > 1:
		return math.Inf(1)
	}
	rank := q * float64(n-1)
	low := int(rank)
	high := min(low+1, n-1)
	part := rank - float64(low)
	return value(low)*(1-part) + value(high)*part
}

// ranks is a set of numbers from 0 to n-1 that finds the i-th smallest of it (a Fenwick tree).
type ranks struct {
	tree []int32 // tree[i] counts the numbers from i - (i & -i) to i - 1
	top  int     // the largest power of two in reach
}

func newRanks(n int) *ranks {
	top := 1
	for 2*top <= n {
		top *= 2
	}
	return &ranks{make([]int32, n+1), top}
}

// add adds a number (by 1), or removes it (by -1).
func (r *ranks) add(n int, by int32) {
	for i := n + 1; i < len(r.tree); i += i & -i {
		r.tree[i] += by
	}
}

// at returns the i-th smallest number, from 0.
func (r *ranks) at(i int) int {
	found, left := 0, int32(i)
	for step := r.top; step > 0; step /= 2 {
		if next := found + step; next < len(r.tree) && r.tree[next] <= left {
			found = next
			left -= r.tree[next]
		}
	}
	return found
}
