package metric_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
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

// A span is an aggregation over time.
type span struct {
	op      string
	param   float64
	service string // "" for all
	stages  []plain
	unwrap  string // a label
	convert string
	clean   bool // with | __error__="" behind the unwrap
	window  time.Duration
	offset  time.Duration
	by      grouping
	behind  bool // the pipeline stands behind the range
}

func (s *span) scalar() bool { return false }

func (s *span) text(int) string {
	var b strings.Builder
	b.WriteString(s.op + "(")
	if s.op == "quantile_over_time" {
		fmt.Fprintf(&b, "%v, ", s.param)
	}
	b.WriteString("{")
	if s.service != "" {
		fmt.Fprintf(&b, "service_name=%q", s.service)
	}
	b.WriteString("} ")
	span := fmt.Sprintf("[%s] ", s.window)
	if s.offset != 0 {
		span += fmt.Sprintf("offset %s ", s.offset)
	}
	if s.behind {
		b.WriteString(span)
	}
	for _, one := range s.stages {
		b.WriteString(one.text + " ")
	}
	if s.unwrap != "" {
		label := s.unwrap
		if s.convert != "" {
			label = s.convert + "(" + label + ")"
		}
		b.WriteString("| unwrap " + label + " ")
		if s.clean {
			b.WriteString(`| __error__="" `)
		}
	}
	if !s.behind {
		b.WriteString(span)
	}
	return b.String() + ")" + s.by.text()
}

// A taken is a sample.
type taken struct {
	ns int64
	v  float64
}

func (s *span) at(w *world, ns int64, named []string) (answer, error) {
	end := ns - int64(s.offset)
	begin := end - int64(s.window)
	samples, labels := map[string][]taken{}, map[string]map[string]string{}
	for _, r := range w.items {
		if r.time < begin || r.time >= end || s.service != "" && r.service != s.service {
			continue
		}
		all, v, ok, err := s.sample(r.begin(w.lines), named)
		if err != nil {
			return answer{}, err
		}
		if ok {
			samples[id(all)] = append(samples[id(all)], taken{r.time, v})
			labels[id(all)] = all
		}
	}
	a := answer{all: map[string]one{}}
	if s.op == "absent_over_time" {
		if len(samples) == 0 {
			all := map[string]string{"service_name": s.service}
			all = only(all, true, nil)
			a.all[id(all)] = one{all, 1}
		}
		return a, nil
	}
	for k, of := range samples {
		a.all[k] = one{labels[k], s.over(of, begin, end)}
	}
	return a, nil
}

// sample runs the pipeline on a record.
func (s *span) sample(w *work, named []string) (labels map[string]string, v float64, ok bool, err error) {
	for _, one := range s.stages {
		if !one.run(w) {
			return nil, 0, false, nil
		}
	}
	v = 1
	switch {
	case s.unwrap != "":
		text, _ := w.get(s.unwrap)
		if text == "" {
			return nil, 0, false, nil
		}
		read := map[string]func(string) (float64, bool){"": readNumber, "bytes": readSize, "duration": readDuration}[s.convert]
		if v, ok = read(text); !ok {
			w.failed = "SampleExtractionErr"
		}
		if s.clean && w.failed != "" {
			return nil, 0, false, nil
		}
	case strings.HasPrefix(s.op, "bytes"):
		v = float64(len(w.text))
	}
	if w.failed != "" {
		return nil, 0, false, errors.New("pipeline error: '" + w.failed + "'")
	}
	if s.by.word == "" {
		return w.series(named, s.unwrap), v, true, nil
	}
	if s.by.word == "by" {
		return s.by.of(w.series(s.by.names, "")), v, true, nil
	}
	return s.by.of(w.series(named, s.unwrap)), v, true, nil
}

// over aggregates the samples of a window.
func (s *span) over(of []taken, begin, end int64) float64 {
	n, sum, low, high := float64(len(of)), 0.0, math.NaN(), math.NaN()
	var values []float64
	for _, t := range of {
		sum += t.v
		values = append(values, t.v)
		if math.IsNaN(low) || t.v < low {
			low = t.v
		}
		if math.IsNaN(high) || t.v > high {
			high = t.v
		}
	}
	switch s.op {
	case "count_over_time":
		return n
	case "rate", "bytes_rate":
		return sum / s.window.Seconds()
	case "bytes_over_time", "sum_over_time":
		return sum
	case "avg_over_time":
		return sum / n
	case "min_over_time":
		return low
	case "max_over_time":
		return high
	case "first_over_time":
		return of[0].v
	case "last_over_time":
		return of[len(of)-1].v
	case "stdvar_over_time":
		return variance(values)
	case "stddev_over_time":
		return math.Sqrt(variance(values))
	case "quantile_over_time":
		return nth(s.param, values)
	case "rate_counter":
		return speed(of, begin, end)
	}
	panic(s.op)
}

func variance(values []float64) float64 {
	mean, sum := 0.0, 0.0
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	return sum / float64(len(values))
}

func nth(q float64, values []float64) float64 {
	slices.Sort(values) // NaN first
	if q > 1 {
		return math.Inf(1)
	}
	rank := q * float64(len(values)-1)
	low, high := math.Floor(rank), math.Min(math.Floor(rank)+1, float64(len(values)-1))
	return values[int(low)]*(1-(rank-low)) + values[int(high)]*(rank-low)
}

