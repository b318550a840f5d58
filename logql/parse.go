package logql

import (
	"fmt"
	"strconv"
)

// Bounds of a query, so that a hostile one costs little.
const (
	MaxText      = 131_072 // bytes
	maxDepth     = 100     // of brackets and aggregations
	maxOperators = 1_000   // between metric queries
)

// Parse makes the tree of a query. Errors are [*Error].
func Parse(query string) (Expr, error) {
	if len(query) > MaxText {
		return nil, &Error{Msg: fmt.Sprintf("input size too long (%d > %d)", len(query), MaxText)}
	}
	p := &parser{query: query, tokens: lex(query)}
	e := p.expr(0)
	if t := p.peek(); t.kind != end {
		p.unexpected(t)
	}
	if p.err != nil {
		return nil, p.err
	}
	return e, nil
}

// A parser goes through tokens. After its first error it sees only the end, so that every
// loop ends.
type parser struct {
	query     string
	tokens    []token // the last one is the end
	at        int
	depth     int
	operators int
	programs  int // instructions of the expressions so far
	err       *Error
}

func (p *parser) peek() token { return p.ahead(0) }

func (p *parser) ahead(n int) token {
	last := len(p.tokens) - 1
	if p.err != nil {
		return token{kind: end, pos: len(p.query)}
	}
	return p.tokens[min(p.at+n, last)]
}

func (p *parser) next() token {
	t := p.peek()
	p.at++
	return t
}

// take goes past a symbol or word if it is next.
func (p *parser) take(s string) bool {
	if p.peek().is(s) {
		p.at++
		return true
	}
	return false
}

// want goes past a symbol or word, which must be next.
func (p *parser) want(s string) {
	if !p.take(s) {
		p.unexpected(p.peek(), s)
	}
}

// literal is the token of a kind, which must be next.
func (p *parser) literal(k kind) string {
	t := p.peek()
	if t.kind != k {
		p.unexpected(t, token{kind: k}.name())
		return ""
	}
	p.at++
	return t.text
}

// name is the name that must be next. Every word is a name where a name must stand.
func (p *parser) name() string {
	if t := p.peek(); t.kind == word {
		p.at++
		return t.text
	}
	p.unexpected(p.peek(), "IDENTIFIER")
	return ""
}

// str is the text that must be next.
func (p *parser) str() string {
	if s := p.literal(text); s != "" {
		return unquote(s)
	}
	return ""
}

func (p *parser) fail(t token, msg string) {
	if p.err == nil {
		p.err = errorAt(p.query, t.pos, msg)
	}
}

// unexpected says that t cannot stand where it stands.
func (p *parser) unexpected(t token, expecting ...string) {
	if t.kind == broken {
		p.fail(t, t.why)
		return
	}
	msg := "syntax error: unexpected " + t.name()
	for i, e := range expecting {
		if i == 0 {
			msg += ", expecting " + e
		} else {
			msg += " or " + e
		}
	}
	p.fail(t, msg)
}

// enter counts the depth of brackets and aggregations; leave must follow.
func (p *parser) enter() {
	if p.depth++; p.depth > maxDepth {
		p.fail(p.peek(), fmt.Sprintf("nested deeper than %d", maxDepth))
	}
}

func (p *parser) leave() { p.depth-- }

// expr is a query with operators that bind at least as tightly as least.
func (p *parser) expr(least int) Expr {
	p.enter()
	defer p.leave()
	first := p.peek()
	left := p.operand()
	for {
		t := p.peek()
		binds := precedence(t)
		if binds == 0 || binds < least || p.err != nil {
			return left
		}
		m, ok := left.(Metric)
		if !ok {
			p.unexpected(t)
			return nil
		}
		p.at++
		if p.operators++; p.operators > maxOperators {
			p.fail(t, fmt.Sprintf("more than %d operators", maxOperators))
		}
		b := &Binary{Op: t.key, Left: m}
		p.modifiers(b)
		next := binds + 1
		if t.is("^") {
			next = binds
		}
		right := p.peek()
		b.Right = p.metric(next, t.key)
		p.checkBinary(b, first, right)
		left = b
	}
}

