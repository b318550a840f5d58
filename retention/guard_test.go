package retention_test

import (
	"errors"
	"iter"
	"maps"
	"strings"
	"testing"
	"time"

	"blobtail/retention"
)

func keysOf(m map[string]string) iter.Seq[string] { return maps.Keys(m) }

// Cases that need a confirmation, and cases that do not.
func TestGuard(t *testing.T) {
	applied := retention.Policy{Default: days(90)}
	for _, c := range []struct {
		name   string
		before bool // the policy was applied before
		olds   int  // expired days
		size   int  // of each day
		want   string
	}{
		{"nothing goes", false, 0, 0, ""},
		{"two days, a fifth of all", false, 2, 100, ""},
		{"two days, more than a fifth", false, 2, 101, "hides 202 of 1,002 bytes"},
		{"three days", false, 3, 1, "hides 3 days of app"},
		{"a backlog of the same policy", true, 50, 1000, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			policy := retention.Policy{Default: days(30), Rules: []retention.Rule{{Service: "other", Age: retention.Keep}}}
			if c.before {
				w.apply(applied)
				w.apply(policy)
			}
			w.blob("other", 0, 1000-200*min(1, c.size/100))
			for i := range c.olds {
				w.blob("app", days(31+i), c.size)
			}
			before := w.state()
			r, err := w.job(policy).Apply(t.Context(), "")
			var confirm *retention.ConfirmError
			if c.want == "" {
				if err != nil || len(r.Plan.Days) != c.olds {
					t.Errorf("%+v, %v", r, err)
				}
				return
			}
			if !errors.As(err, &confirm) || !strings.Contains(confirm.Why, c.want) || confirm.Hash != r.Plan.Hash || len(confirm.Hash) != 64 {
				t.Fatalf("%v", err)
			}
			if d := diff(w.state(), before); d != "" {
				t.Errorf("something was done:\n%s", d)
			}
			_, err = w.job(policy).Apply(t.Context(), strings.Repeat("0", 64))
			if !errors.As(err, &confirm) || !strings.Contains(err.Error(), "is not the hash of this plan") {
				t.Errorf("a wrong hash: %v", err)
			}
			if _, err = w.job(policy).Apply(t.Context(), r.Plan.Hash); err != nil {
				t.Errorf("the right hash: %v", err)
			}
			// From here on it is the policy in force.
			w.blob("app", days(2000), 5000)
			w.blob("app", days(2001), 5000)
			w.blob("app", days(2002), 5000)
			_, err = w.job(policy).Apply(t.Context(), strings.Repeat("0", 64))
			if !errors.As(err, &confirm) || confirm.Why != "" || !strings.HasSuffix(err.Error(), "and needs no confirmation") {
				t.Errorf("a wrong hash of a plan that needs none: %v", err)
			}
			if _, err = w.job(policy).Apply(t.Context(), ""); err != nil {
				t.Errorf("a second run: %v", err)
			}
		})
	}
}

// The hash covers the days to delete and the policy, and changes with either.
func TestHash(t *testing.T) {
	w := newWorld(t)
	w.blob("app", days(40), 1)
	hash := func(o retention.Options) string {
		t.Helper()
		p, err := retention.New(w.store, w.store, o).Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return p.Hash
	}
	policy := retention.Policy{Default: days(30), Tail: days(3)}
	first := hash(w.options(policy))
	w.blob("app", days(40), 1000)
	w.now = w.now.Add(time.Hour)
	if again := hash(w.options(policy)); again != first {
		t.Error("it changes with the bytes or the hour")
	}
	seen := map[string]string{first: "first"}
	other := func(what, h string) {
		t.Helper()
		if was := seen[h]; was != "" {
			t.Errorf("%s: the same as %s", what, was)
		}
		seen[h] = what
	}
	other("another age", hash(w.options(retention.Policy{Default: days(31), Tail: days(3)})))
	other("another age of the tail", hash(w.options(retention.Policy{Default: days(30), Tail: days(4)})))
	other("a rule", hash(w.options(retention.Policy{Default: days(30), Tail: days(3), Rules: []retention.Rule{{Service: "x", Age: days(3)}}})))
	o := w.options(policy)
	o.At = w.now.Add(-day)
	other("another day", hash(o))
	w.blob("app", days(41), 1)
	other("another day of logs", hash(w.options(policy)))
	w.blob("app2", days(41), 1)
	other("another service", hash(w.options(policy)))
}

