package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobtail/internal/units"
	"blobtail/record"
)

// Retention is the policy of deleting logs. Nothing is ever deleted from a store if its
// configuration sets no Default.
type Retention struct {
	Default Age      `yaml:"default"` // of services that no rule names; 0: not set
	Tail    Age      `yaml:"tail"`    // of the tail's tables
	Grace   Duration `yaml:"grace"`   // between hiding a day and deleting it; a read stops at half of it
	Rules   []Rule   `yaml:"rules"`   // the first that matches counts
}

// Rule is the age of the services that a name or glob matches, as of
// [record.MatchService].
type Rule struct {
	Service string `yaml:"service"`
	Age     Age    `yaml:"age"`
}

// Age is how old something gets before it is deleted: a duration with a unit, or
// the word keep. 0 is an age that is not set.
type Age time.Duration

// Keep is the age that nothing reaches.
const Keep Age = math.MaxInt64

const (
	day  = 24 * time.Hour
	keep = "keep"
)

// UnmarshalText reads an age. An empty text is an age that is not set.
func (a *Age) UnmarshalText(text []byte) error {
	switch s := string(text); s {
	case "":
		*a = 0
	case keep:
		*a = Keep
	default:
		d, err := ParseDuration(s)
		if many, ok := errors.AsType[*units.AmbiguousError](err); ok {
			return many
		}
		if err != nil {
			return fmt.Errorf("%q is no age; want a number and a unit, for example 30d, 2w or 36h, or keep", s)
		}
		if d < day {
			return fmt.Errorf("the age %s is too short; want at least 24h", s)
		}
		*a = Age(d)
	}
	return nil
}

// MarshalText writes the text that UnmarshalText reads.
func (a Age) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// String is the age in days where they are whole ones.
func (a Age) String() string {
	switch d := time.Duration(a); {
	case a == 0:
		return ""
	case a == Keep:
		return keep
	case d%day == 0:
		return strconv.FormatInt(int64(d/day), 10) + "d"
	default:
		return Duration(a).String()
	}
}

func (r Retention) validate(m *mistakes, c Close) {
	m.check(time.Duration(c.After) >= day, "close.after", c.After, "want 24h or more; the default is 26h")
	m.check(r.Tail != 0, "retention.tail", "", "want an age, for example 3d, or keep")
	m.check(r.Grace >= 0, "retention.grace", r.Grace, "want 0s or more; the default is 1h")
	for i, rule := range r.Rules {
		key := "retention.rules[" + strconv.Itoa(i) + "]"
		m.check(rule.Age != 0, key+".age", "", "want an age, for example 30d, or keep")
		// With a name that no service can have, the default would delete the logs
		// that the rule is to keep.
		m.checkServices(key+".service", rule.Service)
		if first := slices.IndexFunc(r.Rules[:i], func(earlier Rule) bool { return covers(earlier.Service, rule.Service) }); first >= 0 {
			m.check(false, key+".service", rule.Service, fmt.Sprintf(
				"the rule never counts, because rules[%d] (%q) is before it and matches the same services; put it before that", first, r.Rules[first].Service))
		}
	}
}

// covers reports whether each service that a pattern matches is surely matched by an
// earlier one too. Of two globs it knows only the case that the earlier one is a text with
// one * at its end.
func covers(earlier, pattern string) bool {
	const special = `*?[\`
	if earlier == pattern {
		return true
	}
	if !strings.ContainsAny(pattern, special) {
		return record.MatchService(earlier, pattern)
	}
	begin, glob := strings.CutSuffix(earlier, "*")
	known := pattern[:strings.IndexAny(pattern, special)]
	system := strings.HasPrefix(known, "_") && !strings.HasPrefix(begin, "_") // "*" matches no system services
	return glob && !strings.ContainsAny(begin, special) && strings.HasPrefix(known, begin) && !system
}
