package logql_test

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"blobtail/logql"
)

// A generator makes trees of the whole grammar.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) generator { return generator{rand.New(rand.NewPCG(seed, 17))} }

func pick[T any](g generator, all ...T) T { return all[g.IntN(len(all))] }

// some makes up to n of something, and at least least.
func some[T any](g generator, least, n int, one func() T) []T {
	var all []T
	for range least + g.IntN(n-least+1) {
		all = append(all, one())
	}
	return all
}

func (g generator) name() string {
	return pick(g, "level", "service_name", "status", "took_ms", "json", "or", "_x1", "By", "unpack", "__error__")
}

func (g generator) text() string {
	return pick(g, "", "web", "GET /", `a "b"`, `c\d`, "e`f", "é", "a\nb", "\xff\x00", "{{.x}}")
}

func (g generator) matcher() logql.Matcher {
	m := logql.Matcher{Name: g.name(), Op: pick(g, logql.Equal, logql.NotEqual, logql.Matches, logql.NotMatches), Value: g.text()}
	if m.Op == logql.Matches || m.Op == logql.NotMatches {
		m.Value = pick(g, "web|api", "a.*", `\d+`, "(?i)x", "")
	}
	return m
}

func (g generator) log() *logql.LogExpr {
	e := &logql.LogExpr{Selector: some(g, 0, 3, g.matcher), Stages: some(g, 0, 4, g.stage)}
	for i := range e.Stages {
		if f, ok := e.Stages[i].(*logql.LineFilter); ok && i > 0 && endsInName(e.Stages[i-1]) {
			f.Op = logql.Contains // != and !~ would belong to the name: no text has such a tree
			f.Any = []logql.LineArg{{Text: g.text()}}
		}
	}
	return e
}

func endsInName(s logql.Stage) bool {
	switch s := s.(type) {
	case *logql.Drop:
		return s.Labels[len(s.Labels)-1].Op == ""
	case *logql.Keep:
		return s.Labels[len(s.Labels)-1].Op == ""
	}
	return false
}

func (g generator) stage() logql.Stage {
	switch g.IntN(16) {
	case 0:
		return &logql.JSON{Extract: some(g, 0, 2, func() logql.Extract {
			return logql.Extract{Name: pick(g, "a", "b1", "json"), Path: pick(g, "a", "x.y", `["x y"][0]`, "a[3].b")}
		})}
	case 1:
		return &logql.Logfmt{Strict: g.IntN(2) == 0, KeepEmpty: g.IntN(2) == 0, Extract: some(g, 0, 2, func() logql.Extract {
			return logql.Extract{Name: g.name(), Path: pick(g, "level", "x.y", "")}
		})}
	case 2:
		return &logql.Regexp{Expr: pick(g, "(?P<a>x+)", `(?P<m>\w+) (?P<p>"\S+")`)}
	case 3:
		return &logql.Pattern{Text: pick(g, "<a>", "<_> <m> <_>", `<ip> - "<m> <_>"`)}
	case 4:
		return &logql.Unpack{}
	case 5:
		return &logql.LineFormat{Template: g.text()}
	case 6:
		return &logql.LabelFormat{Set: []logql.Rename{{Name: "a", From: g.name()}, {Name: "b", Template: g.text()}}}
	case 7:
		return &logql.Decolorize{}
	case 8:
		return &logql.Drop{Labels: some(g, 1, 3, g.nameMatch)}
	case 9:
		return &logql.Keep{Labels: some(g, 1, 3, g.nameMatch)}
	case 10, 11, 12:
		return &logql.LabelFilter{Cond: g.cond(3)}
	}
	return g.lineFilter()
}

func (g generator) nameMatch() logql.NameMatch {
	if g.IntN(2) == 0 {
		return logql.NameMatch{Name: g.name()}
	}
	m := g.matcher()
	return logql.NameMatch(m)
}

func (g generator) lineFilter() logql.Stage {
	f := &logql.LineFilter{Op: pick(g, logql.Contains, logql.ContainsNot, logql.Like, logql.NotLike, logql.Fits, logql.FitsNot)}
	f.Any = some(g, 1, 3, func() logql.LineArg {
		switch f.Op {
		case logql.Like, logql.NotLike:
			return logql.LineArg{Text: pick(g, "", "a.*b", `\d`, "(?i)x")}
		case logql.Fits, logql.FitsNot:
			return logql.LineArg{Text: pick(g, "", "<_>", "a <_> b", "<5>")}
		}
		if g.IntN(4) == 0 {
			return logql.LineArg{Text: g.ip(), IP: true}
		}
		return logql.LineArg{Text: g.text()}
	})
	return f
}

func (g generator) ip() string {
	return pick(g, "10.0.0.1", "10.0.0.0/8", "10.0.0.1-10.0.0.9", "::1", "fe80::/10")
}

