package stage

import (
	"errors"
	"regexp"
	"strings"
	"text/template"
)

const (
	keepExprs = 64      // compiled expressions
	maxExpr   = 4 << 10 // bytes of an expression of a template
)

// exprFunctions search texts by expressions. These mostly are constants, so the compiled ones are
// kept.
func (s *state) exprFunctions() template.FuncMap {
	exprs := map[string]*regexp.Regexp{}
	compiled := func(text string) (*regexp.Regexp, error) {
		if e := exprs[text]; e != nil {
			return e, nil
		}
		if len(text) > maxExpr {
			return nil, errors.New("the expression is too long")
		}
		e, err := regexp.Compile(text)
		if err != nil {
			return nil, reason(err)
		}
		if len(exprs) >= keepExprs {
			clear(exprs)
		}
		exprs[text] = e
		return e, nil
	}
	return template.FuncMap{
		"regexReplaceAll": func(expr, s, with string) (string, error) {
			e, err := compiled(expr)
			if err == nil {
				err = mayReplace(s, with, strings.Count(with, "$"))
			}
			if err != nil {
				return "", err
			}
			return fits(e.ReplaceAllString(s, with))
		},
		"regexReplaceAllLiteral": func(expr, s, with string) (string, error) {
			e, err := compiled(expr)
			if err == nil {
				err = mayReplace(s, with, 0)
			}
			if err != nil {
				return "", err
			}
			return fits(e.ReplaceAllLiteralString(s, with))
		},
		"count": func(expr, s string) (int, error) {
			e, err := compiled(expr)
			if err == nil && len(s) > maxOutput {
				err = errOutput
			}
			if err != nil {
				return 0, err
			}
			return len(e.FindAllStringIndex(s, -1)), nil
		},
	}
}

// mayReplace bounds the longest text that can come of replacements: one at each byte, and each
// group once in all.
func mayReplace(s, with string, groups int) error {
	if (len(s)+1)*(len(with)+1)+groups*len(s) > 8*maxOutput {
		return errOutput
	}
	return nil
}
