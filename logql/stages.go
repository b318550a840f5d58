package logql

import "time"

// log is a selector and its stages.
func (p *parser) log() *LogExpr {
	e := &LogExpr{Selector: p.selector()}
	for s := p.stage(); s != nil; s = p.stage() {
		e.Stages = append(e.Stages, s)
	}
	return e
}

// selector is a list of matchers in braces.
func (p *parser) selector() []Matcher {
	p.want("{")
	var all []Matcher
	for !p.take("}") && p.err == nil {
		m := Matcher{Name: p.name()}
		m.Op = p.matchOp()
		m.Value = p.matchValue(m.Op)
		all = append(all, m)
		if !p.peek().is("}") {
			if t := p.peek(); !p.take(",") {
				p.unexpected(t, "}", ",")
			}
		}
	}
	return all
}

// matchOp is the operator of a matcher, which must be next.
func (p *parser) matchOp() MatchOp {
	switch t := p.peek(); {
	case t.is("="), t.is("!="), t.is("=~"), t.is("!~"):
		p.at++
		return MatchOp(t.text)
	default:
		p.unexpected(t, "=", "=~", "!~", "!=")
		return ""
	}
}

// matchValue is the text of a matcher.
func (p *parser) matchValue(op MatchOp) string {
	t := p.peek()
	value := p.str()
	if op == Matches || op == NotMatches {
		p.checkRegexp(t, value)
	}
	return value
}

// stage is a step of a pipeline; nil: there is none.
func (p *parser) stage() Stage {
	t := p.peek()
	if t.kind != symbol {
		return nil
	}
	switch t.text {
	case "|=", "!=", "|~", "!~", "|>", "!>":
		return p.lineFilter()
	case "|":
		p.at++
		return p.pipe()
	}
	return nil
}

// lineFilter is an operator and its texts.
func (p *parser) lineFilter() Stage {
	f := &LineFilter{Op: LineOp(p.next().text)}
	for {
		t := p.peek()
		var a LineArg
		if t.is("ip") {
			if f.Op != Contains && f.Op != ContainsNot {
				p.fail(t, "syntax error: ip is of |= and !=, not of "+string(f.Op))
			}
			a = LineArg{Text: p.ip(), IP: true}
		} else {
			a.Text = p.str()
		}
		switch f.Op {
		case Like, NotLike:
			p.checkRegexp(t, a.Text)
		case Fits, FitsNot:
			p.checkFits(t, a.Text)
		}
		f.Any = append(f.Any, a)
		if !p.take("or") {
			return f
		}
	}
}

// ip is an address, a network or a range of addresses in the brackets of ip(…).
func (p *parser) ip() string {
	p.want("ip")
	p.want("(")
	t := p.peek()
	s := p.str()
	p.checkIP(t, s)
	p.want(")")
	return s
}

// pipe is a stage after its "|". A word is a stage, unless a comparison follows it.
func (p *parser) pipe() Stage {
	t := p.peek()
	if t.kind == word && p.opensStage(t) {
		p.at++
		return p.named(t)
	}
	if t.is("unwrap") && !comparison(p.ahead(1)) {
		p.fail(t, "syntax error: unexpected unwrap; it is the last stage in the range of a metric query, and only label filters follow it")
		return nil
	}
	if after := p.ahead(1); t.kind == word && !comparison(after) && after.kind != broken {
		p.fail(after, "syntax error: unexpected "+after.name()+"; there is no stage "+clip(t.text)+", and label filters compare, such as "+t.text+"=\"x\"")
	}
	return &LabelFilter{p.cond()}
}

// opensStage reports whether t, the next word, is a stage. After a stage without arguments != and !~
// are line filters.
func (p *parser) opensStage(t token) bool {
	after := p.ahead(1)
	switch t.key {
	case "json", "logfmt", "unpack", "decolorize":
		return !comparison(after) || after.is("!=") || after.is("!~")
	case "regexp", "pattern", "line_format", "label_format", "drop", "keep", "distinct":
		return !comparison(after)
	}
	return false
}

// comparison reports whether t compares a label with something.
func comparison(t token) bool {
	if t.kind != symbol {
		return false
	}
	switch t.text {
	case "=", "==", "!=", "=~", "!~", ">", ">=", "<", "<=":
		return true
	}
	return false
}