// The policy that was applied last is found even if clocks are wrong. A policy that is
// applied again later counts as changed.
func TestGuardKnowsTheLastPolicy(t *testing.T) {
	w := newWorld(t)
	one, two := retention.Policy{Default: days(30)}, retention.Policy{Default: days(20)}
	w.apply(one)
	w.now = w.now.Add(-time.Minute) // the clock was set back
	w.apply(two)
	w.now = w.now.Add(day)
	for i := range 3 {
		w.blob("app", days(35+i), 1)
	}
	if _, err := w.job(two).Apply(t.Context(), ""); err != nil {
		t.Errorf("the last: %v", err)
	}
	for i := range 3 {
		w.blob("web", days(35+i), 1)
	}
	var confirm *retention.ConfirmError
	if _, err := w.job(one).Apply(t.Context(), ""); !errors.As(err, &confirm) || !strings.Contains(err.Error(), "not the one applied last, on 2026-11-20") {
		t.Errorf("the one before: %v", err)
	}
}

// A host with a clock that disagrees with the store's deletes nothing, and no age
// counts from the future.
func TestClocks(t *testing.T) {
	policy := retention.Policy{Default: days(30)}
	for _, c := range []struct {
		name  string
		skew  time.Duration // host less store
		at    time.Duration // from the store's time; 0: not given
		wants string
	}{
		{"right", 0, 0, ""},
		{"almost", 5 * time.Minute, 0, ""},
		{"ahead", 5*time.Minute + time.Second, 0, "ahead of the store's"},
		{"behind", -6 * time.Minute, 0, "behind the store's"},
		{"years ahead", 3 * 365 * day, 0, "ahead of the store's"},
		{"a time that is past", 0, -days(3), ""},
		{"a time to come", 0, time.Second, "yet to come"},
		{"a time that is past here only", 2 * time.Second, time.Second, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.blob("app", days(29), 1)
			o := w.options(policy)
			o.Clock = func() time.Time { return w.now.Add(c.skew) }
			if c.at != 0 {
				o.At = w.now.Add(c.at)
			}
			before := w.state()
			_, err := retention.New(w.store, w.store, o).Apply(t.Context(), "")
			var refused *retention.RefusedError
			switch {
			case c.wants == "" && err != nil:
				t.Error(err)
			case c.wants != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), c.wants)):
				t.Errorf("%v", err)
			case c.wants != "" && diff(w.state(), before) != "":
				t.Error(diff(w.state(), before))
			}
		})
	}
}

// Nothing is done without an age for all services, or with an age that must be a
// mistake.
func TestPolicyIsChecked(t *testing.T) {
	for name, p := range map[string]retention.Policy{
		"none":           {},
		"rules alone":    {Rules: []retention.Rule{{Service: "app", Age: days(3)}}},
		"hours for days": {Default: 7 * time.Hour},
		"negative":       {Default: -days(3)},
		"short rule":     {Default: days(3), Rules: []retention.Rule{{Service: "app", Age: 23 * time.Hour}}},
		"rule of none":   {Default: days(3), Rules: []retention.Rule{{Service: "app"}}},
		"bad glob":       {Default: days(3), Rules: []retention.Rule{{Service: "[", Age: days(3)}}},
		"short tail":     {Default: days(3), Tail: time.Hour},
	} {
		w := newWorld(t)
		w.blob("app", days(400), 1)
		var refused *retention.RefusedError
		if _, err := w.job(p).Apply(t.Context(), ""); !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
		if len(w.state()) != 1 {
			t.Errorf("%s: %v", name, w.state())
		}
	}
}

func TestPolicyAge(t *testing.T) {
	p := retention.Policy{Default: days(30), Rules: []retention.Rule{
		{Service: "app", Age: days(1)}, {Service: "app*", Age: days(2)}, {Service: "_*", Age: days(4)}, {Service: "*-debug", Age: days(5)},
	}}
	for service, want := range map[string]int{"app": 1, "app2": 2, "app-debug": 2, "web-debug": 5, "_rejected": 4, "web": 30} {
		if got := p.Age(service); got != days(want) {
			t.Errorf("%s: %v", service, got)
		}
	}
	if got := (retention.Policy{Default: days(30), Rules: []retention.Rule{{Service: "*", Age: days(1)}}}).Age("_rejected"); got != days(30) {
		t.Errorf("_rejected under *: %v", got)
	}
}
