package metric

import (
	"math"
	"time"
)

// Grid has the times of the points of a result, in ns since 1970: Start, Start + Step and so on,
// up to End. If Start is End, it has one point, and no step is needed.
type Grid struct{ Start, End, Step int64 }

// At is the grid of an instant query: one point.
func At(ns int64) Grid { return Grid{ns, ns, 0} }

// Align is the grid of the multiples of a step: from the last one at or before start to the last
// one at or before end. The step must be more than 0.
func Align(start, end, step int64) Grid {
	return Grid{start - modulo(start, step), end - modulo(end, step), step}
}

// modulo is the distance of n from the multiple of m at or before it.
func modulo(n, m int64) int64 {
	if n %= m; n < 0 {
		n += m
	}
	return n
}

// Len is the number of points.
func (g Grid) Len() int {
	if g.Start == g.End {
		return 1
	}
	return int((g.End-g.Start)/g.Step) + 1
}

// Time is the time of a point; the first is 0.
func (g Grid) Time(point int) int64 { return g.Start + int64(point)*g.Step }

func (g Grid) check(l Limits) error {
	if g.Start == g.End {
		return nil
	}
	if g.End < g.Start {
		return errorf("end timestamp must not be before or equal to start time")
	}
	if g.Step <= 0 {
		return errorf("zero or negative query resolution step widths are not accepted; try a positive number")
	}
	span := uint64(g.End) - uint64(g.Start) // right even if the difference is no int64
	if span > math.MaxInt64 {
		return errorf("a query may not span more than 292 years")
	}
	if span/uint64(g.Step) > uint64(l.Points) {
		return errorf("exceeded maximum resolution of %s points per time series. Try increasing the value of the step parameter", thousands(l.Points))
	}
	return nil
}

// geometry divides the time of all windows of a grid into cells, where a window begins or ends.
// All windows have the same number of cells, and each begins the same number of cells after the
// last.
type geometry struct {
	from, to     int64 // the start of the first window, the end of the last
	step, window int64
	points       int
	cells        int
	width        int // cells of a window
	stride       int // cells from a window to the next
	layout       layout
	last         int64 // long: from the start of the first window to that of the last
	rest         int64 // mixed: window modulo step
}

// layout says how windows meet.
type layout int

const (
	apart layout = iota // no two of them share a time: a cell each; times between them have no cell
	even                // steps divide windows: a cell for each step
	mixed               // they do not: two cells for each step
	long                // all of them share some time, which is one cell
)

func (g Grid) geometry(window, offset time.Duration) (*geometry, error) {
	w, o, n := int64(window), int64(offset), g.Len()
	if w <= 0 {
		return nil, errorf("the range of an aggregation must be more than 0, and is %s", window)
	}
	last := int64(n-1) * g.Step
	begin, ok := minus(g.Start, o) // of the end of the first window
	end, ok2 := minus(g.Start+last, o)
	from, ok3 := minus(begin, w)
	if !ok || !ok2 || !ok3 {
		return nil, errorf("the range %s with the offset %s leaves the years from 1678 to 2262", window, offset)
	}
	x := &geometry{from: from, to: end, step: g.Step, window: w, points: n, stride: 1, last: last}
	switch {
	case w >= x.last:
		x.layout, x.width, x.cells = long, n, 2*n-1
	case w <= g.Step:
		x.layout, x.width, x.cells = apart, 1, n
	case w%g.Step == 0:
		x.layout, x.width = even, int(w/g.Step)
		x.cells = n - 1 + x.width
	default:
		x.layout, x.width, x.stride = mixed, int(2*(w/g.Step)+1), 2
		x.rest, x.cells = w%g.Step, 2*(n-1)+x.width
	}
	return x, nil
}

// minus is a - b; false if that is no int64.
func minus(a, b int64) (int64, bool) {
	d := a - b
	return d, (d < a) == (b > 0)
}

// cell returns the cell of a time; false if no window has it.
func (x *geometry) cell(ns int64) (int, bool) {
	if ns < x.from || ns >= x.to {
		return 0, false
	}
	u := ns - x.from
	if x.layout == long {
		switch {
		case u < x.last:
			return int(u / x.step), true
		case u < x.window:
			return x.points - 1, true
		}
		return x.points + int((u-x.window)/x.step), true
	}
	k, rest := u/x.step, u%x.step
	switch {
	case x.layout == apart:
		return int(k), rest < x.window
	case x.layout == even:
		return int(k), true
	case rest < x.rest:
		return int(2 * k), true
	}
	return int(2*k + 1), true
}

// covering are the points from first to last with windows that have some of the cells of a range.
func (x *geometry) covering(from, to int) (first, last int) {
	if from >= x.width {
		first = (from - x.width + x.stride) / x.stride
	}
	return first, min(to/x.stride, x.points-1)
}

// bucket is the length of the longest buckets that no border of cells divides, and that divide a
// day. The first and the last border do not count: no time beyond them is wanted.
func (x *geometry) bucket() time.Duration {
	const day = int64(24 * time.Hour)
	if x.points == 1 {
		return time.Duration(day)
	}
	return time.Duration(gcd(gcd(day, modulo(x.from, day)), gcd(x.window, x.step)))
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