// named is the stage of the word t.
func (p *parser) named(t token) Stage {
	switch t.key {
	case "json":
		return &JSON{p.extracts(true)}
	case "logfmt":
		return p.logfmt()
	case "regexp":
		at := p.peek()
		r := &Regexp{p.str()}
		p.checkGroups(at, r.Expr)
		return r
	case "pattern":
		at := p.peek()
		r := &Pattern{p.str()}
		p.checkPattern(at, r.Text)
		return r
	case "unpack":
		return &Unpack{}
	case "line_format":
		return &LineFormat{p.str()}
	case "label_format":
		return p.labelFormat()
	case "decolorize":
		return &Decolorize{}
	case "drop":
		return &Drop{p.nameMatches()}
	case "keep":
		return &Keep{p.nameMatches()}
	}
	p.fail(t, "blobtail does not have "+t.key)
	return nil
}

func (p *parser) logfmt() Stage {
	l := &Logfmt{}
	for p.peek().kind == flag {
		switch t := p.next(); t.text {
		case "--strict":
			l.Strict = true
		case "--keep-empty":
			l.KeepEmpty = true
		default:
			p.unexpected(t, "--strict", "--keep-empty")
		}
	}
	l.Extract = p.extracts(false)
	return l
}

// extracts are the names after json and logfmt, if there are any.
func (p *parser) extracts(paths bool) []Extract {
	var all []Extract
	if p.peek().kind != word {
		return nil
	}
	for {
		e := Extract{Name: p.name()}
		e.Path = e.Name
		if p.take("=") {
			t := p.peek()
			e.Path = p.str()
			if paths {
				p.checkPath(t, e.Path)
			}
		}
		all = append(all, e)
		if !p.take(",") {
			return all
		}
	}
}

func (p *parser) labelFormat() Stage {
	f := &LabelFormat{}
	seen := map[string]bool{}
	for {
		t := p.peek()
		r := Rename{Name: p.name()}
		if seen[r.Name] {
			p.fail(t, "multiple label name '"+r.Name+"' not allowed in a single format operation")
		}
		if r.Name == "__error__" || r.Name == "__error_details__" {
			p.fail(t, r.Name+" cannot be formatted")
		}
		seen[r.Name] = true
		p.want("=")
		switch v := p.peek(); v.kind {
		case word:
			r.From = p.name()
		case text:
			r.Template = p.str()
		default:
			p.unexpected(v, "IDENTIFIER", "STRING")
		}
		f.Set = append(f.Set, r)
		if !p.take(",") {
			return f
		}
	}
}

// nameMatches are the names after drop and keep.
func (p *parser) nameMatches() []NameMatch {
	var all []NameMatch
	for {
		n := NameMatch{Name: p.name()}
		if comparison(p.peek()) {
			n.Op = p.matchOp()
			n.Value = p.matchValue(n.Op)
		}
		all = append(all, n)
		if !p.take(",") {
			return all
		}
	}
}

// unwrap is the stage that takes samples from a label, and the filters after it.
func (p *parser) unwrap() *Unwrap {
	p.want("|")
	p.want("unwrap")
	u := &Unwrap{}
	if t := p.peek(); p.ahead(1).is("(") {
		switch t.key {
		case "bytes", "duration", "duration_seconds":
			u.Convert = t.key
		default:
			p.unexpected(t, "bytes", "duration", "duration_seconds")
		}
		p.at += 2
		u.Label = p.name()
		p.want(")")
	} else {
		u.Label = p.name()
	}
	for p.take("|") {
		if t := p.peek(); t.kind == word && (p.opensStage(t) || t.is("unwrap") && !comparison(p.ahead(1))) {
			p.fail(t, "syntax error: unexpected "+t.name()+"; only label filters may follow unwrap")
		}
		u.Filters = append(u.Filters, p.cond())
	}
	return u
}

func (p *parser) duration() time.Duration {
	t := p.peek()
	s := p.literal(duration)
	if s == "" {
		return 0
	}
	d, err := parseDuration(s)
	if err != nil {
		p.fail(t, "syntax error: duration out of range")
	}
	return d
}
