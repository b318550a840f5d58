package metric_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// A node is an expression of the second evaluator.
type node interface {
	// text writes it. The result binds at least as tightly as least.
	text(least int) string
	// at evaluates it at a time. Named are the fields that the expression around it names.
	at(w *world, ns int64, named []string) (answer, error)
	scalar() bool
}

// A world has records, as one of the views shows them.
type world struct {
	items []*item
	lines bool
	// unclear is set if the result depends on the rounding of numbers that are nearly equal.
	unclear bool
}

// weigh notes that two numbers are compared.
func (w *world) weigh(a, b float64) {
	if a != b && near(a, b) && !math.IsNaN(a) {
		w.unclear = true
	}
}

// An answer is a number, or values by the texts of their labels.
type answer struct {
	number float64
	all    map[string]one
}

type one struct {
	labels map[string]string
	v      float64
}

// id is a text of labels, by which they are also in order.
func id(labels map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		b.WriteString(name + "\x01" + labels[name] + "\x00")
	}
	return b.String()
}

// only are some of the labels, or all but some.
func only(labels map[string]string, without bool, names []string) map[string]string {
	m := maps.Clone(labels)
	maps.DeleteFunc(m, func(name, v string) bool { return slices.Contains(names, name) == without || v == "" })
	return m
}

type number float64

func (n number) text(int) string                            { return fmt.Sprint(float64(n)) }
func (n number) at(*world, int64, []string) (answer, error) { return answer{number: float64(n)}, nil }
func (n number) scalar() bool                               { return true }

type constant float64

func (c constant) text(int) string { return fmt.Sprintf("vector(%v)", float64(c)) }
func (c constant) scalar() bool    { return false }
func (c constant) at(*world, int64, []string) (answer, error) {
	return answer{all: map[string]one{"": {nil, float64(c)}}}, nil
}

// A grouping is none if it has no word.
type grouping struct {
	word  string // by or without
	names []string
}

func (g grouping) text() string {
	if g.word == "" {
		return ""
	}
	return " " + g.word + " (" + strings.Join(g.names, ", ") + ") "
}

func (g grouping) of(labels map[string]string) map[string]string {
	return only(labels, g.word == "without", g.names)
}

// A fold is an aggregation over series.
type fold struct {
	op    string
	k     int
	by    grouping
	ahead bool // the grouping stands before the operand
	of    node
}

func (f *fold) scalar() bool { return false }

func (f *fold) text(int) string {
	k := ""
	if f.ranks() {
		k = fmt.Sprintf("%d, ", f.k)
	}
	if f.ahead {
		return f.op + f.by.text() + "(" + k + f.of.text(0) + ")"
	}
	return f.op + "(" + k + f.of.text(0) + ")" + f.by.text()
}

func (f *fold) ranks() bool { return strings.HasSuffix(f.op, "topk") || f.op == "bottomk" }

func (f *fold) at(w *world, ns int64, named []string) (answer, error) {
	kept := f.ranks() || strings.HasPrefix(f.op, "sort")
	var inner []string
	for _, name := range named {
		if kept || f.by.word == "without" && !slices.Contains(f.by.names, name) {
			inner = append(inner, name)
		}
	}
	if f.by.word == "by" {
		inner = append(inner, f.by.names...)
	}
	of, err := f.of.at(w, ns, inner)
	if err != nil || strings.HasPrefix(f.op, "sort") {
		return of, err
	}
	groups, labels := map[string][]one{}, map[string]map[string]string{}
	for _, k := range slices.Sorted(maps.Keys(of.all)) {
		all := f.by.of(of.all[k].labels)
		groups[id(all)] = append(groups[id(all)], of.all[k])
		labels[id(all)] = all
	}
	a := answer{all: map[string]one{}}
	for k, g := range groups {
		if f.ranks() {
			for _, s := range f.best(w, g) {
				a.all[id(s.labels)] = s
			}
			continue
		}
		a.all[k] = one{labels[k], f.join(g)}
	}
	return a, nil
}

// best takes the best of the series that are left, again and again. The first of equal ones is
// the better one.
func (f *fold) best(w *world, of []one) (best []one) {
	of = slices.Clone(of)
	for range min(f.k, len(of)) {
		at := 0
		for i, s := range of {
			v := of[at].v
			w.weigh(v, s.v)
			if math.IsNaN(v) && !math.IsNaN(s.v) || f.op == "bottomk" && s.v < v || f.op != "bottomk" && s.v > v {
				at = i
			}
		}
		best = append(best, of[at])
		of = slices.Delete(of, at, at+1)
	}
	return best
}

