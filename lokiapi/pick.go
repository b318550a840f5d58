package lokiapi

import (
	"regexp"
	"slices"
	"strings"

	"blobtail/logql"
)

// services are those that the client may read and that a selector chooses.
func (c *call) services(e *logql.LogExpr) ([]string, error) {
	all, err := c.client.Services(c.ctx())
	if err != nil {
		return nil, err
	}
	for _, m := range e.Selector {
		if m.Name != serviceLabel && m.Name != serviceAlias {
			continue
		}
		matches, err := matcher(m)
		if err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(all, func(s string) bool { return !matches(s) })
	}
	if !slices.ContainsFunc(e.Selector, func(m logql.Matcher) bool { return strings.HasPrefix(m.Value, "_") }) {
		all = slices.DeleteFunc(all, func(s string) bool { return strings.HasPrefix(s, "_") })
	}
	return all, nil
}

func matcher(m logql.Matcher) (func(string) bool, error) {
	switch m.Op {
	case logql.Equal:
		return func(s string) bool { return s == m.Value }, nil
	case logql.NotEqual:
		return func(s string) bool { return s != m.Value }, nil
	}
	re, err := regexp.Compile("^(?s:" + m.Value + ")$")
	if err != nil {
		return nil, refused("%v", err)
	}
	return func(s string) bool { return re.MatchString(s) == (m.Op == logql.Matches) }, nil
}
