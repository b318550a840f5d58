// Package literals finds the texts that each match of an expression has one of. A search for
// them rules most lines out before the expression is asked.
package literals

import (
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// A Literal is a text in an expression. If it folds, it is in lower case, and stands for any
// case of its ASCII letters.
type Literal struct {
	Text string
	Fold bool
}

// Of returns literals so that each match of a simplified expression has one of them; nil if
// there are none.
func Of(re *syntax.Regexp) []Literal {
	switch re.Op {
	case syntax.OpLiteral:
		if l := inside(re); l.Text != "" {
			return []Literal{l}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return Of(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return Of(re.Sub[0])
		}
	case syntax.OpConcat:
		var best []Literal
		for _, sub := range re.Sub {
			if got := Of(sub); weight(got) > weight(best) {
				best = got
			}
		}
		return best
	case syntax.OpAlternate:
		var all []Literal
		for _, sub := range re.Sub {
			got := Of(sub)
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
func weight(all []Literal) int {
	least := 0
	for i, l := range all {
		if i == 0 || len(l.Text) < least {
			least = len(l.Text)
		}
	}
	return least
}

// inside returns the longest part of a literal that can be searched: without U+FFFD, which may
// stand for bytes that are no UTF-8. If case does not count, letters with cases beyond ASCII end
// a part: Go folds U+212A to k and U+017F to s.
func inside(re *syntax.Regexp) Literal {
	fold := re.Flags&syntax.FoldCase != 0
	longest := ""
	for part := range strings.FieldsFuncSeq(string(re.Rune), func(r rune) bool {
		return r == utf8.RuneError || fold && (r >= utf8.RuneSelf || strings.ContainsRune("kKsS", r))
	}) {
		if len(part) > len(longest) {
			longest = part
		}
	}
	if fold { // only now: U+0130 would become an i, which it does not match
		longest = strings.ToLower(longest)
	}
	return Literal{longest, fold}
}
