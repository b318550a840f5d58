package where

import (
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"

	"blobtail/blobfmt/filter"
	"blobtail/internal/grep"
)

// nameHas is the function that looks for a text: has("two words"), or for an RE2 expression:
// has(/re/). It is the text filter of a read as a condition: package grep defines the texts of a
// record. It stands alone, or beside and, or, not.
const nameHas = "has"

// isHas reports whether a node is a call of has, with a constant.
func isHas(node ast.Node) bool {
	at, ok := node.(*ast.CallNode)
	if !ok || len(at.Arguments) == 0 || !constants(at.Arguments) {
		return false
	}
	of, ok := at.Callee.(*ast.IdentifierNode)
	return ok && of.Value == nameHas
}

// expressions replaces each has(/re/), which the language cannot read, by has("re", true).
func expressions(text string) string {
	var out strings.Builder
	quote := byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		if quote == 0 && c == '(' && strings.HasSuffix(strings.TrimRight(text[:i], " \t"), nameHas) {
			from := len(text) - len(strings.TrimLeft(text[i+1:], " \t"))
			if re, end := slashed(text, from); end > 0 {
				out.WriteString("(" + strconv.Quote(re) + ", true")
				i = end - 1
				continue
			}
		}
		switch {
		case quote != 0 && c == '\\' && quote != '`' && i+1 < len(text):
			out.WriteByte(c)
			i++
			c = text[i]
		case c == quote:
			quote = 0
		case quote == 0 && strings.IndexByte("\"'`", c) >= 0:
			quote = c
		}
		out.WriteByte(c)
	}
	return out.String()
}

// slashed reads /re/ from a place. A slash in it has a backslash before it. end is 0 if it is none.
func slashed(text string, from int) (re string, end int) {
	if from >= len(text) || text[from] != '/' {
		return "", 0
	}
	var out strings.Builder
	for i := from + 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text):
			if i++; text[i] != '/' {
				out.WriteByte('\\')
			}
		case text[i] == '/':
			return out.String(), i + 1
		}
		out.WriteByte(text[i])
	}
	return "", 0
}

// pattern is what a call of has looks for.
func (of *compiling) pattern(at *ast.CallNode) (*grep.Pattern, error) {
	of.has++
	text, ok := at.Arguments[0].(*ast.StringNode)
	if !ok || text.Value == "" || len(at.Arguments) > 2 {
		return nil, &mistake{at: at.Location().From, what: `has looks for a text or an expression: has("two words"), has(/re/)`}
	}
	p, err := grep.Fixed(text.Value, of.fold), error(nil)
	if len(at.Arguments) == 2 {
		p, err = grep.Expr(of.budget, text.Value, of.fold)
	}
	if err != nil {
		return nil, &mistake{at: at.Location().From, what: err.Error()}
	}
	of.folds = of.folds || p.Folds()
	return p, nil
}

// has reports whether the line of a run has a text.
func (r *run) has(p *grep.Pattern) bool {
	if !r.split {
		r.split = true
		low := r.raw
		if r.of.folds {
			r.low = append(r.low[:0], r.raw...)
			grep.Fold(r.low, r.raw)
			low = r.low
		}
		r.line.Set(r.raw, low)
	}
	return p.Match(&r.line)
}

// Needs are the words and ids of a record for which the expression is true: for each list, those of one
// of its elements. No text of ts, level or service is among them, nor of a made field.
func (e *Expr) Needs() [][]filter.Needs { return e.root.needs(e.Made.Field) }

func (c *condition) needs(made func(name string) bool) (all [][]filter.Needs) {
	if c.has != nil {
		if n := c.has.Needs(); n != nil {
			all = append(all, n)
		}
	}
	for _, of := range c.equals {
		text, _ := of.value.(string)
		if n := filter.NeedsOf(text, true, true); len(n.Words)+len(n.Keys) > 0 && (made == nil || !made(of.name)) {
			all = append(all, []filter.Needs{n})
		}
	}
	if len(c.joined) < 2 {
		return all
	}
	left, right := c.joined[0].needs(made), c.joined[1].needs(made)
	if !c.or {
		return append(left, right...)
	}
	for _, l := range asOne(left) {
		for _, r := range asOne(right) {
			if len(all) < mostLists {
				all = append(all, slices.Concat(l, r))
			}
		}
	}
	return all
}

// asOne joins lists of one element to one list of one.
func asOne(lists [][]filter.Needs) [][]filter.Needs {
	var all filter.Needs
	for _, l := range lists {
		if len(l) != 1 {
			return lists
		}
		all.Words, all.Keys = append(all.Words, l[0].Words...), append(all.Keys, l[0].Keys...)
	}
	return [][]filter.Needs{{all}}[:min(1, len(lists))]
}

// mostLists bounds the lists of [Expr.Needs]. Fewer of them rule out less.
const mostLists = 16
