package config_test

import (
	"errors"
	"iter"
	"slices"
	"testing"

	"blobtail/internal/config"
)

// A pattern that matches no service is named, with the nearest names.
func TestUnmatched(t *testing.T) {
	dirs := func(names ...string) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			for _, name := range names {
				if !yield(name, nil) {
					return
				}
			}
		}
	}
	stored := dirs("_horizon", "_policy", "audit-login", "audit-pay", "db-audit", "web", "web-eu")
	for _, c := range []struct{ pattern, want string }{
		{"audit-*", ""}, {"web", ""}, {"*", ""}, {"web-[a-f]?", ""},
		{"audti-*", `matches none of the 5 services stored so far; is it meant for audit-login, audit-pay?`},
		{"adit-*", `matches none of the 5 services stored so far; is it meant for audit-login, audit-pay?`},
		{"*-aduit", `matches none of the 5 services stored so far; is it meant for db-audit?`},
		{"webb", `matches none of the 5 services stored so far; is it meant for web, web-eu?`},
		{"web-us", `matches none of the 5 services stored so far; is it meant for web, web-eu?`},
		{"orders*", `matches none of the 5 services stored so far`},
		{"_horizo[n]", `matches none of the 5 services stored so far`},
	} {
		for key, conf := range map[string]config.Config{
			"retention.rules[0].service": {Retention: config.Retention{Rules: []config.Rule{{Service: c.pattern}}}},
			"counters[0].service":        {Counters: []config.Counter{{Service: c.pattern}}},
			"rules[0].service":           {Rules: []config.RecordRule{{Service: c.pattern}}},
		} {
			var want []string
			if c.want != "" {
				want = []string{key + `: "` + c.pattern + `" ` + c.want}
			}
			if got, err := conf.Unmatched(stored); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %q, %v, want %q", c.pattern, got, err, want)
			}
			if got, err := conf.Unmatched(dirs("_store")); err != nil || got != nil {
				t.Errorf("an empty store: %q, %v", got, err)
			}
		}
	}
	away := errors.New("away")
	broken := func(yield func(string, error) bool) { yield("", away) }
	if _, err := (config.Config{Rules: []config.RecordRule{{Service: "web"}}}).Unmatched(broken); !errors.Is(err, away) {
		t.Error(err)
	}
	if _, err := (config.Config{Counters: []config.Counter{{Name: "all"}}}).Unmatched(broken); err != nil {
		t.Errorf("without a pattern: %v", err)
	}
}
