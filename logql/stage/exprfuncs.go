package stage

import (
	"errors"
	"fmt"
	"strings"
	"text/template"

	"blobtail/internal/regex"
)

const (
	keepExprs = 64      // compiled expressions
	maxExpr   = 4 << 10 // bytes of an expression of a template
)

// exprs are the compiled expressions of the templates of one state. These mostly are constants, so
// they are kept.
type exprs struct {
	s   *state
	all map[string]*regex.Regex
}

func (x *exprs) compiled(text string) (*regex.Regex, error) {
	if e := x.all[text]; e != nil {
		return e, nil
	}
	if len(text) > maxExpr {
		return nil, errors.New("the expression is too long")
	}
	if len(x.all) >= keepExprs {
		for _, e := range x.all {
			e.Close()
		}
		clear(x.all)
	}
	e, err := regex.Compile(x.s.budget, text)
	if err != nil {
		return nil, reason(err)
	}
	x.all[text] = e
	return e, nil
}

// exprFunctions search texts by expressions.
func (s *state) exprFunctions() template.FuncMap {
	x := &exprs{s: s, all: map[string]*regex.Regex{}}
	return template.FuncMap{
		"regexReplaceAll": func(expr, text, with string) (string, error) {
			return x.replace(expr, text, with, strings.Count(with, "$"), (*regex.Regex).ReplaceAll)
		},
		"regexReplaceAllLiteral": func(expr, text, with string) (string, error) {
			return x.replace(expr, text, with, 0, (*regex.Regex).ReplaceAllLiteral)
		},
		"count": func(expr, text string) (int, error) {
			e, err := x.compiled(expr)
			if err == nil && len(text) > maxOutput {
				err = errOutput
			}
			if err != nil {
				return 0, err
			}
			n, err := e.Count(text)
			return n, x.explain(text, err)
		},
	}
}

// replace replaces the matches in a text. with names so many groups.
func (x *exprs) replace(expr, text, with string, groups int, all func(e *regex.Regex, text, with string) (string, error)) (string, error) {
	e, err := x.compiled(expr)
	if err == nil {
		err = mayReplace(text, with, groups)
	}
	if err != nil {
		return "", err
	}
	out, err := all(e, text, with)
	if err != nil {
		return "", x.explain(text, err)
	}
	return x.s.fits(out)
}

// explain adds the length of a text to the error of a search in it.
func (x *exprs) explain(text string, err error) error {
	if errors.Is(err, regex.ErrLong) {
		return fmt.Errorf("%w (%d bytes)", err, len(text))
	}
	return err
}

// mayReplace bounds the longest text that can come of replacements: one at each byte, and each
// group once in all.
func mayReplace(text, with string, groups int) error {
	if (len(text)+1)*(len(with)+1)+groups*len(text) > 8*maxOutput {
		return errOutput
	}
	return nil
}
