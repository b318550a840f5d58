package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"blobtail/record"
)

// Counter counts accepted records for Prometheus.
type Counter struct {
	Name    string `yaml:"name"`
	Service string `yaml:"service,omitempty"` // a name or a glob; "": all services but the system's
	Where   string `yaml:"where,omitempty"`   // an expression; "": all records
}

// RecordRule drops, samples or masks records before they are written to the log.
type RecordRule struct {
	Name    string  `yaml:"name"`
	Service string  `yaml:"service"`         // a name or a glob
	Where   string  `yaml:"where,omitempty"` // an expression; "": all records of the service
	Drop    bool    `yaml:"drop,omitempty"`
	Sample  float64 `yaml:"sample,omitempty"` // the share that is kept, between 0 and 1; 0: no sample
	Mask    []Mask  `yaml:"mask,omitempty"`
}

// Mask replaces texts in the values of records.
type Mask struct {
	Field   string `yaml:"field,omitempty"`   // a name as logquery shows it, with * for any text; "": all values
	Kind    string `yaml:"kind,omitempty"`    // of a text that is known
	Pattern string `yaml:"pattern,omitempty"` // a regular expression
	With    string `yaml:"with,omitempty"`    // replaces the text; "": [masked]
}

// isLabel matches the names of counters and rules.
func isLabel() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`) }

const wantLabel = "want a name of its own: lower-case letters, digits, _ and -, at most 63, a letter first"

// validateCounters checks all but the expressions, which need a compiler.
func validateCounters(m *mistakes, all []Counter) {
	label := isLabel()
	for i, c := range all {
		key := "counters[" + strconv.Itoa(i) + "]"
		again := slices.ContainsFunc(all[:i], func(earlier Counter) bool { return earlier.Name == c.Name })
		m.check(label.MatchString(c.Name) && !again, key+".name", c.Name, wantLabel)
		m.check(c.Service != "" || c.Where != "", key, plain(c.Name), "want service, where, or both; blobtail_records_total counts all records")
		if c.Service != "" {
			m.checkServices(key+".service", c.Service)
		}
	}
}

// checkServices checks a pattern of services.
func (m *mistakes) checkServices(key, pattern string) {
	known := strings.Trim(pattern, `abcdefghijklmnopqrstuvwxyz0123456789._-*?[]^\`) == ""
	m.check(record.ValidPattern(pattern) && known, key, pattern,
		"want a name or a glob of lower-case letters, digits and . _ -, for example audit-*")
}

// validateRules checks all but the expressions and patterns, which need a compiler.
func validateRules(m *mistakes, all []RecordRule) {
	label := isLabel()
	for i, r := range all {
		key := "rules[" + strconv.Itoa(i) + "]"
		again := slices.ContainsFunc(all[:i], func(earlier RecordRule) bool { return earlier.Name == r.Name })
		m.check(label.MatchString(r.Name) && !again, key+".name", r.Name, wantLabel)
		m.checkServices(key+".service", r.Service)
		actions := 0
		for _, has := range []bool{r.Drop, r.Sample != 0, len(r.Mask) > 0} {
			if has {
				actions++
			}
		}
		m.check(actions == 1, key, plain(r.Name), "want one of drop: true, sample and mask")
		m.check(r.Sample >= 0 && r.Sample < 1, key+".sample", r.Sample, "want the share to keep, more than 0 and less than 1, for example 0.1")
		for j, mask := range r.Mask {
			mask.validate(m, fmt.Sprintf("%s.mask[%d]", key, j))
		}
		first := slices.IndexFunc(all[:i], func(earlier RecordRule) bool {
			return earlier.Drop && (earlier.Where == "" || earlier.Where == r.Where) && covers(earlier.Service, r.Service)
		})
		if first >= 0 {
			m.check(false, key, plain(r.Name), fmt.Sprintf(
				"the rule never counts, because rules[%d] (%s) is before it and drops the same records; put it before that", first, all[first].Name))
		}
	}
}

func (k Mask) validate(m *mistakes, key string) {
	m.check(k.Field+k.Kind+k.Pattern != "", key, plain("nothing"), "want field, kind or pattern")
	m.check(k.Kind == "" || k.Pattern == "", key+".kind", k.Kind, "want kind or pattern, or a mask for each")
	m.check(!slices.Contains([]string{"ts", "service", "level"}, k.Field), key+".field", k.Field, "this stays as it is; want msg or another field")
	m.check(!strings.ContainsAny(k.Field, `?[]\`), key+".field", k.Field, "want a name, with * for any text")
	m.check(len(k.Field) <= 255, key+".field", k.Field, "want at most 255 characters")
	m.check(len(k.With) <= 64, key+".with", k.With, "want at most 64 characters")
}
