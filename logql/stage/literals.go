package stage

import (
	"bytes"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// mostLiterals bounds the literals that are looked for before an expression is.
const mostLiterals = 8

// A literal is a text in an expression. If it folds, it is in lower case, and stands for any
// case of its ASCII letters.
type literal struct {
	text []byte
	fold bool
}

// in reports whether a line has the literal.
func (l *literal) in(s *state, line []byte) bool {
	if !l.fold {
		return bytes.Contains(line, l.text)
	}
	if cap(s.spare) < len(line) {
		s.spare = make([]byte, len(line)+len(line)/2)
	}
	low := s.spare[:len(line)]
	for i, c := range line {
		if c-'A' < 26 {
			c += 'a' - 'A'
		}
		low[i] = c
	}
	return bytes.Contains(low, l.text)
}

// literalsOf returns literals so that each match of an expression has one of them, nil if there
// are none. only says that a text with the one literal always matches.
func literalsOf(expr string) (literals []literal, only bool) {
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, false
	}
	tree = tree.Simplify()
	literals = required(tree)
	if len(literals) > mostLiterals {
		return nil, false
	}
	if len(literals) == 1 && tree.Op == syntax.OpLiteral {
		only = len(literals[0].text) == len(string(tree.Rune))
	}
	return literals, only
}

// required is literalsOf for a part of an expression.
func required(re *syntax.Regexp) []literal {
	switch re.Op {
	case syntax.OpLiteral:
		if l := literalOf(re); len(l.text) > 0 {
			return []literal{l}
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
			if got := required(sub); shortest(got) > shortest(best) {
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

// shortest is the length of the shortest literal.
func shortest(all []literal) int {
	least := 0
	for i, l := range all {
		if i == 0 || len(l.text) < least {
			least = len(l.text)
		}
	}
	return least
}

// literalOf returns the longest part of a literal that can be searched. If case does not count,
// letters with cases beyond ASCII end a part: Go folds U+212A to k and U+017F to s.
func literalOf(re *syntax.Regexp) literal {
	fold := re.Flags&syntax.FoldCase != 0
	longest := ""
	for part := range strings.FieldsFuncSeq(string(re.Rune), func(r rune) bool {
		return r == utf8.RuneError || fold && (r >= utf8.RuneSelf || strings.ContainsRune("kKsS", r))
	}) {
		if len(part) > len(longest) {
			longest = part
		}
	}
	if fold {
		longest = strings.ToLower(longest)
	}
	return literal{text: []byte(longest), fold: fold}
}
