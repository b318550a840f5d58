package metric

import (
	"math"

	"blobtail/logql"
)

// checkBinary refuses operands that an operator does not take.
func checkBinary(b *logql.Binary) error {
	if b.Bool && !comparison(b.Op) {
		return errorf("bool modifier can only be used on comparison operators, not on %s", b.Op)
	}
	switch b.Op {
	case "+", "-", "*", "/", "%", "^", "==", "!=", ">", ">=", "<", "<=":
		return nil
	case "and", "or", "unless":
	default:
		return errorf("blobtail does not have the operator %s", b.Op)
	}
	for _, side := range []logql.Metric{b.Left, b.Right} {
		if scalar(side) {
			return errorf("the operator %s needs series on both sides, and %s is a number", b.Op, side)
		}
	}
	return nil
}

// scalar reports whether an expression is a number.
func scalar(e logql.Metric) bool {
	switch e := e.(type) {
	case *logql.Number:
		return true
	case *logql.Binary:
		return scalar(e.Left) && scalar(e.Right)
	}
	return false
}

func comparison(op string) bool {
	switch op {
	case "==", "!=", ">", ">=", "<", "<=":
		return true
	}
	return false
}

// binary applies an operator to two results.
func (e *run) binary(b *logql.Binary, left, right outcome) (outcome, error) {
	op := operator(b.Op)
	switch {
	case left.scalar && right.scalar:
		return outcome{scalar: true, number: op(left.number, right.number)}, nil
	case left.scalar:
		return e.each(b, right.series, func(v float64) float64 { return op(left.number, v) })
	case right.scalar:
		return e.each(b, left.series, func(v float64) float64 { return op(v, right.number) })
	}
	m := b.Matching
	if m == nil {
		m = &logql.Matching{}
	}
	by := &logql.Grouping{Without: !m.On, Labels: m.Labels}
	switch b.Op {
	case "and":
		return e.keepIf(by, left.series, right.series, true)
	case "unless":
		return e.keepIf(by, left.series, right.series, false)
	case "or":
		return e.either(by, left.series, right.series)
	}
	return e.pairs(b, by, left.series, right.series)
}

// operator computes arithmetic; a comparison is 1 or 0. Division by 0 is infinite, or NaN for
// 0/0.
func operator(op string) func(v, w float64) float64 {
	is := func(f func(v, w float64) bool) func(v, w float64) float64 {
		return func(v, w float64) float64 { return float64(count(f(v, w))) }
	}
	switch op {
	case "+":
		return add
	case "-":
		return func(v, w float64) float64 { return v - w }
	case "*":
		return func(v, w float64) float64 { return v * w }
	case "/":
		return func(v, w float64) float64 { return v / w }
	case "%":
		return math.Mod
	case "^":
		return math.Pow
	case "==":
		return is(func(v, w float64) bool { return v == w })
	case "!=":
		return is(func(v, w float64) bool { return v != w })
	case ">":
		return is(func(v, w float64) bool { return v > w })
	case ">=":
		return is(func(v, w float64) bool { return v >= w })
	case "<":
		return is(func(v, w float64) bool { return v < w })
	}
	return is(func(v, w float64) bool { return v <= w })
}

// each applies an operator with a number to each value of some series. A comparison without bool
// keeps the values for which it is true.
func (e *run) each(b *logql.Binary, of []points, op func(float64) float64) (outcome, error) {
	filter := comparison(b.Op) && !b.Bool
	for _, s := range of {
		if err := e.tick(); err != nil {
			return outcome{}, err
		}
		for i, v := range s.values {
			if !there(v) {
				continue
			}
			w := op(v)
			if !filter {
				s.values[i] = w
			} else if w == 0 {
				s.values[i] = math.Float64frombits(missing)
			}
		}
	}
	return outcome{series: of}, nil
}

// pairs joins series of both sides with the same labels, as far as they are named, point by
// point.
func (e *run) pairs(b *logql.Binary, by *logql.Grouping, left, right []points) (outcome, error) {
	rights, err := e.merge(by, right, "right")
	if err != nil {
		return outcome{}, err
	}
	partners := map[string]points{}
	for _, s := range rights {
		partners[key(s.labels)] = s
	}
	groups, err := e.group(by, left)
	if err != nil {
		return outcome{}, err
	}
	var o outcome
	for _, g := range groups {
		r, ok := partners[key(g.labels)]
		if !ok {
			continue
		}
		s, err := g.join(b, r)
		if err != nil {
			return outcome{}, err
		}
		o.series = append(o.series, s)
	}
	return o, nil
}

// join applies an operator to the series of a group and their partner. Only one of them may have
// a result at a point.
func (g *group) join(b *logql.Binary, r points) (points, error) {
	op, filter := operator(b.Op), comparison(b.Op) && !b.Bool
	s := points{g.labels, g.first, nothing(g.last - g.first + 1)}
	for _, l := range g.of {
		for i, v := range l.values {
			if p := l.first + i; there(v) && r.has(p) {
				u := op(v, r.values[p-r.first])
				if filter && u == 0 {
					continue
				}
				if filter {
					u = v
				}
				at := &s.values[p-g.first]
				if there(*at) {
					return s, several("left", g.labels)
				}
				*at = u
			}
		}
	}
	return s, nil
}

func several(side string, labels []Label) error {
	return errorf("multiple matches for labels: several series on the %s side match %s; name more labels in on (…), or aggregate first",
		side, spoken(labels))
}

// merge joins the series of each group, which have only its labels left. No two of them may have
// the same point.
func (e *run) merge(by *logql.Grouping, of []points, side string) ([]points, error) {
	groups, err := e.group(by, of)
	var all []points
	for _, g := range groups {
		s := points{g.labels, g.first, nothing(g.last - g.first + 1)}
		for _, one := range g.of {
			for i, v := range one.values {
				if !there(v) {
					continue
				}
				at := &s.values[one.first-g.first+i]
				if there(*at) {
					return nil, several(side, g.labels)
				}
				*at = v
			}
		}
		all = append(all, s)
	}
	return all, err
}

// presence tells by the labels of a matching at which points some series have values.
func (e *run) presence(by *logql.Grouping, of []points) (map[string]*points, error) {
	groups, err := e.group(by, of)
	m := map[string]*points{}
	for _, g := range groups {
		s := g.fold("count")
		m[key(g.labels)] = &s
	}
	return m, err
}

// keepIf keeps the points of series on the left that are on the right too, or are not.
func (e *run) keepIf(by *logql.Grouping, left, right []points, is bool) (outcome, error) {
	at, err := e.presence(by, right)
	if err != nil {
		return outcome{}, err
	}
	for _, s := range left {
		if err := e.tick(); err != nil {
			return outcome{}, err
		}
		with := at[key(grouped(s.labels, by))]
		for i := range s.values {
			if with.has(s.first+i) != is {
				s.values[i] = math.Float64frombits(missing)
			}
		}
	}
	return outcome{series: left}, nil
}

func (s *points) has(point int) bool {
	if s == nil || point < s.first || point >= s.first+len(s.values) {
		return false
	}
	return there(s.values[point-s.first])
}

// either has the points of the series on the left, and those on the right that do not match them.
func (e *run) either(by *logql.Grouping, left, right []points) (outcome, error) {
	rest, err := e.keepIf(by, right, left, false)
	if err != nil {
		return outcome{}, err
	}
	all, err := e.merge(&logql.Grouping{Without: true}, append(left, rest.series...), "same")
	return outcome{series: all}, err
}
