package logql

import (
	"strconv"
	"strings"
)

// A printer writes queries in one line.
type printer struct{ strings.Builder }

func printed(write func(*printer)) string {
	var p printer
	write(&p)
	return p.String()
}

// String is the query in one line.
func (e *LogExpr) String() string   { return printed(func(p *printer) { p.log(e) }) }
func (e *RangeAgg) String() string  { return printed(func(p *printer) { p.metric(e) }) }
func (e *VectorAgg) String() string { return printed(func(p *printer) { p.metric(e) }) }
func (e *Binary) String() string    { return printed(func(p *printer) { p.metric(e) }) }
func (e *Number) String() string    { return printed(func(p *printer) { p.metric(e) }) }
func (e *Vector) String() string    { return printed(func(p *printer) { p.metric(e) }) }

// String is the range as it stands in a query.
func (r *LogRange) String() string { return printed(func(p *printer) { p.logRange(r) }) }

// String is the stage as it stands in a query, with its "|".
func (s *Unwrap) String() string      { return printed(func(p *printer) { p.unwrap(s) }) }
func (s *LineFilter) String() string  { return printed(func(p *printer) { p.stage(s) }) }
func (s *JSON) String() string        { return printed(func(p *printer) { p.stage(s) }) }
func (s *Logfmt) String() string      { return printed(func(p *printer) { p.stage(s) }) }
func (s *Regexp) String() string      { return printed(func(p *printer) { p.stage(s) }) }
func (s *Pattern) String() string     { return printed(func(p *printer) { p.stage(s) }) }
func (s *Unpack) String() string      { return printed(func(p *printer) { p.stage(s) }) }
func (s *LineFormat) String() string  { return printed(func(p *printer) { p.stage(s) }) }
func (s *LabelFormat) String() string { return printed(func(p *printer) { p.stage(s) }) }
func (s *Decolorize) String() string  { return printed(func(p *printer) { p.stage(s) }) }
func (s *Drop) String() string        { return printed(func(p *printer) { p.stage(s) }) }
func (s *Keep) String() string        { return printed(func(p *printer) { p.stage(s) }) }
func (s *LabelFilter) String() string { return printed(func(p *printer) { p.stage(s) }) }

// String is the condition as it stands in a query.
func (c *And) String() string         { return printed(func(p *printer) { p.cond(c, 0) }) }
func (c *Or) String() string          { return printed(func(p *printer) { p.cond(c, 0) }) }
func (c *MatchCond) String() string   { return printed(func(p *printer) { p.cond(c, 0) }) }
func (c *CompareCond) String() string { return printed(func(p *printer) { p.cond(c, 0) }) }
func (c *IPCond) String() string      { return printed(func(p *printer) { p.cond(c, 0) }) }

// String is the matcher as it stands in a query.
func (m Matcher) String() string { return m.Name + string(m.Op) + quote(m.Value) }

// String is the grouping as it stands in a query.
func (g *Grouping) String() string {
	word := "by"
	if g.Without {
		word = "without"
	}
	return word + " (" + strings.Join(g.Labels, ", ") + ")"
}

// String is the matching as it stands in a query.
func (m *Matching) String() string {
	word := "ignoring"
	if m.On {
		word = "on"
	}
	return word + " (" + strings.Join(m.Labels, ", ") + ")"
}

// quote is a literal of s. Texts with quotes and backslashes read better without escapes.
func quote(s string) string {
	if strings.ContainsAny(s, "\"\\") && strconv.CanBackquote(s) {
		return "`" + s + "`"
	}
	return strconv.Quote(s)
}

func (p *printer) add(texts ...string) {
	for _, t := range texts {
		p.WriteString(t)
	}
}

func (p *printer) log(e *LogExpr) {
	p.selector(e)
	for _, s := range e.Stages {
		p.add(" ")
		p.stage(s)
	}
}

func (p *printer) selector(e *LogExpr) {
	p.add("{")
	for i, m := range e.Selector {
		if i > 0 {
			p.add(", ")
		}
		p.add(m.String())
	}
	p.add("}")
}

func (p *printer) stage(s Stage) {
	switch s := s.(type) {
	case *LineFilter:
		p.lineFilter(s)
	case *JSON:
		p.add("| json")
		p.extracts(s.Extract)
	case *Logfmt:
		p.add("| logfmt")
		if s.Strict {
			p.add(" --strict")
		}
		if s.KeepEmpty {
			p.add(" --keep-empty")
		}
		p.extracts(s.Extract)
	case *Regexp:
		p.add("| regexp ", quote(s.Expr))
	case *Pattern:
		p.add("| pattern ", quote(s.Text))
	case *Unpack:
		p.add("| unpack")
	case *LineFormat:
		p.add("| line_format ", quote(s.Template))
	case *LabelFormat:
		p.labelFormat(s)
	case *Decolorize:
		p.add("| decolorize")
	case *Drop:
		p.add("| drop ")
		p.nameMatches(s.Labels)
	case *Keep:
		p.add("| keep ")
		p.nameMatches(s.Labels)
	case *LabelFilter:
		p.add("| ")
		p.filter(s.Cond)
	}
}

func (p *printer) lineFilter(s *LineFilter) {
	p.add(string(s.Op))
	for i, a := range s.Any {
		if i > 0 {
			p.add(" or")
		}
		if a.IP {
			p.add(" ip(", quote(a.Text), ")")
		} else {
			p.add(" ", quote(a.Text))
		}
	}
}

