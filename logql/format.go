package logql

import "strings"

// maxLine is how long a metric query may be for one line of [Format].
const maxLine = 80

// Format is a query in several lines, for people: each stage of a log query stands in its own
// line, and so does each part of a metric query that is long or has stages. It parses to the
// same tree.
func Format(e Expr) string {
	f := &formatter{}
	f.expr(e, 0)
	return f.String()
}

// A formatter writes queries in several lines.
type formatter struct{ printer }

func (f *formatter) line(level int) {
	f.add("\n", strings.Repeat("  ", level))
}

func (f *formatter) expr(e Expr, level int) {
	switch e := e.(type) {
	case *LogExpr:
		f.logLines(e, level)
	case Metric:
		f.metricLines(e, level)
	}
}

func (f *formatter) logLines(e *LogExpr, level int) {
	f.selector(e)
	for _, s := range e.Stages {
		f.line(level + 1)
		f.stage(s)
	}
}

func (f *formatter) metricLines(m Metric, level int) {
	if fits(m, maxLine-2*level) {
		f.metric(m)
		return
	}
	switch m := m.(type) {
	case *RangeAgg:
		f.rangeLines(m, level)
	case *VectorAgg:
		f.add(strings.TrimRight(m.head(), " "))
		f.line(level + 1)
		f.metricLines(m.Of, level+1)
		f.line(level)
		f.add(")")
	case *Binary:
		f.binaryLines(m, level)
	default:
		f.metric(m)
	}
}

func (f *formatter) rangeLines(m *RangeAgg, level int) {
	f.add(string(m.Op), "(")
	f.line(level + 1)
	if m.Op == "quantile_over_time" {
		f.add(formatNumber(m.Param), ",")
		f.line(level + 1)
	}
	f.logLines(m.Range.Log, level+1)
	if m.Range.Unwrap != nil {
		f.line(level + 2)
		f.unwrap(m.Range.Unwrap)
	}
	if len(m.Range.Log.Stages) > 0 || m.Range.Unwrap != nil {
		f.line(level + 2)
	}
	f.add(strings.TrimPrefix(m.Range.window(), " "))
	f.line(level)
	f.add(")")
	if m.Grouping != nil {
		f.add(" ", m.Grouping.String())
	}
}

func (f *formatter) binaryLines(m *Binary, level int) {
	binds, left, right := m.binds()
	f.side(m.Left, binds+left, level)
	f.line(level)
	f.add(strings.TrimSpace(m.operator()))
	f.line(level)
	f.side(m.Right, binds+right, level)
}

// side writes a side of an operator, in brackets if it must be.
func (f *formatter) side(m Metric, least, level int) {
	if b, ok := m.(*Binary); ok {
		if binds, _, _ := b.binds(); binds < least {
			f.add("(")
			f.line(level + 1)
			f.metricLines(m, level+1)
			f.line(level)
			f.add(")")
			return
		}
	}
	f.metricLines(m, level)
}

// fits reports whether a query has no stages, and takes width characters at most.
func fits(m Metric, width int) bool {
	budget := width
	return small(m, &budget) && len(m.String()) <= width
}

// small reports whether a query has no stages, and at most budget nodes. It looks at no more
// than these, so that a long query is not walked from each of its nodes.
func small(m Metric, budget *int) bool {
	if *budget--; *budget < 0 {
		return false
	}
	switch m := m.(type) {
	case *RangeAgg:
		return len(m.Range.Log.Stages) == 0 && m.Range.Unwrap == nil
	case *VectorAgg:
		return small(m.Of, budget)
	case *Binary:
		return small(m.Left, budget) && small(m.Right, budget)
	}
	return true
}