// metric is the metric query that must be next. It belongs to the operator or function of.
func (p *parser) metric(least int, of string) Metric {
	first := p.peek()
	e := p.expr(least)
	if m, ok := e.(Metric); ok {
		return m
	}
	p.fail(first, "syntax error: "+of+" is of metric queries, such as count_over_time({…}[5m]), not of log queries")
	return nil
}

// symbolOf is the operator s as a token.
func symbolOf(s string) token { return token{kind: symbol, text: s, key: s} }

// precedence is how tightly t binds as an operator; 0: it is none.
func precedence(t token) int {
	if t.kind != symbol && t.kind != word {
		return 0
	}
	switch t.key {
	case "or":
		return 1
	case "and", "unless":
		return 2
	case "==", "!=", ">", ">=", "<", "<=":
		return 3
	case "+", "-":
		return 4
	case "*", "/", "%":
		return 5
	case "^":
		return 6
	}
	return 0
}

// modifiers are the words after an operator.
func (p *parser) modifiers(b *Binary) {
	if t := p.peek(); p.take("bool") {
		if precedence(symbolOf(b.Op)) != 3 {
			p.fail(t, "syntax error: bool is of comparisons, not of "+b.Op)
		}
		b.Bool = true
	}
	if t := p.peek(); t.is("on") || t.is("ignoring") {
		p.at++
		b.Matching = &Matching{On: t.is("on"), Labels: p.names()}
	}
	if t := p.peek(); t.is("group_left") || t.is("group_right") {
		p.fail(t, "blobtail does not have "+t.key+"; it joins one series with one, by on(…) or ignoring(…)")
	}
}

// names are names in brackets.
func (p *parser) names() []string {
	p.want("(")
	var names []string
	for !p.take(")") && p.err == nil {
		if names != nil {
			p.want(",")
		}
		names = append(names, p.name())
	}
	return names
}

// operand is a query without an operator around it.
func (p *parser) operand() Expr {
	t := p.peek()
	switch {
	case t.is("{"):
		return p.log()
	case t.is("("):
		p.at++
		e := p.expr(0)
		p.want(")")
		return e
	case t.kind == number || t.is("+") || t.is("-"):
		return &Number{p.signed()}
	case t.kind == word && p.ahead(1).is("("), t.kind == word && isVectorOp(t.key):
		return p.call()
	}
	p.unexpected(t)
	return nil
}

// signed is a number, which may have a sign.
func (p *parser) signed() float64 {
	minus := p.take("-")
	if !minus {
		p.take("+")
	}
	v := p.number()
	if minus {
		return -v
	}
	return v
}

func (p *parser) number() float64 {
	t := p.peek()
	s := p.literal(number)
	if s == "" {
		return 0
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		p.fail(t, "syntax error: number out of range: "+clip(s))
	}
	return v
}

// call is a function and its arguments.
func (p *parser) call() Expr {
	t := p.next()
	switch {
	case isRangeOp(t.key):
		return p.rangeAgg(t)
	case isVectorOp(t.key):
		return p.vectorAgg(t)
	case t.key == "vector":
		p.want("(")
		v := &Vector{p.number()}
		p.want(")")
		return v
	case t.key == "label_replace":
		p.fail(t, "blobtail does not have label_replace; it has label_format, as a stage of the log query")
	case t.key == "variants":
		p.fail(t, "blobtail does not have variants; ask each of its queries by itself")
	default:
		p.fail(t, "syntax error: unexpected "+t.name()+"; there is no function "+clip(t.text))
	}
	return nil
}

