package rules

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

// Mask says which texts are replaced. With a kind or a pattern these are the matching texts,
// in the values of the field, or in all values. Without either it is the whole value of the
// field, of any type.
type Mask struct {
	// Field is the name of a field as logquery shows it, with the names of objects before
	// it: a.b. A * stands for any text. Upper and lower case are the same. "": all values.
	Field string
	// Kind is one of [Kinds]. "": none.
	Kind string
	// Pattern is a regular expression in the syntax of package regexp. "": none.
	Pattern string
	// With replaces the text; $1 is the first group of the pattern. "": [masked].
	With string
}

// masked replaces a text by default.
const masked = "[masked]"

// mask is a compiled [Mask].
type mask struct {
	field []byte   // in lower case; empty: all
	hint  []byte   // of the field
	find  replacer // nil: the whole value
	with  string
	needs [][]byte // a line without all of them has no match; none: not known
	rule  int      // its number
}

// may reports whether the mask may find a text in a line.
func (m *mask) may(line []byte) bool {
	return len(m.needs) == 0 || slices.ContainsFunc(m.needs, func(need []byte) bool { return bytes.Contains(line, need) })
}

// replacer replaces the texts of one kind in a text.
type replacer interface {
	// replace returns the new text; the old one, and false, if nothing in it matches.
	replace(text []byte) ([]byte, bool)
}

// compileMask compiles a mask. The error begins with the key below the mask.
func compileMask(m Mask) (mask, error) {
	c := mask{field: inLowerCase([]byte(m.Field)), with: m.With}
	c.hint = []byte(hint(string(c.field)))
	if c.with == "" {
		c.with = masked
	}
	switch {
	case m.Kind != "":
		if c.find, c.needs = kind(m.Kind, c.with); c.find == nil {
			return c, fmt.Errorf(".kind: %q: want one of %s", m.Kind, strings.Join(Kinds(), ", "))
		}
	case m.Pattern != "":
		expr, err := compilePattern(m.Pattern)
		if err != nil {
			return c, fmt.Errorf(".pattern: %q: %w", m.Pattern, err)
		}
		if group := unknownGroup(expr, c.with); group != "" {
			return c, fmt.Errorf(".with: %q: the pattern has no group %q; write ${1} before a letter or a digit, and $$ for a dollar", m.With, group)
		}
		c.find = &matches{expr: expr, with: []byte(c.with)}
		// Canonical lines escape no letter and no digit.
		if prefix, _ := expr.LiteralPrefix(); prefix != "" && !strings.ContainsFunc(prefix, isEscaped) {
			c.needs = [][]byte{[]byte(prefix)}
		}
	}
	return c, nil
}

func isEscaped(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r > '~' }

// compilePattern compiles a regular expression. An error has the column of the mistake.
func compilePattern(pattern string) (*regexp.Regexp, error) {
	expr, err := regexp.Compile(pattern)
	if wrong, ok := errors.AsType[*syntax.Error](err); ok {
		return nil, fmt.Errorf("column %d: %s: %q", 1+max(0, strings.Index(pattern, wrong.Expr)), wrong.Code, wrong.Expr)
	}
	if err != nil {
		return nil, err
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err == nil && matchesEmpty(tree) {
		return nil, errors.New("it matches an empty text, and so everywhere; want one that needs a character")
	}
	return expr, err
}

// matchesEmpty reports whether an expression may match between two characters.
func matchesEmpty(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpNoMatch, syntax.OpLiteral, syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return false
	case syntax.OpCapture, syntax.OpPlus:
		return matchesEmpty(re.Sub[0])
	case syntax.OpRepeat:
		return re.Min == 0 || matchesEmpty(re.Sub[0])
	case syntax.OpConcat:
		return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !matchesEmpty(sub) })
	case syntax.OpAlternate:
		return slices.ContainsFunc(re.Sub, matchesEmpty)
	}
	return true
}

// unknownGroup returns the first group that a template names and an expression lacks, ""
// if there is none. package regexp would replace it by nothing.
func unknownGroup(expr *regexp.Regexp, with string) string {
	for _, m := range regexp.MustCompile(`\$(\$|\w+|\{\w+\})`).FindAllStringSubmatch(with, -1) {
		name := strings.Trim(m[1], "{}")
		n, err := strconv.Atoi(name)
		if name != "$" && (err != nil && !slices.Contains(expr.SubexpNames(), name) || err == nil && n > expr.NumSubexp()) {
			return name
		}
	}
	return ""
}

// matches replaces the matches of a regular expression.
type matches struct {
	expr *regexp.Regexp
	with []byte
}

func (m *matches) replace(text []byte) ([]byte, bool) {
	if !m.expr.Match(text) {
		return text, false
	}
	return bounded(m.expr.ReplaceAll(text, m.with), text), true
}

// bounded returns a text that replaces another. One that is much longer, because a pattern
// matches each of many short texts, is replaced as a whole: a line must not grow without
// bounds.
func bounded(text, before []byte) []byte {
	const room = 256
	if len(text) > 2*len(before)+room {
		return []byte(masked)
	}
	return text
}

// longestName is the length of the longest name that is compared with a pattern. In a record
// of many names below a very long one, each comparison would cost as much as all else.
const longestName = 1 << 10

// matchField reports whether the name of a field matches a pattern; both are in lower case. A
// name that is too long matches each pattern with a star, in doubt.
func matchField(pattern, name []byte) bool {
	begin, rest, glob := bytes.Cut(pattern, []byte("*"))
	if !glob {
		return bytes.Equal(name, pattern)
	}
	if len(name) > longestName {
		return true
	}
	name, ok := bytes.CutPrefix(name, begin)
	if !ok {
		return false
	}
	for {
		part, more, glob := bytes.Cut(rest, []byte("*"))
		if !glob {
			return bytes.HasSuffix(name, part)
		}
		at := bytes.Index(name, part)
		if at < 0 {
			return false
		}
		name, rest = name[at+len(part):], more
	}
}

// hint is a text that a field's name has if it matches a pattern: the longest between its
// stars and dots, "" if there is none.
func hint(pattern string) (longest string) {
	for _, part := range strings.FieldsFunc(pattern, func(r rune) bool { return r == '*' || r == '.' }) {
		if len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}
