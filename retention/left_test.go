package retention_test

import (
	"errors"
	"strings"
	"testing"

	"blobtail/retention"
)

// A changed policy asks if a service falls out of the rule that kept it for longer, also if it hides
// nothing yet. An age that was changed with intent does not ask, and neither does a longer one.
func TestPolicyThatMatchesLessAsks(t *testing.T) {
	rule := func(service string, age int) retention.Rule {
		if age == 0 {
			return retention.Rule{Service: service, Age: retention.Keep}
		}
		return retention.Rule{Service: service, Age: days(age)}
	}
	for _, c := range []struct {
		name     string
		was, now []retention.Rule
		want     string
	}{
		{"a typo", []retention.Rule{rule("audit-*", 0)}, []retention.Rule{rule("audti-*", 0)}, `audit-a (and 1 more) was under the rule "audit-*" (keep), and is under the default (30d) now`},
		{"a rule less", []retention.Rule{rule(`audit-[ab]`, 0), rule("web", 90)}, []retention.Rule{rule(`audit-[ab]`, 0)}, `web was under the rule "web" (90d), and is under the default`},
		{"a glob before it", []retention.Rule{rule("audit-*", 0)}, []retention.Rule{rule("*-b", 7), rule("audit-*", 0)}, `audit-b was under the rule "audit-*" (keep), and is under the rule "*-b" (7d) now`},
		{"a shorter age", []retention.Rule{rule("audit-*", 0)}, []retention.Rule{rule("audit-*", 60)}, ""},
		{"a longer age elsewhere", []retention.Rule{rule("audit-*", 60)}, []retention.Rule{rule("audit-a", 90), rule("audit-*", 60)}, ""},
		{"a rule of no service less", []retention.Rule{rule("gone", 0)}, nil, ""},
		{"a shorter rule less", []retention.Rule{rule("web", 7)}, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			for _, service := range []string{"audit-a", "audit-b", "web"} {
				w.blob(service, days(2), 100)
			}
			policy := retention.Policy{Default: days(30), Rules: c.was}
			w.apply(policy)
			w.apply(policy)
			policy.Rules = c.now
			before := w.state()
			r, err := w.job(policy).Apply(t.Context(), "")
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			confirm, ok := errors.AsType[*retention.ConfirmError](err)
			if !ok || !strings.Contains(confirm.Why, c.want) {
				t.Fatalf("%v", err)
			}
			if d := diff(w.state(), before); d != "" {
				t.Errorf("something was done:\n%s", d)
			}
			if _, err := w.job(policy).Apply(t.Context(), r.Plan.Hash); err != nil {
				t.Error(err)
			}
			if _, err := w.job(policy).Apply(t.Context(), ""); err != nil {
				t.Errorf("once more: %v", err)
			}
		})
	}
}