// vectorAgg is an aggregation over series, after its word t.
func (p *parser) vectorAgg(t token) Expr {
	v := &VectorAgg{Op: VectorOp(t.key)}
	by := p.peek()
	v.Grouping = p.grouping()
	p.want("(")
	param := p.peek()
	if takesParam := v.Op == "topk" || v.Op == "bottomk" || v.Op == "approx_topk"; takesParam {
		if param.kind != number {
			p.fail(param, "parameter required for operation "+t.key)
		}
		v.Param = p.number()
		if v.Param < 1 || v.Param != float64(int32(v.Param)) {
			p.fail(param, "invalid parameter "+t.key+"("+clip(param.text)+", …): it must be a whole number greater than 0")
		}
		p.want(",")
	} else if param.kind == number && p.ahead(1).is(",") {
		p.fail(param, "unsupported parameter for operation "+t.key)
	}
	of := p.peek()
	v.Of = p.metric(0, t.key)
	if v.Of != nil && isScalar(v.Of) {
		p.fail(of, t.key+" is of series, not of a number; write vector(…)")
	}
	p.want(")")
	if v.Grouping == nil {
		by = p.peek()
		v.Grouping = p.grouping()
	}
	switch v.Op {
	case "sort", "sort_desc", "approx_topk":
		if v.Grouping != nil {
			p.fail(by, "grouping not allowed for "+t.key+" aggregation")
		}
	}
	return v
}

// grouping is by or without and its names, if it is there.
func (p *parser) grouping() *Grouping {
	t := p.peek()
	if !t.is("by") && !t.is("without") {
		return nil
	}
	p.at++
	return &Grouping{Without: t.is("without"), Labels: p.names()}
}

// rangeAgg is an aggregation over time, after its word t.
func (p *parser) rangeAgg(t token) Expr {
	r := &RangeAgg{Op: RangeOp(t.key)}
	p.want("(")
	if param := p.peek(); r.Op == "quantile_over_time" {
		if param.kind != number {
			p.fail(param, "parameter required for operation "+t.key)
		}
		r.Param = p.number()
		p.want(",")
	} else if param.kind == number && p.ahead(1).is(",") {
		p.fail(param, "parameter not supported for operation "+t.key)
	}
	r.Range = p.logRange()
	p.want(")")
	by := p.peek()
	if r.Grouping = p.grouping(); r.Grouping != nil && !r.Op.Groups() {
		p.fail(by, "grouping not allowed for "+t.key+" aggregation")
	}
	switch unwraps := r.Op.Unwraps(); {
	case r.Range.Unwrap != nil && unwraps == Never:
		p.fail(t, "invalid aggregation "+t.key+" with unwrap")
	case r.Range.Unwrap == nil && unwraps == Always:
		p.fail(t, "invalid aggregation "+t.key+" without unwrap")
	}
	return r
}

// logRange is a log query with its window.
func (p *parser) logRange() LogRange {
	r := p.rangePart()
	if r.Window == 0 {
		p.unexpected(p.peek(), "[")
	}
	return r
}

// rangePart is a log query with its window, or without one if that follows brackets.
func (p *parser) rangePart() LogRange {
	p.enter()
	defer p.leave()
	var r LogRange
	if p.take("(") {
		r = p.rangePart()
		p.want(")")
		if r.Window != 0 {
			return r
		}
	} else {
		r.Log = &LogExpr{Selector: p.selector()}
		p.stages(&r)
	}
	if !p.peek().is("[") {
		return r
	}
	p.window(&r)
	if len(r.Log.Stages) == 0 && r.Unwrap == nil {
		p.stages(&r)
	}
	return r
}

// stages are the stages of a range. The last one may be unwrap.
func (p *parser) stages(r *LogRange) {
	for p.err == nil {
		if p.peek().is("|") && p.ahead(1).is("unwrap") && !comparison(p.ahead(2)) {
			r.Unwrap = p.unwrap()
			return
		}
		s := p.stage()
		if s == nil {
			return
		}
		r.Log.Stages = append(r.Log.Stages, s)
	}
}

// window is the window of a range and how much earlier it is.
func (p *parser) window(r *LogRange) {
	p.want("[")
	t := p.peek()
	r.Window = p.duration()
	if r.Window <= 0 {
		p.fail(t, "syntax error: a range must be longer than 0")
	}
	p.want("]")
	if p.take("offset") {
		minus := p.take("-")
		r.Offset = p.duration()
		if minus {
			r.Offset = -r.Offset
		}
	}
}