// speed is the rate of a counter, as Prometheus defines it.
func speed(of []taken, begin, end int64) float64 {
	last := of[len(of)-1]
	between := float64(last.ns-of[0].ns) / 1e9
	if len(of) < 2 || between == 0 {
		return 0
	}
	grown := last.v - of[0].v
	for i := 1; i < len(of); i++ {
		if of[i].v < of[i-1].v {
			grown += of[i-1].v
		}
	}
	mean := between / float64(len(of)-1)
	toBegin, toEnd := float64(of[0].ns-begin)/1e9, float64(end-last.ns)/1e9
	if toBegin >= 1.1*mean {
		toBegin = mean / 2
	}
	if toEnd >= 1.1*mean {
		toEnd = mean / 2
	}
	if grown > 0 && of[0].v >= 0 {
		toBegin = math.Min(toBegin, between*of[0].v/grown)
	}
	return grown * (between + toBegin + toEnd) / between / (float64(end-begin) / 1e9)
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

// best takes the best of the series that are left, again and again. The first of equal ones is the
// better one.
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

// apply computes the value, and whether it is one: a comparison without bool that is false has none.
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

// drawNode makes an expression, at most so deep.
func drawNode(rng *rand.Rand, depth int) node {
	switch n := rng.IntN(10); {
	case depth == 0 || n < 3:
		return drawSpan(rng)
	case n < 7:
		return drawFold(rng, depth)
	case n == 7 && rng.IntN(3) == 0:
		return constant(of(rng, 0, 1, 2.5, 7))
	}
	return drawBoth(rng, depth)
}

func drawGrouping(rng *rand.Rand, words ...string) grouping {
	var names []string
	for range rng.IntN(3) {
		name := drawName(rng)
		if rng.IntN(3) == 0 {
			name = "service_name" // so that operators find partners
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return grouping{of(rng, words...), names}
}

func drawSpan(rng *rand.Rand) node {
	s := &span{
		op: of(rng, "count_over_time", "count_over_time", "rate", "bytes_over_time", "bytes_rate", "absent_over_time", "rate_counter",
			"sum_over_time", "avg_over_time", "min_over_time", "max_over_time", "first_over_time", "last_over_time", "stddev_over_time", "stdvar_over_time", "quantile_over_time"),
		service: of(rng, "", "", "", "web", "web", "web", "web", "api", "api", "missing"),
		stages:  drawStages(rng),
		window:  of(rng, time.Second, 7*time.Second, 10*time.Second, time.Minute, 90*time.Second, 5*time.Minute, 10*time.Minute, time.Hour, time.Hour),
		param:   of(rng, 0, 0.25, 0.5, 0.99, 1, 2),
		behind:  rng.IntN(4) == 0,
	}
	if rng.IntN(5) == 0 {
		s.offset = of(rng, time.Second, time.Minute, -time.Minute, 13*time.Second)
	}
	switch s.op {
	case "count_over_time", "bytes_over_time", "bytes_rate", "absent_over_time":
		return s
	case "rate":
		if rng.IntN(2) == 0 {
			return s
		}
	case "rate_counter", "sum_over_time":
	default:
		if rng.IntN(2) == 0 {
			s.by = drawGrouping(rng, "by", "without")
		}
	}
	switch rng.IntN(6) {
	case 0:
		s.unwrap, s.convert = "took", "duration"
	case 1:
		s.unwrap, s.convert = "size", "bytes"
	default:
		s.unwrap = of(rng, "v", "v", "v", "v", "status", "n", "http_code")
	}
	s.clean = rng.IntN(5) > 0
	return s
}

func drawFold(rng *rand.Rand, depth int) node {
	f := &fold{
		op: of(rng, "sum", "sum", "count", "avg", "min", "max", "stddev", "stdvar", "topk", "bottomk", "approx_topk", "sort", "sort_desc"),
		k:  1 + rng.IntN(4), ahead: rng.IntN(2) == 0, of: drawNode(rng, depth-1),
	}
	if !strings.HasPrefix(f.op, "sort") && f.op != "approx_topk" && rng.IntN(4) > 0 {
		f.by = drawGrouping(rng, "by", "by", "without")
	}
	for f.of.scalar() {
		f.of = drawNode(rng, depth-1)
	}
	return f
}

func drawBoth(rng *rand.Rand, depth int) node {
	b := &both{op: of(rng, "+", "-", "*", "/", "%", "^", "==", "!=", ">", ">=", "<", "<=", "and", "or", "unless")}
	b.left, b.right = drawNode(rng, depth-1), drawNode(rng, depth-1)
	set := b.binds() < 3
	if !set && rng.IntN(3) == 0 {
		b.right = number(of(rng, 0, 1, 2, -3, 0.5))
	} else if !set && rng.IntN(6) == 0 {
		b.left = number(of(rng, 0, 1, 2, -3, 0.5))
	}
	for set && b.left.scalar() {
		b.left = drawNode(rng, depth-1)
	}
	for set && b.right.scalar() {
		b.right = drawNode(rng, depth-1)
	}
	b.bool = b.compares() && rng.IntN(3) == 0
	if !b.left.scalar() && !b.right.scalar() && rng.IntN(2) == 0 {
		b.by = drawGrouping(rng, "on", "ignoring")
	}
	return b
}
