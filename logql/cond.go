package logql

import (
	"strconv"
)

// cond is a condition on labels. "and" binds more than "or"; "," and nothing are "and".
func (p *parser) cond() Cond {
	p.enter()
	defer p.leave()
	c := p.conds()
	for p.joins("or") {
		p.at++
		c = &Or{c, p.conds()}
	}
	return c
}

// conds are conditions that must all be true.
func (p *parser) conds() Cond {
	c := p.unit()
	for p.err == nil {
		switch t := p.peek(); {
		case p.joins("and") || t.is(","):
			p.at++
		case p.joins("or"):
			return c
		case t.kind == word, t.is("("):
		default:
			return c
		}
		c = &And{c, p.unit()}
	}
	return c
}

// joins reports whether the next word joins conditions: it does, unless it is compared.
func (p *parser) joins(s string) bool { return p.peek().is(s) && !comparison(p.ahead(1)) }

// unit is one condition, or some in brackets.
func (p *parser) unit() Cond {
	if p.take("(") {
		c := p.cond()
		p.want(")")
		return c
	}
	name := p.name()
	op := p.peek()
	if !comparison(op) {
		p.unexpected(op, "=", "!=", "=~", "!~", "==", ">", ">=", "<", "<=")
		return nil
	}
	p.at++
	t := p.peek()
	switch {
	case (op.text == "=" || op.text == "!=") && t.is("ip"):
		return &IPCond{Name: name, Op: MatchOp(op.text), Text: p.ip()}
	case op.text == "=~" || op.text == "!~", t.kind == text && (op.text == "=" || op.text == "!="):
		m := Matcher{Name: name, Op: MatchOp(op.text)}
		m.Value = p.matchValue(m.Op)
		return &MatchCond{m}
	}
	return p.compared(name, op)
}

// compared is the comparison of a label with a number.
func (p *parser) compared(name string, op token) Cond {
	c := &CompareCond{Name: name, Op: CompareOp(op.text)}
	if op.text == "=" {
		c.Op = EQ
	}
	sign := 1.0
	if p.take("-") {
		c.Text, sign = "-", -1
	} else {
		p.take("+")
	}
	t := p.next()
	var err error
	switch t.kind {
	case number:
		c.Value, err = strconv.ParseFloat(t.text, 64)
	case duration:
		d, e := parseDuration(t.text)
		c.Value, c.Unit, err = d.Seconds(), Duration, e
	case bytesize:
		c.Value, err = parseBytes(t.text)
		c.Unit = Bytes
	default:
		expecting := []string{"NUMBER", "DURATION", "BYTES"}
		if op.text == "=" || op.text == "!=" {
			expecting = append(expecting, "STRING")
		}
		p.unexpected(t, expecting...)
		return nil
	}
	if err != nil {
		p.fail(t, "syntax error: number out of range: "+clip(t.text))
	}
	c.Value *= sign
	c.Text += t.text
	return c
}