func (p *printer) labelFormat(s *LabelFormat) {
	p.add("| label_format ")
	for i, r := range s.Set {
		if i > 0 {
			p.add(", ")
		}
		if r.From != "" {
			p.add(r.Name, "=", r.From)
		} else {
			p.add(r.Name, "=", quote(r.Template))
		}
	}
}

func (p *printer) extracts(all []Extract) {
	for i, e := range all {
		if i > 0 {
			p.add(",")
		}
		p.add(" ", e.Name)
		if e.Path != e.Name {
			p.add("=", quote(e.Path))
		}
	}
}

func (p *printer) nameMatches(all []NameMatch) {
	for i, n := range all {
		if i > 0 {
			p.add(", ")
		}
		p.add(n.Name)
		if n.Op != "" {
			p.add(string(n.Op), quote(n.Value))
		}
	}
}

// filter is the condition of a stage. Its first label may have the name of a stage, after which
// != and !~ would be line filters: then it stands in brackets.
func (p *printer) filter(c Cond) {
	first := c
	for {
		switch f := first.(type) {
		case *And:
			first = f.Left
			continue
		case *Or:
			first = f.Left
			continue
		}
		break
	}
	name, op := "", ""
	switch f := first.(type) {
	case *MatchCond:
		name, op = f.Name, string(f.Op)
	case *CompareCond:
		name, op = f.Name, string(f.Op)
	case *IPCond:
		name, op = f.Name, string(f.Op)
	}
	switch strings.ToLower(name) {
	case "json", "logfmt", "unpack", "decolorize":
		if op[0] == '!' {
			p.add("(")
			p.cond(c, 0)
			p.add(")")
			return
		}
	}
	p.cond(c, 0)
}

// cond writes a condition in brackets if it binds less than least: or is 1, and is 2.
func (p *printer) cond(c Cond, least int) {
	left, right, word, binds := Cond(nil), Cond(nil), "", 0
	switch c := c.(type) {
	case *Or:
		left, right, word, binds = c.Left, c.Right, " or ", 1
	case *And:
		left, right, word, binds = c.Left, c.Right, " and ", 2
	case *MatchCond:
		p.add(c.Matcher.String())
		return
	case *CompareCond:
		value := c.Text
		if value == "" {
			value = formatNumber(c.Value)
		}
		p.add(c.Name, string(c.Op), value)
		return
	case *IPCond:
		p.add(c.Name, string(c.Op), "ip(", quote(c.Text), ")")
		return
	}
	if binds < least {
		p.add("(")
		defer p.add(")")
	}
	p.cond(left, binds)
	p.add(word)
	p.cond(right, binds+1)
}

func (p *printer) unwrap(u *Unwrap) {
	p.add("| unwrap ")
	if u.Convert != "" {
		p.add(u.Convert, "(", u.Label, ")")
	} else {
		p.add(u.Label)
	}
	for _, f := range u.Filters {
		p.add(" | ")
		p.filter(f)
	}
}

func (p *printer) logRange(r *LogRange) {
	p.log(r.Log)
	if r.Unwrap != nil {
		p.add(" ")
		p.unwrap(r.Unwrap)
	}
	p.add(r.window())
}

// window is the window of a range, with a space before it if the query has stages.
func (r *LogRange) window() string {
	s := "[" + formatDuration(r.Window) + "]"
	if len(r.Log.Stages) > 0 || r.Unwrap != nil {
		s = " " + s
	}
	if r.Offset != 0 {
		s += " offset " + formatDuration(r.Offset)
	}
	return s
}

func (p *printer) metric(m Metric) {
	switch m := m.(type) {
	case *Number:
		p.add(formatNumber(m.Value))
	case *Vector:
		p.add("vector(", formatNumber(m.Value), ")")
	case *RangeAgg:
		p.add(string(m.Op), "(")
		if m.Op == "quantile_over_time" {
			p.add(formatNumber(m.Param), ", ")
		}
		p.logRange(&m.Range)
		p.add(")")
		if m.Grouping != nil {
			p.add(" ", m.Grouping.String())
		}
	case *VectorAgg:
		p.add(m.head())
		p.metric(m.Of)
		p.add(")")
	case *Binary:
		binds, left, right := m.binds()
		p.operand(m.Left, binds+left)
		p.add(m.operator())
		p.operand(m.Right, binds+right)
	}
}

// head is the text of the aggregation up to the query inside it.
func (m *VectorAgg) head() string {
	s := string(m.Op)
	if m.Grouping != nil {
		s += " " + m.Grouping.String() + " "
	}
	s += "("
	switch m.Op {
	case "topk", "bottomk", "approx_topk":
		s += formatNumber(m.Param) + ", "
	}
	return s
}

// binds says how tightly an operator binds, and by how much more its sides must.
func (m *Binary) binds() (binds, left, right int) {
	binds = precedence(symbolOf(m.Op))
	if m.Op == "^" {
		return binds, 1, 0
	}
	return binds, 0, 1
}

// operator is the operator with its words, in spaces.
func (m *Binary) operator() string {
	s := " " + m.Op + " "
	if m.Bool {
		s += "bool "
	}
	if m.Matching != nil {
		s += m.Matching.String() + " "
	}
	return s
}

// operand writes a side of an operator, in brackets if it must be.
func (p *printer) operand(m Metric, least int) {
	if b, ok := m.(*Binary); ok {
		if binds, _, _ := b.binds(); binds < least {
			p.add("(")
			defer p.add(")")
		}
	}
	p.metric(m)
}
