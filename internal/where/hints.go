package where

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// otherForms are the forms of other languages, each with a fix. A blank stands for the borders of a
// word.
var otherForms = [...]struct{ form, fix string }{
	{"=~", `a regular expression: path matches "^/api"`}, {" like ", `a part of a text: path contains "api"`},
	{" AND ", "and, or, not in lower case"}, {" OR ", "and, or, not in lower case"}, {" NOT ", "and, or, not in lower case"},
	{" between ", "a range: status >= 400 and status < 500"}, {" is ", "no value: user == nil"}, {"<>", "!="},
}

// hinted is the reason why an expression cannot be read, with the fix if it is a common
// mistake.
func hinted(text string, err error) error {
	var (
		quoted   = regexp.MustCompile(`"(\\.|[^"\\])*"|'(\\.|[^'\\])*'`)
		withUnit = regexp.MustCompile(`[0-9](ns|us|ms|s|m|h|d|[kKMG]i?B)\b`)
		single   = regexp.MustCompile(`[^=!<>]=[^=~]`)
	)
	fix := ""
	bare := quoted.ReplaceAllString(text, `""`)
	switch padded := " " + bare + " "; {
	case single.MatchString(bare):
		fix = "=="
	case withUnit.MatchString(bare):
		fix = "numbers without units: took_ms > 1000"
	default:
		for _, other := range otherForms {
			if strings.Contains(padded, other.form) || strings.Contains(strings.ToLower(padded), other.form) {
				fix = other.fix
				break
			}
		}
	}
	if fix == "" {
		return reason(err)
	}
	return fmt.Errorf("%w; write %s", reason(err), fix)
}

// comparison is of a field with a constant, by ==.
type comparison struct {
	name  string
	value any // a string, or a number
}

// unlike says that the value of a record cannot equal the constant: one is a text, the other
// a number. It returns "" if it can.
func (c *comparison) unlike(value any) string {
	text, isText := c.value.(string)
	switch value.(type) {
	case float64:
		if !isText {
			return ""
		}
		if _, err := strconv.ParseFloat(text, 64); err != nil {
			return fmt.Sprintf("%s is a number, and %q is a text", c.name, text)
		}
		return fmt.Sprintf("%s is a number; write %s == %s", c.name, c.name, text)
	case string:
		if !isText {
			return fmt.Sprintf("%s is a text; write %s == \"%v\"", c.name, c.name, c.value)
		}
	}
	return ""
}
