package stage

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"unicode/utf8"

	"blobtail/internal/budget"
	"blobtail/internal/regex"
	"blobtail/logql"
)

// A matcher compares a text with that of a query.
type matcher struct {
	op    logql.MatchOp
	not   bool
	any   bool         // every text matches
	some  bool         // every text matches but ""
	texts []string     // those that match; nil: expr decides
	expr  *regex.Regex // matches a whole text
}

func newMatcher(b *budget.Budget, op logql.MatchOp, value string) (*matcher, error) {
	m := &matcher{op: op, not: op == logql.NotEqual || op == logql.NotMatches}
	switch {
	case op == logql.Equal || op == logql.NotEqual:
		m.texts = []string{value}
	case value == ".*":
		m.any = true
	case value == ".+":
		m.some = true
	default:
		_, err := syntax.Parse(value, syntax.Perl) // alone, so that no bracket closes the group around it
		if err == nil {
			m.expr, err = regex.Compile(b, "^(?s:"+value+")$")
		}
		if err != nil {
			return nil, fmt.Errorf("the expression %q: %w", value, reason(err))
		}
		if m.texts = textsOf(value); m.texts != nil {
			m.expr.Close()
			m.expr = nil
		}
	}
	return m, nil
}

// reason is the error of an expression without the words that Go puts before it.
func reason(err error) error {
	if e, ok := err.(*syntax.Error); ok {
		return fmt.Errorf("%s: %q", e.Code, e.Expr)
	}
	return err
}

func (m *matcher) match(value []byte) bool {
	return m.is(value) != m.not
}

func (m *matcher) is(value []byte) bool {
	switch {
	case m.any:
		return true
	case m.some:
		return len(value) > 0
	case m.expr != nil:
		return m.expr.Match(value)
	}
	for _, text := range m.texts {
		if string(value) == text {
			return true
		}
	}
	return false
}

// mostTexts bounds the texts that an expression is replaced with.
const mostTexts = 100

// textsOf lists the texts that an expression matches; nil if they are too many.
func textsOf(expr string) []string {
	tree, err := syntax.Parse(expr, syntax.Perl|syntax.DotNL)
	if err != nil {
		return nil
	}
	texts := finite(tree.Simplify())
	if len(texts) == 0 || len(texts) > mostTexts {
		return nil
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// finite is textsOf for a part of an expression.
func finite(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpEmptyMatch:
		return []string{""}
	case syntax.OpLiteral:
		// U+FFFD in an expression matches bytes that are no UTF-8.
		if re.Flags&syntax.FoldCase == 0 && !slices.Contains(re.Rune, utf8.RuneError) {
			return []string{string(re.Rune)}
		}
	case syntax.OpCharClass:
		var texts []string
		for i := 0; i < len(re.Rune); i += 2 {
			for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
				if texts = append(texts, string(r)); len(texts) > mostTexts || r == utf8.RuneError {
					return nil
				}
			}
		}
		return texts
	case syntax.OpCapture:
		return finite(re.Sub[0])
	case syntax.OpQuest:
		if texts := finite(re.Sub[0]); texts != nil {
			return append(texts, "")
		}
	case syntax.OpAlternate:
		var texts []string
		for _, sub := range re.Sub {
			some := finite(sub)
			if some == nil || len(texts) > mostTexts {
				return nil
			}
			texts = append(texts, some...)
		}
		return texts
	case syntax.OpConcat:
		return product(re.Sub)
	}
	return nil
}

// product lists the texts that some expressions match one after the other.
func product(subs []*syntax.Regexp) []string {
	texts := []string{""}
	for _, sub := range subs {
		some := finite(sub)
		if some == nil || len(texts)*len(some) > mostTexts {
			return nil
		}
		var joined []string
		for _, a := range texts {
			for _, b := range some {
				joined = append(joined, a+b)
			}
		}
		texts = joined
	}
	return texts
}
