package stage

import (
	"bytes"
	"regexp/syntax"

	texts "blobtail/internal/literals"
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
	found := texts.Of(tree)
	if len(found) > mostLiterals {
		return nil, false
	}
	for _, l := range found {
		literals = append(literals, literal{[]byte(l.Text), l.Fold})
	}
	if len(literals) == 1 && tree.Op == syntax.OpLiteral {
		only = len(literals[0].text) == len(string(tree.Rune))
	}
	return literals, only
}
