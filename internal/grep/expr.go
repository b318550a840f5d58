package grep

import (
	"regexp/syntax"
	"strings"

	"blobtail/internal/budget"
	"blobtail/internal/literals"
	"blobtail/internal/regex"
)

// mostLiterals bounds the texts that a block is searched for.
const mostLiterals = 8

// Expr matches an expression of package regexp, for a query with a budget; nil: without bounds. If
// fold is set, it is matched with the flag i. An error is one of the expression, or of the budget.
func Expr(b *budget.Budget, expr string, fold bool) (*Pattern, error) {
	if fold {
		expr = "(?i)" + expr // until its end, also if it has "|" or an open \Q
	}
	re, err := regex.Compile(b, expr)
	if err != nil {
		return nil, err
	}
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	tree = tree.Simplify()
	p := &Pattern{expr: re, inside: !has(tree, isBorder), equals: has(tree, matchesEquals)}
	found := literals.Of(tree)
	for _, l := range found {
		p.fold = p.fold || l.Fold
	}
	for _, l := range found {
		text := []byte(l.Text)
		if p.fold {
			Fold(text, text)
		}
		p.literals = append(p.literals, spell(text))
	}
	if len(p.literals) > mostLiterals {
		p.literals = nil
	}
	p.fold = p.fold && p.literals != nil
	return p, nil
}

// has reports whether a part of an expression is of a kind.
func has(re *syntax.Regexp, kind func(*syntax.Regexp) bool) bool {
	if kind(re) {
		return true
	}
	for _, sub := range re.Sub {
		if has(sub, kind) {
			return true
		}
	}
	return false
}

func isBorder(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	}
	return false
}

func matchesEquals(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return strings.ContainsRune(string(re.Rune), '=')
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return true
	case syntax.OpCharClass:
		for i := 0; i < len(re.Rune); i += 2 {
			if re.Rune[i] <= '=' && '=' <= re.Rune[i+1] {
				return true
			}
		}
	}
	return false
}
