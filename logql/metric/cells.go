package metric

import (
	"math"
	"slices"

	"blobtail/internal/portable"
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

// sum is a cell of one number, and the number of its samples.
type sum struct{ n, v float64 }

// sums are cells for sums, least and largest values, first and last ones.
type sums struct {
	block[sum]
	x      *geometry
	sample func(v float64) float64
	join   func(a, b float64) float64
	result func(sum) float64
}

func summing(sample func(float64) float64, join func(a, b float64) float64, result func(sum) float64) func(*Request) cells {
	return func(r *Request) cells { return &sums{x: r.geo, sample: sample, join: join, result: result} }
}

func (s *sums) add(cell int, _ int64, v float64) error {
	c := &s.all[s.room+cell]
	if v = s.sample(v); c.n > 0 {
		v = s.join(c.v, v)
	}
	c.n++
	c.v = v
	return nil
}

func (s *sums) count(cell int, n int64) {
	c := &s.all[s.room+cell]
	c.n += float64(n)
	c.v += float64(n)
}

func (s *sums) points(first int, set func(int, float64)) {
	slide(s.x, s.cells(), first, s.joined, func(p int, c sum) {
		if c.n > 0 {
			set(p, s.result(c))
		}
	})
}

// joined joins a cell with one of later samples.
func (s *sums) joined(a, b sum) sum {
	switch {
	case a.n == 0:
		return b
	case b.n == 0:
		return a
	}
	return sum{a.n + b.n, s.join(a.v, b.v)}
}

func (s *sums) follow(at int, later cells) {
	for i, c := range later.(*sums).cells() {
		s.all[s.room+at+i] = s.joined(s.all[s.room+at+i], c)
	}
}

func (s *sums) code(c *portable.Coder) {
	for i := range s.cells() {
		x := &s.all[s.room+i]
		c.Fields(&x.n, &x.v)
	}
}

// folds are cells into which samples are joined in order.
type folds[C joint[C]] struct {
	block[C]
	one    func(ns int64, v float64) C
	x      *geometry
	result func(point int, c C) float64
}

// joint is a cell of folds.
type joint[C any] interface {
	join(later C) C
	some() bool
	fields(of *C) []any
}

func (s *folds[C]) add(cell int, ns int64, v float64) error {
	c := &s.all[s.room+cell]
	*c = (*c).join(s.one(ns, v))
	return nil
}

func (s *folds[C]) count(int, int64) {}

func (s *folds[C]) points(first int, set func(int, float64)) {
	slide(s.x, s.cells(), first, C.join, func(p int, c C) {
		if c.some() {
			set(p, s.result(p, c))
		}
	})
}

func (s *folds[C]) follow(at int, later cells) {
	for i, c := range later.(*folds[C]).cells() {
		s.all[s.room+at+i] = s.all[s.room+at+i].join(c)
	}
}

func (s *folds[C]) code(c *portable.Coder) {
	for i := range s.cells() {
		x := &s.all[s.room+i]
		c.Fields((*x).fields(x)...)
	}
}

// exact is a cell whose sum is v and rest together, to about 106 bits. So it does not matter in practice in
// which groups the samples are added: slices of time have the same sum as the whole.
type exact struct{ n, v, rest float64 }

func (a exact) join(b exact) exact {
	v := a.v + b.v
	if v-v != 0 { // not finite
		return exact{a.n + b.n, v, 0}
	}
	t := v - a.v
	rest := (a.v - (v - t)) + (b.v - t) + a.rest + b.rest
	sum := v + rest
	return exact{a.n + b.n, sum, rest - (sum - v)}
}

func (a exact) some() bool           { return a.n > 0 }
func (exact) fields(of *exact) []any { return []any{&of.n, &of.v, &of.rest} }

func adding(result func(exact) float64) func(*Request) cells {
	one := func(_ int64, v float64) exact { return exact{1, v, 0} }
	return func(r *Request) cells {
		return &folds[exact]{x: r.geo, one: one, result: func(_ int, c exact) float64 { return result(c) }}
	}
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

func (a moments) some() bool          { return a.n > 0 }
func (moments) fields(*moments) []any { return nil }

// single has one sample. A value that is not finite makes all deviations NaN.
func single(v float64) moments { return moments{1, v, v - v} }

func spreading(result func(moments) float64) func(*Request) cells {
	one := func(_ int64, v float64) moments { return single(v) }
	return func(r *Request) cells {
		return &folds[moments]{x: r.geo, one: one, result: func(_ int, c moments) float64 { return result(c) }}
	}
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