func (f *fold) join(of []one) float64 {
	n, sum, low, high := float64(len(of)), 0.0, math.NaN(), math.NaN()
	var values []float64
	for _, s := range of {
		sum += s.v
		values = append(values, s.v)
		if math.IsNaN(low) || s.v < low {
			low = s.v
		}
		if math.IsNaN(high) || s.v > high {
			high = s.v
		}
	}
	switch f.op {
	case "sum":
		return sum
	case "count":
		return n
	case "avg":
		return sum / n
	case "min":
		return low
	case "max":
		return high
	case "stdvar":
		return variance(values)
	case "stddev":
		return math.Sqrt(variance(values))
	}
	panic(f.op)
}

// A both is an operator with its operands.
type both struct {
	op          string
	bool        bool
	by          grouping // its word is on or ignoring
	left, right node
}

func (b *both) scalar() bool { return b.left.scalar() && b.right.scalar() }

// binds is how tightly an operator binds.
func (b *both) binds() int {
	for i, all := range [][]string{{"or"}, {"and", "unless"}, {"==", "!=", ">", ">=", "<", "<="}, {"+", "-"}, {"*", "/", "%"}, {"^"}} {
		if slices.Contains(all, b.op) {
			return i + 1
		}
	}
	panic(b.op)
}

func (b *both) text(least int) string {
	binds := b.binds()
	left, right := binds, binds+1
	if b.op == "^" {
		left, right = binds+1, binds
	}
	op := b.op
	if b.bool {
		op += " bool"
	}
	s := b.left.text(left) + " " + op + b.by.text() + " " + b.right.text(right)
	if binds < least {
		return "(" + s + ")"
	}
	return s
}

func (b *both) at(w *world, ns int64, named []string) (answer, error) {
	if b.by.word == "on" {
		named = slices.Concat(named, b.by.names)
	}
	l, err := b.left.at(w, ns, named)
	if err != nil {
		return l, err
	}
	r, err := b.right.at(w, ns, named)
	if err != nil {
		return r, err
	}
	if b.scalar() {
		v, holds := b.apply(w, l.number, r.number)
		if !holds {
			v = 0
		} else if b.compares() {
			v = 1
		}
		return answer{number: v}, nil
	}
	a := answer{all: map[string]one{}}
	switch {
	case b.left.scalar() || b.right.scalar():
		for k, s := range r.all {
			if v, ok := b.apply(w, l.number, s.v); ok {
				if b.compares() && !b.bool {
					v = s.v
				}
				a.all[k] = one{s.labels, v}
			}
		}
		for k, s := range l.all {
			if v, ok := b.apply(w, s.v, r.number); ok {
				a.all[k] = one{s.labels, v}
			}
		}
		return a, nil
	case b.op == "and" || b.op == "unless" || b.op == "or":
		return b.sets(l, r), nil
	}
	return b.match(w, l, r)
}

func (b *both) sign(labels map[string]string) map[string]string {
	return only(labels, b.by.word != "on", b.by.names)
}

func (b *both) sets(l, r answer) answer {
	a := answer{all: map[string]one{}}
	has := func(of answer, s one) bool {
		for _, other := range of.all {
			if id(b.sign(other.labels)) == id(b.sign(s.labels)) {
				return true
			}
		}
		return false
	}
	for k, s := range l.all {
		if b.op == "or" || has(r, s) == (b.op == "and") {
			a.all[k] = s
		}
	}
	for k, s := range r.all {
		if b.op == "or" && !has(l, s) {
			a.all[k] = s
		}
	}
	return a
}

func (b *both) match(w *world, l, r answer) (answer, error) {
	a := answer{all: map[string]one{}}
	rights := map[string]one{}
	for _, s := range r.all {
		k := id(b.sign(s.labels))
		if _, ok := rights[k]; ok {
			return a, errors.New("multiple matches")
		}
		rights[k] = s
	}
	for _, s := range l.all {
		labels := b.sign(s.labels)
		other, ok := rights[id(labels)]
		if !ok {
			continue
		}
		v, ok := b.apply(w, s.v, other.v)
		if !ok {
			continue
		}
		if _, ok := a.all[id(labels)]; ok {
			return a, errors.New("multiple matches")
		}
		a.all[id(labels)] = one{labels, v}
	}
	return a, nil
}

func (b *both) compares() bool { return b.binds() == 3 }

// apply computes the value, and whether it is one: a comparison without bool that is false has
// none.
func (b *both) apply(of *world, v, w float64) (float64, bool) {
	of.weigh(v, w)
	if b.op == "%" {
		of.weigh(math.Round(v/w), v/w)
	}
	switch b.op {
	case "+":
		return v + w, true
	case "-":
		return v - w, true
	case "*":
		return v * w, true
	case "/":
		return v / w, true
	case "%":
		return math.Mod(v, w), true
	case "^":
		return math.Pow(v, w), true
	}
	holds := map[string]bool{"==": v == w, "!=": v != w, ">": v > w, ">=": v >= w, "<": v < w, "<=": v <= w}[b.op]
	switch {
	case !b.bool:
		return v, holds
	case holds:
		return 1, true
	}
	return 0, true
}