func (g generator) cond(depth int) logql.Cond {
	if depth > 0 && g.IntN(2) == 0 {
		if g.IntN(2) == 0 {
			return &logql.And{Left: g.cond(depth - 1), Right: g.cond(depth - 1)}
		}
		return &logql.Or{Left: g.cond(depth - 1), Right: g.cond(depth - 1)}
	}
	switch g.IntN(4) {
	case 0:
		return &logql.IPCond{Name: g.name(), Op: pick(g, logql.Equal, logql.NotEqual), Text: g.ip()}
	case 1:
		c := pick(g, logql.CompareCond{Value: 5, Text: "5"}, logql.CompareCond{Value: -1.5, Text: "-1.5"},
			logql.CompareCond{Value: 5400, Unit: logql.Duration, Text: "1h30m"}, logql.CompareCond{Value: 0.25, Unit: logql.Duration, Text: "250ms"},
			logql.CompareCond{Value: 5000, Unit: logql.Bytes, Text: "5KB"}, logql.CompareCond{Value: 1.5 * 1024 * 1024, Unit: logql.Bytes, Text: "1.5MiB"})
		c.Name, c.Op = g.name(), pick(g, logql.EQ, logql.NE, logql.GT, logql.GE, logql.LT, logql.LE)
		return &c
	}
	return &logql.MatchCond{Matcher: g.matcher()}
}

func (g generator) grouping() *logql.Grouping {
	if g.IntN(2) == 0 {
		return nil
	}
	return &logql.Grouping{Without: g.IntN(2) == 0, Labels: some(g, 0, 2, g.name)}
}

func (g generator) rangeAgg() logql.Metric {
	r := &logql.RangeAgg{Op: pick[logql.RangeOp](g, "count_over_time", "rate", "bytes_over_time", "bytes_rate", "absent_over_time", "rate_counter", "sum_over_time",
		"avg_over_time", "min_over_time", "max_over_time", "first_over_time", "last_over_time", "stddev_over_time", "stdvar_over_time", "quantile_over_time")}
	r.Range = logql.LogRange{Log: g.log(), Window: pick(g, time.Nanosecond, 1500*time.Millisecond, time.Minute, 90*time.Minute, 7*24*time.Hour)}
	if g.IntN(4) == 0 {
		r.Range.Offset = pick(g, time.Hour, -time.Minute)
	}
	if need := r.Op.Unwraps(); need == logql.Always || need == logql.Maybe && g.IntN(2) == 0 {
		r.Range.Unwrap = &logql.Unwrap{Label: g.name(), Convert: pick(g, "", "bytes", "duration", "duration_seconds"),
			Filters: some(g, 0, 2, func() logql.Cond { return g.cond(1) })}
	}
	if r.Op.Groups() {
		r.Grouping = g.grouping()
	}
	if r.Op == "quantile_over_time" {
		r.Param = pick(g, 0.5, 0.99, 1)
	}
	return r
}

func (g generator) vectorAgg(depth int) logql.Metric {
	v := &logql.VectorAgg{Op: pick[logql.VectorOp](g, "sum", "count", "avg", "min", "max", "stddev", "stdvar", "topk", "bottomk", "approx_topk", "sort", "sort_desc")}
	v.Of = pick(g, g.rangeAgg, func() logql.Metric { return &logql.Vector{Value: 3} }, func() logql.Metric { return g.vectorAgg(depth) })()
	switch v.Op {
	case "topk", "bottomk":
		v.Grouping = g.grouping()
		v.Param = pick(g, 1.0, 10)
	case "approx_topk":
		v.Param = 3
	case "sort", "sort_desc":
	default:
		v.Grouping = g.grouping()
	}
	return v
}

// metric is a metric query; series: not one made of numbers alone.
func (g generator) metric(depth int, series bool) logql.Metric {
	kind := g.IntN(8)
	switch {
	case kind < 2:
		return g.rangeAgg()
	case kind < 4:
		return g.vectorAgg(depth)
	case kind == 4:
		return &logql.Vector{Value: pick(g, 0, 1.5, 1e21)}
	case kind == 5 && !series:
		return &logql.Number{Value: pick(g, 0, -1, 0.25, 1e-9)}
	case depth == 0:
		return g.rangeAgg()
	}
	b := &logql.Binary{Op: pick(g, "or", "and", "unless", "==", "!=", ">", ">=", "<", "<=", "+", "-", "*", "/", "%", "^")}
	set := b.Op == "or" || b.Op == "and" || b.Op == "unless"
	b.Left, b.Right = g.metric(depth-1, set || series), g.metric(depth-1, set)
	if strings.ContainsAny(b.Op, "=<>") {
		b.Bool = g.IntN(2) == 0
	}
	if g.IntN(3) == 0 {
		b.Matching = &logql.Matching{On: g.IntN(2) == 0, Labels: some(g, 0, 2, g.name)}
	}
	return b
}

func (g generator) expr() logql.Expr {
	if g.IntN(2) == 0 {
		return g.log()
	}
	return g.metric(3, false)
}

// TestGenerated ensures that generated trees are printed as texts with the same trees.
func TestGenerated(t *testing.T) {
	g := newGenerator(1)
	for range 20_000 {
		tree := g.expr()
		for _, text := range []string{tree.String(), logql.Format(tree)} {
			again, err := logql.Parse(text)
			if err != nil {
				t.Fatalf("%s\n%v", text, err)
			}
			if !reflect.DeepEqual(tree, again) {
				t.Fatalf("%s\nhas another tree:\n%s", text, again)
			}
		}
	}
}
