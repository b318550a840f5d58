package search

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// mostLiterals bounds the texts that a block is searched for.
const mostLiterals = 8

// Expr matches an expression of package regexp. If fold is set, it is matched with the
// flag i. An error is one of the expression.
func Expr(expr string, fold bool) (*Pattern, error) {
	if fold {
		expr = "(?i)" + expr // until its end, also if it has "|" or an open \Q
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, err
	}
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	tree = tree.Simplify()
	p := &Pattern{expr: re, inside: !has(tree, isBorder), equals: has(tree, matchesEquals)}
	literals := required(tree)
	for _, l := range literals {
		p.fold = p.fold || l.fold
	}
	for _, l := range literals {
		text := []byte(l.text)
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

// A literal is a text in an expression. If it folds, it is in lower case, and stands for
// any case of its ASCII letters.
type literal struct {
	text string
	fold bool
}

// required returns literals so that each match of an expression has one of them; nil if
// there are none.
func required(re *syntax.Regexp) []literal {
	switch re.Op {
	case syntax.OpLiteral:
		if text, fold := literalOf(re); text != "" {
			return []literal{{text, fold}}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		var best []literal
		for _, sub := range re.Sub {
			if got := required(sub); weight(got) > weight(best) {
				best = got
			}
		}
		return best
	case syntax.OpAlternate:
		var all []literal
		for _, sub := range re.Sub {
			got := required(sub)
			if got == nil {
				return nil
			}
			all = append(all, got...)
		}
		return all
	}
	return nil
}

// weight is the length of the shortest literal.
func weight(all []literal) int {
	least := 0
	for i, l := range all {
		if i == 0 || len(l.text) < least {
			least = len(l.text)
		}
	}
	return least
}

// literalOf returns the longest part of a literal that can be searched. If case does not
// count, letters with cases beyond ASCII end a part: Go folds U+212A to k and U+017F to s.
func literalOf(re *syntax.Regexp) (text string, fold bool) {
	if re.Flags&syntax.FoldCase == 0 {
		return clean(string(re.Rune), func(r rune) bool { return false }), false
	}
	// In lower case only afterwards: U+0130 would become an i, which it does not match.
	text = clean(string(re.Rune), func(r rune) bool { return strings.ContainsRune("kKsS", r) || r >= utf8.RuneSelf })
	return strings.ToLower(text), true
}

// clean returns the longest part of a text without separators and without U+FFFD, which
// may stand for bytes that are no UTF-8.
func clean(text string, separates func(rune) bool) string {
	longest := ""
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == utf8.RuneError || separates(r) }) {
		if len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}
