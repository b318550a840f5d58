package metric

import (
	"math"
	"slices"
)

// block holds cells of one kind, with some room before the first one.
type block[C any] struct {
	all  []C
	room int
}

func (b *block[C]) cells() []C { return b.all[b.room:] }

func (b *block[C]) grow(before, after int) {
	if before > b.room {
		room := before + len(b.cells()) // so that growing by one again and again copies little
		all := make([]C, room+len(b.cells()), room+len(b.cells())+after)
		copy(all[room:], b.cells())
		b.all, b.room = all, room
	}
	b.room -= before
	b.all = slices.Grow(b.all, after)[:len(b.all)+after]
}

// slide joins the cells of each window that has some, and hands the result to set. The zero cell
// is an empty one, and joining with it changes nothing. Each cell is joined a few times, however
// many windows have it: a window is joined of its cells before a border, joined from there
// backwards already, and those behind it.
func slide[C any](x *geometry, cells []C, first int, join func(a, b C) C, set func(point int, c C)) {
	var empty, behind C
	before := make([]C, len(cells)) // before[i] joins the cells from i to the border
	border, seen := 0, 0
	from, to := x.covering(first, first+len(cells)-1)
	for p := from; p <= to; p++ {
		lo := max(p*x.stride-first, 0)
		hi := min(p*x.stride+x.width-first, len(cells))
		if lo >= border {
			border, behind = hi, empty
			for i, c := hi-1, empty; i >= lo; i-- {
				c = join(cells[i], c)
				before[i] = c
			}
		} else {
			for _, c := range cells[seen:hi] {
				behind = join(behind, c)
			}
		}
		seen = hi
		set(p, join(before[lo], behind))
	}
}

// sum is a cell of one number, and the number of its samples. The number is V and Rest together, a sum to
// about 106 bits: so that it does not matter in which groups the samples were added.
type sum struct{ N, V, Rest float64 }

// total is the number.
func (s sum) total() float64 {
	if s.V-s.V != 0 { // not finite
		return s.V
	}
	return s.V + s.Rest
}

// plus adds a number, which is two together.
func (s sum) plus(v, rest float64) sum {
	whole := s.V + v
	t := whole - s.V
	return sum{s.N, whole, s.Rest + rest + (s.V - (whole - t)) + (v - t)}
}

// sums are cells for sums, least and largest values, first and last ones.
type sums struct {
	block[sum]
	x      *geometry
	sample func(v float64) float64
	join   func(a, b float64) float64 // nil: they are added exactly
	result func(sum) float64
}

func summing(sample func(float64) float64, join func(a, b float64) float64, result func(sum) float64) func(*Request) cells {
	return func(r *Request) cells { return &sums{x: r.geo, sample: sample, join: join, result: result} }
}

func (s *sums) add(cell int, _ int64, v float64) error {
	c := &s.all[s.room+cell]
	switch v = s.sample(v); {
	case c.N == 0:
		c.V = v
	case s.join != nil:
		c.V = s.join(c.V, v)
	default:
		*c = c.plus(v, 0)
	}
	c.N++
	return nil
}

func (s *sums) count(cell int, n int64) {
	c := &s.all[s.room+cell]
	c.N += float64(n)
	c.V += float64(n)
}

func (s *sums) points(first int, set func(int, float64)) {
	slide(s.x, s.cells(), first, s.joined, func(p int, c sum) {
		if c.N > 0 {
			set(p, s.result(c))
		}
	})
}

// joined joins a cell with one of later samples.
func (s *sums) joined(a, b sum) sum {
	switch {
	case a.N == 0:
		return b
	case b.N == 0:
		return a
	case s.join != nil:
		return sum{a.N + b.N, s.join(a.V, b.V), 0}
	}
	a.N += b.N
	return a.plus(b.V, b.Rest)
}

// moments is a cell with the number of samples, their mean, and the sum of the squares of their
// distances from it.
type moments struct{ n, mean, m2 float64 }

func (a moments) join(b moments) moments {
	switch {
	case a.n == 0:
		return b
	case b.n == 0:
		return a
	}
	n, d := a.n+b.n, b.mean-a.mean
	return moments{n, a.mean + d*b.n/n, a.m2 + b.m2 + d*d*a.n*b.n/n}
}

// single has one sample. A value that is not finite makes all deviations NaN.
func single(v float64) moments { return moments{1, v, v - v} }

// spreads are cells for deviations.
type spreads struct {
	block[moments]
	x      *geometry
	result func(moments) float64
}

func spreading(result func(moments) float64) func(*Request) cells {
	return func(r *Request) cells { return &spreads{x: r.geo, result: result} }
}

func (s *spreads) add(cell int, _ int64, v float64) error {
	c := &s.all[s.room+cell]
	*c = c.join(single(v))
	return nil
}

func (s *spreads) count(int, int64) {}

func (s *spreads) points(first int, set func(int, float64)) {
	slide(s.x, s.cells(), first, moments.join, func(p int, c moments) {
		if c.n > 0 {
			set(p, s.result(c))
		}
	})
}

// missing is the value of a point that a series does not have: a NaN that no operation makes.
const missing = 0x7ff8_6d69_7373_696e

func there(v float64) bool { return math.Float64bits(v) != missing }

// nothing returns n points that are missing.
func nothing(n int) []float64 {
	none := math.Float64frombits(missing)
	values := make([]float64, n)
	for i := range values {
		values[i] = none
	}
	return values
}
