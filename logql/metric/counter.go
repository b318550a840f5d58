package metric

// counter is a cell of a counter: the times and values of its first and last samples, and how
// much it had counted when it was set back to a smaller value.
type counter struct {
	n                 float64
	firstAt, lastAt   int64
	first, last, lost float64
}

func (a counter) join(b counter) counter {
	switch {
	case a.n == 0:
		return b
	case b.n == 0:
		return a
	}
	lost := a.lost + b.lost
	if b.first < a.last {
		lost += a.last
	}
	return counter{a.n + b.n, a.firstAt, b.lastAt, a.first, b.last, lost}
}

// counters are the cells for rate_counter.
type counters struct {
	block[counter]
	x       *geometry
	seconds float64
}

func counting(seconds float64) func(*Request) cells {
	return func(r *Request) cells { return &counters{x: r.geo, seconds: seconds} }
}

func (s *counters) add(cell int, ns int64, v float64) error {
	c := &s.all[s.room+cell]
	*c = c.join(counter{1, ns, ns, v, v, 0})
	return nil
}

func (s *counters) count(int, int64) {}

func (s *counters) points(first int, set func(int, float64)) {
	slide(s.x, s.cells(), first, counter.join, func(p int, c counter) {
		if c.n > 0 {
			begin := s.x.from + int64(p)*s.x.step
			set(p, c.rate(begin, begin+s.x.window, s.seconds))
		}
	})
}

// rate is the increase a second. As in Prometheus, the counter is taken to have gone on at the
// same speed from the window's begin to its end, if its samples come near them, or else for half
// the distance of two samples; but not from below 0. Fewer than two samples, or samples of one
// time, are a rate of 0.
func (c counter) rate(begin, end int64, seconds float64) float64 {
	const second = 1e9
	took := float64(c.lastAt-c.firstAt) / second
	if c.n < 2 || took == 0 {
		return 0
	}
	grown := c.last - c.first + c.lost
	apart := took / (c.n - 1)
	before, behind := float64(c.firstAt-begin)/second, float64(end-c.lastAt)/second
	if before >= apart*1.1 {
		before = apart / 2
	}
	if behind >= apart*1.1 {
		behind = apart / 2
	}
	if grown > 0 && c.first >= 0 {
		before = min(before, took*(c.first/grown))
	}
	return grown * (took + before + behind) / took / seconds
}
