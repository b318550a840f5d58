package stage

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"blobtail/internal/budget"
	"blobtail/internal/regex"
	"blobtail/logql"
)

// A lineFilter keeps the lines in which one of some texts is found, or none of them.
type lineFilter struct {
	op   logql.LineOp
	args []lineArg
	not  bool
}

// A lineArg is a text that is looked for.
type lineArg interface {
	in(s *state) bool
	// always reports whether it is in each line, and texts are in each line that it is in.
	always() bool
	texts() []string
}

func newLineFilter(b *budget.Budget, tree *logql.LineFilter) (stage, error) {
	f := &lineFilter{op: tree.Op, not: tree.Op.Negative()}
	for _, arg := range tree.Any {
		one, err := newLineArg(b, tree.Op, arg)
		if err != nil {
			return nil, err
		}
		f.args = append(f.args, one)
	}
	if !f.not && slices.ContainsFunc(f.args, lineArg.always) {
		return nil, nil
	}
	return f, nil
}

func newLineArg(b *budget.Budget, op logql.LineOp, arg logql.LineArg) (lineArg, error) {
	switch op {
	case logql.Contains, logql.ContainsNot:
		if arg.IP {
			r, err := newIPs(arg.Text)
			return (*ipArg)(r), err
		}
		return newTextArg(arg.Text), nil
	case logql.Like, logql.NotLike:
		return newExprArg(b, arg.Text)
	case logql.Fits, logql.FitsNot:
		p, err := newPattern(arg.Text)
		return (*fitsArg)(p), err
	}
	return nil, fmt.Errorf("blobtail does not have the operator %s", op)
}

func (f *lineFilter) changes(string) bool { return false }
func (f *lineFilter) changesLine() bool   { return false }
func (f *lineFilter) mayFail() bool       { return false }

func (f *lineFilter) before(n *need) step {
	n.line = true
	return f
}

func (f *lineFilter) run(s *state) bool {
	for _, arg := range f.args {
		if arg.in(s) {
			return !f.not
		}
		if s.over() {
			return false
		}
	}
	return f.not
}

// texts are in each line that passes.
func (f *lineFilter) texts() []string {
	if f.not || len(f.args) != 1 {
		return nil
	}
	return f.args[0].texts()
}

// A textArg is looked for as it is.
type textArg struct {
	text  []byte
	plain bool // it is stored as it is
}

func newTextArg(text string) textArg {
	return textArg{[]byte(text), !strings.ContainsFunc(text, escapes)}
}

// in looks in the stored form first, if that decides: most messages lack the text, and are not
// decoded then.
func (a textArg) in(s *state) bool {
	if a.plain && !s.hasLine && !s.lines && s.msg > 0 {
		if end := s.endOfMsg(); end > s.msg && !bytes.Contains(s.raw[s.msg:end], a.text) {
			return false
		}
	}
	return bytes.Contains(s.text(), a.text)
}

func (a textArg) always() bool    { return len(a.text) == 0 }
func (a textArg) texts() []string { return []string{string(a.text)} }

// An ipArg looks for an address.
type ipArg ips

func (a *ipArg) in(s *state) bool { return (*ips)(a).in(s.text()) }
func (a *ipArg) always() bool     { return false }
func (a *ipArg) texts() []string  { return nil }

// A fitsArg is a pattern of the whole line.
type fitsArg pattern

func (a *fitsArg) in(s *state) bool { return (*pattern)(a).fits(s.text()) }
func (a *fitsArg) always() bool     { return false }

func (a *fitsArg) texts() []string {
	var texts []string
	for _, part := range a.parts {
		if part.literal != nil {
			texts = append(texts, string(part.literal))
		}
	}
	return texts
}

// An exprArg is an expression. Most lines lack its literals, which are looked for first.
type exprArg struct {
	expr     *regex.Regex
	literals []literal // each match has one of them; nil: unknown
	only     bool      // the expression is the one literal
}

func newExprArg(b *budget.Budget, text string) (lineArg, error) {
	expr, err := regex.Compile(b, "(?s)"+text)
	if err != nil {
		return nil, fmt.Errorf("the expression %q: %w", text, reason(err))
	}
	a := &exprArg{expr: expr}
	a.literals, a.only = literalsOf("(?s)" + text)
	return a, nil
}

func (a *exprArg) in(s *state) bool {
	line := s.text()
	if a.literals == nil {
		return a.expr.Match(line)
	}
	for i := range a.literals {
		if a.literals[i].in(s, line) {
			return a.only || a.expr.Match(line)
		}
	}
	return false
}

func (a *exprArg) always() bool { return a.expr.String() == "(?s)" || a.expr.String() == "(?s).*" }

func (a *exprArg) texts() []string {
	if len(a.literals) == 1 && !a.literals[0].fold {
		return []string{string(a.literals[0].text)}
	}
	return nil
}
