package metric

import (
	"math"
	"slices"

	"blobtail/logql"
)

// aggregate computes an aggregation over series.
func (e *run) aggregate(a *logql.VectorAgg, of []points) (outcome, error) {
	g := a.Grouping
	if g == nil {
		g = &logql.Grouping{}
	}
	switch a.Op {
	case "sort", "sort_desc":
		return outcome{series: of}, nil
	case "topk", "approx_topk":
		return e.top(a.Param, g, of, func(v, w float64) bool { return v > w })
	case "bottomk":
		return e.top(a.Param, g, of, func(v, w float64) bool { return v < w })
	}
	groups, err := e.group(g, of)
	if err != nil {
		return outcome{}, err
	}
	var o outcome
	for _, s := range groups {
		if err := e.tick(); err != nil {
			return o, err
		}
		o.series = append(o.series, s.fold(a.Op))
	}
	return o, nil
}

// group is some series that become one.
type group struct {
	labels      []Label
	of          []points
	first, last int // the points that one of them may have
}

// group divides series by the labels that a grouping leaves.
func (e *run) group(g *logql.Grouping, of []points) ([]*group, error) {
	var all []*group
	known := map[string]*group{}
	size := 0
	for _, s := range of {
		labels := grouped(s.labels, g)
		k := key(labels)
		x := known[k]
		if x == nil {
			x = &group{labels: labels, first: s.first, last: s.first - 1}
			known[k] = x
			all = append(all, x)
		}
		size -= x.last - x.first
		x.of = append(x.of, s)
		x.first, x.last = min(x.first, s.first), max(x.last, s.first+len(s.values)-1)
		size += x.last - x.first
		if err := e.fits(size); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// fits checks that a result of n values may be made.
func (e *run) fits(n int) error {
	if n > e.q.limits.Cells {
		return e.q.allows.tooMany()
	}
	return e.tick()
}

// fold computes the series of a group.
func (g *group) fold(op logql.VectorOp) points {
	cells := make([]moments, g.last-g.first+1)
	join := folding(op)
	for _, s := range g.of {
		for i, v := range s.values {
			if there(v) {
				c := &cells[s.first-g.first+i]
				*c = join(*c, v)
			}
		}
	}
	p := points{labels: g.labels, first: g.first, values: nothing(len(cells))}
	for i, c := range cells {
		if c.n == 0 {
			continue
		}
		switch op {
		case "count":
			p.values[i] = c.n
		case "avg":
			p.values[i] = c.mean / c.n
		case "stdvar":
			p.values[i] = c.m2 / c.n
		case "stddev":
			p.values[i] = math.Sqrt(c.m2 / c.n)
		default:
			p.values[i] = c.mean
		}
	}
	return p
}

// folding adds a value to those of a group, for an operation. Only deviations need the mean in
// between; it would make NaN of infinite values. The others keep their sum or their best there.
func folding(op logql.VectorOp) func(moments, float64) moments {
	pick := func(f func(a, b float64) float64) func(moments, float64) moments {
		return func(m moments, v float64) moments {
			if m.n > 0 {
				v = f(m.mean, v)
			}
			return moments{n: m.n + 1, mean: v}
		}
	}
	switch op {
	case "sum", "count", "avg":
		return pick(add)
	case "min":
		return pick(smaller)
	case "max":
		return pick(larger)
	}
	return func(m moments, v float64) moments { return m.join(single(v)) }
}

// top keeps the first k series of each group at each point, in the order of before. NaN comes
// last. Of equal values, those with the smaller labels come first.
func (e *run) top(param float64, g *logql.Grouping, of []points, before func(v, w float64) bool) (outcome, error) {
	var o outcome
	if !(param >= 1) {
		return o, nil
	}
	k := int(min(param, math.MaxInt32))
	slices.SortFunc(of, func(a, b points) int { return compare(a.labels, b.labels) })
	groups, err := e.group(g, of)
	if err != nil {
		return o, err
	}
	for _, x := range groups {
		kept, err := e.topOf(k, x, before)
		if err != nil {
			return o, err
		}
		o.series = append(o.series, kept...)
	}
	return o, nil
}

// topOf keeps the first k series of a group at each point.
func (e *run) topOf(k int, g *group, before func(v, w float64) bool) ([]points, error) {
	starts := make([]int, g.last-g.first+2) // of the values of each point
	for _, s := range g.of {
		for i, v := range s.values {
			if there(v) {
				starts[s.first-g.first+i+1]++
			}
		}
	}
	for i := range len(starts) - 1 {
		starts[i+1] += starts[i]
	}
	next := slices.Clone(starts)
	of := make([]int32, starts[len(starts)-1]) // the numbers of the series that have a point
	for n, s := range g.of {
		for i, v := range s.values {
			if at := s.first - g.first + i; there(v) {
				of[next[at]] = int32(n)
				next[at]++
			}
		}
	}
	kept := make([]points, len(g.of))
	for i := range len(starts) - 1 {
		if err := e.tick(); err != nil {
			return nil, err
		}
		at := of[starts[i]:starts[i+1]]
		value := func(n int32) float64 { s := &g.of[n]; return s.values[g.first+i-s.first] }
		slices.SortFunc(at, func(a, b int32) int {
			v, w := value(a), value(b)
			switch {
			case before(v, w) || math.IsNaN(w) && !math.IsNaN(v):
				return -1
			case before(w, v) || math.IsNaN(v) && !math.IsNaN(w):
				return 1
			}
			return int(a - b)
		})
		for _, n := range at[:min(k, len(at))] {
			s := &kept[n]
			if s.values == nil {
				from := g.of[n]
				*s = points{from.labels, from.first, nothing(len(from.values))}
			}
			s.values[g.first+i-s.first] = value(n)
		}
	}
	return slices.DeleteFunc(kept, func(s points) bool { return s.values == nil }), nil
}
