package retention_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog/horizon"
	"blobtail/retention"
	"blobtail/storage"
	"blobtail/storage/dir"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

// daily stores a blob of a service a day and runs the job, for some days.
func (w *world) daily(p retention.Policy, n int, services ...string) {
	w.t.Helper()
	for range n {
		for _, s := range services {
			w.blob(s, 0, 1)
		}
		if _, err := w.clocklessJob(p).Apply(w.t.Context(), ""); err != nil {
			w.t.Fatal(err)
		}
		w.now = w.now.Add(day)
	}
}

// restore makes a copy of the store. All its files are of now.
func (w *world) restore() {
	w.t.Helper()
	old := w.store
	w.store = mem.New(mem.Options{Now: w.clock})
	for b, err := range old.List(w.t.Context(), "", "") {
		if err == nil {
			err = w.store.Create(w.t.Context(), b.Key, bytes.Repeat([]byte{'x'}, int(b.Size)), b.Attrs)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// A person has to confirm a clock that was set ahead before a run hides anything. That holds under
// the policy that was applied last too, and even if ingesters stored records with that clock. No
// run asks again after a confirmation.
func TestClockAhead(t *testing.T) {
	for _, c := range []struct {
		name  string
		age   int // of all but legal, in days
		ahead time.Duration
		make  func(w *world) // with the wrong clock
	}{
		{"a year", 30, days(365), nil},
		{"a week", 30, days(7), nil},
		{"five days since the last run", 30, days(4) + time.Second, nil},
		{"half of a short age since the last run", 7, 60*time.Hour + time.Second, nil},
		{"hours, under an age of a day", 1, 6*time.Hour + time.Second, nil},
		{"one record was stored with it", 30, days(365), func(w *world) { w.blob("app", 0, 1) }},
		{"one record of another service", 30, days(365), func(w *world) { w.blob("new", 0, 1) }},
		{"one record of a service that is kept", 30, days(365), func(w *world) { w.blob("legal", 0, 1) }},
		{"an old record", 30, days(365), func(w *world) { w.blob("app", days(365), 1) }},
		{"a rejected record", 30, days(365), func(w *world) { w.blob("_rejected", 0, 1) }},
		{"a month of records", 30, days(365), func(w *world) {
			for range 30 {
				w.blob("app", 0, 1)
				w.blob("legal", 0, 1)
				w.now = w.now.Add(day)
			}
		}},
		{"it was set ahead twice", 30, days(30), func(w *world) { w.blob("app", 0, 1); w.now = w.now.Add(days(300)); w.blob("app", 0, 1) }},
		{"all blobs were compacted with it", 30, days(60), func(w *world) { w.restamp("app/") }},
		{"a blob of a future day", 30, days(60), func(w *world) { w.blob("app", -days(400), 1) }},
		{"what is not ours", 30, days(60), func(w *world) { w.put("app/2026/12/20/x", 1, nil); w.put("app/2026/12/21/1200/000001.log", 1, nil) }},
		{"a mark of a time to come", 30, days(60), func(w *world) { w.put("_clock/20290101T000000Z", 0, nil) }},
		{"the store was restored with it, without its times", 30, days(60), func(w *world) { w.restore() }},
		{"the store was restored with it, without the marks of runs", 30, days(60), func(w *world) { w.forget(); w.restore() }},
		{"an operator's horizon", 30, days(60), func(w *world) { w.publish("app", days(60+20)) }},
		{"a dropped day", 30, days(60), func(w *world) {
			if err := horizon.Drop(w.t.Context(), w.store, "app", horizon.DayOf(w.now)-1); err != nil {
				w.t.Fatal(err)
			}
		}},
		{"a run with an earlier time", 30, days(60), func(w *world) {
			o := w.options(retention.Policy{Default: days(30), Rules: []retention.Rule{{Service: "legal", Age: retention.Keep}}})
			o.At = w.now.Add(-days(60))
			if _, err := retention.New(clockless{w.store}, w.store, o).Apply(w.t.Context(), ""); err != nil {
				w.t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			policy := retention.Policy{Default: days(c.age), Rules: []retention.Rule{{Service: "legal", Age: retention.Keep}}}
			w.apply(policy)
			w.daily(policy, 40, "app", "web", "legal")
			w.now = w.now.Add(c.ahead)
			if c.make != nil {
				c.make(w)
			}
			before := w.state()
			for range 3 {
				r, err := w.clocklessJob(policy).Apply(t.Context(), "")
				var confirm *retention.ConfirmError
				says := "is this host's clock right? It says " + w.now.Format(time.DateOnly)
				if !errors.As(err, &confirm) || !strings.Contains(err.Error(), says) || diff(w.state(), before) != "" || r.Plan.Confirm == "" || r.Plan.Doubt == "" {
					t.Fatalf("%v, want %s\n%s", err, says, diff(w.state(), before))
				}
				w.now = w.now.Add(time.Hour) // it does not go by with time
			}
			p, err := w.clocklessJob(policy).Plan(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if r, err := w.clocklessJob(policy).Apply(t.Context(), p.Hash); err != nil || len(r.Raised) == 0 {
				t.Errorf("confirmed: %+v, %v", r, err)
			}
			for range 3 {
				w.now = w.now.Add(day)
				w.blob("app", 0, 1)
				if _, err := w.clocklessJob(policy).Apply(t.Context(), ""); err != nil {
					t.Errorf("a later run: %v", err)
				}
			}
		})
	}
}

// forget deletes the marks of the runs that trusted the clock.
func (w *world) forget() {
	w.t.Helper()
	for b, err := range w.store.List(w.t.Context(), "_clock/", "") {
		if err == nil {
			err = w.store.Delete(w.t.Context(), b)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// restamp stores all blobs below a prefix anew, as compaction does.
func (w *world) restamp(prefix string) {
	w.t.Helper()
	all := storagetest.Objects(w.t, w.store, prefix)
	if err := w.store.Delete(w.t.Context(), all...); err != nil {
		w.t.Fatal(err)
	}
	for _, b := range all {
		w.put(b.Key, int(b.Size), b.Metadata)
	}
}

// A right clock is not asked for while the store or the job shows that time went on.
func TestClockRight(t *testing.T) {
	for _, c := range []struct {
		name string
		age  int
		make func(w *world, p retention.Policy)
	}{
		{"a run a day", 30, func(*world, retention.Policy) {}},
		{"a long weekend without a record or a run", 30, func(w *world, _ retention.Policy) { w.now = w.now.Add(days(4)) }},
		{"a weekend without a record or a run", 7, func(w *world, _ retention.Policy) { w.now = w.now.Add(days(2)) }},
		{"a run that comes late", 1, func(w *world, _ retention.Policy) { w.now = w.now.Add(5 * time.Hour) }},
		{"runs without a record for months", 30, func(w *world, p retention.Policy) { w.daily(p, 100) }},
		{"no run for months", 30, func(w *world, _ retention.Policy) {
			for range 20 {
				w.now = w.now.Add(days(3))
				w.blob("legal", 0, 1)
			}
		}},
		{"no run for months, and records of one day in three", 30, func(w *world, _ retention.Policy) {
			for range 30 {
				w.now = w.now.Add(days(3))
				w.blob("app", days(1), 1)
			}
		}},
		{"one service has ended", 30, func(w *world, p retention.Policy) { w.daily(p, 60, "web") }},
		{"all but what is kept has ended", 30, func(w *world, p retention.Policy) { w.daily(p, 60, "legal") }},
		{"old logs were imported", 30, func(w *world, _ retention.Policy) {
			for i := range 90 {
				w.blob("old", days(31+i), 1)
			}
		}},
		{"the store was restored from yesterday, without its times", 30, func(w *world, _ retention.Policy) { w.restore() }},
		{"the marks of runs are gone, with a rest long ago", 30, func(w *world, p retention.Policy) {
			w.now = w.now.Add(days(20))
			if _, err := confirmedRun(w.clocklessJob(p)); err != nil {
				w.t.Fatal(err)
			}
			w.daily(p, 10, "app")
			w.forget()
		}},
		{"the clock is behind", 30, func(w *world, _ retention.Policy) { w.now = w.now.Add(-days(100)) }},
		{"the clock was behind for a day", 30, func(w *world, p retention.Policy) {
			w.now = w.now.Add(-days(100))
			w.daily(p, 1, "app")
			w.now = w.now.Add(days(100))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			policy := retention.Policy{Default: days(c.age), Rules: []retention.Rule{{Service: "legal", Age: retention.Keep}}}
			w.apply(policy)
			w.daily(policy, 40, "app", "web", "legal")
			c.make(w, policy)
			for range 3 {
				p, err := w.clocklessJob(policy).Plan(t.Context())
				if err != nil || p.Confirm != "" || p.Doubt != "" {
					t.Fatalf("%q, %q, %v", p.Confirm, p.Doubt, err)
				}
				if _, err := w.clocklessJob(policy).Apply(t.Context(), ""); err != nil {
					t.Fatal(err)
				}
				w.now = w.now.Add(day)
			}
		})
	}
}

// While the clock is in doubt and nothing is to be hidden, a run asks nothing. It deletes the
// blobs that an earlier run hid, and raises no horizon, since a later run would trust it.
func TestClockInDoubt(t *testing.T) {
	w := newWorld(t)
	policy := retention.Policy{Default: days(90)}
	w.apply(policy)
	w.daily(policy, 20, "app")
	hidden := w.blob("app", days(95), 1)
	w.now = w.now.Add(days(40)) // or the clock is ahead
	before := w.state()
	for range 3 {
		w.blob("app", 0, 1)
		r, err := w.clocklessJob(policy).Apply(t.Context(), "")
		if err != nil || r.Plan.Doubt == "" || r.Plan.Confirm != "" || len(r.Raised) != 0 || len(r.Problems) != 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		w.now = w.now.Add(day)
	}
	if w.has(hidden) {
		t.Errorf("%s is there", hidden)
	}
	for key := range w.state() {
		if _, ok := before[key]; !ok && !strings.HasPrefix(key, "app/") {
			t.Errorf("%s was made", key)
		}
	}
	// A table is due.
	w.table("tail20261101")
	policy.Tail = days(3)
	var confirm *retention.ConfirmError
	if _, err := w.clocklessJob(policy).Apply(t.Context(), ""); !errors.As(err, &confirm) || !strings.Contains(err.Error(), "is this host's clock right?") {
		t.Errorf("a table: %v", err)
	}
	policy.Tail = 0
	// A person says that the clock is right, though nobody asked.
	p, err := w.clocklessJob(policy).Plan(t.Context())
	if err != nil || p.Confirm != "" || p.Doubt == "" {
		t.Fatalf("%+v, %v", p, err)
	}
	if r, err := w.clocklessJob(policy).Apply(t.Context(), p.Hash); err != nil || len(r.Raised) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	w.now = w.now.Add(days(3))
	if r, err := w.clocklessJob(policy).Apply(t.Context(), ""); err != nil || r.Plan.Doubt != "" {
		t.Errorf("%+v, %v", r, err)
	}
}

// A question for the clock and one for the policy are asked at once.
func TestClockAndPolicy(t *testing.T) {
	w := newWorld(t)
	w.apply(retention.Policy{Default: days(90)})
	w.daily(retention.Policy{Default: days(90)}, 40, "app")
	w.now = w.now.Add(days(20))
	_, err := w.clocklessJob(retention.Policy{Default: days(30)}).Apply(t.Context(), "")
	if err == nil || !strings.Contains(err.Error(), "nothing was stored from 2026-12-29 to 2027-01-19") || !strings.Contains(err.Error(), "the policy is not the one applied last") {
		t.Errorf("%v", err)
	}
}

// A run that trusts the clock leaves a mark in place of those before it. A run with a clock behind
// a mark, or behind the blobs, leaves the marks alone: its clock may be wrong. A person's word
// ends the doubt.
func TestClockMarks(t *testing.T) {
	w, policy := newWorld(t), retention.Policy{Default: days(30)}
	check := func(want ...string) {
		t.Helper()
		var keys []string
		for key := range w.state() {
			if name, ok := strings.CutPrefix(key, "_clock/"); ok {
				keys = append(keys, name)
			}
		}
		slices.Sort(keys)
		if !slices.Equal(keys, want) {
			t.Errorf("%v, want %v", keys, want)
		}
	}
	run := func(confirm string) {
		t.Helper()
		if _, err := w.clocklessJob(policy).Apply(t.Context(), confirm); err != nil {
			t.Error(err)
		}
	}
	w.blob("app", 0, 1)
	w.now = w.now.Add(-days(3))
	run("")
	check()
	w.now = w.now.Add(days(3))
	w.put("_clock/readme", 0, nil)
	w.daily(policy, 3, "app")
	check("20261122T120000Z", "readme")
	w.now = w.now.Add(-days(300))
	run("")
	check("20261122T120000Z", "readme")
	w.now = w.now.Add(days(300))
	run("")
	check("20261123T120000Z", "readme")
	w.put("_clock/20290101T000000Z", 0, nil)
	w.now = w.now.Add(days(3))
	run("")
	check("20261123T120000Z", "20290101T000000Z", "readme")
	p, err := w.clocklessJob(policy).Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	run(p.Hash)
	check("20261126T120000Z", "readme")
	// A store with a clock needs none.
	w = newWorld(t)
	w.blob("app", 0, 1)
	w.apply(retention.Policy{Default: days(30)})
	for key := range w.state() {
		if strings.HasPrefix(key, "_clock/") {
			t.Errorf("%s was made", key)
		}
	}
}

// When a person gives the time that ages count back from, the clock is not doubted.
func TestClockGuardOfATimeGiven(t *testing.T) {
	w := newWorld(t)
	w.blob("app", days(40), 1)
	policy := retention.Policy{Default: days(30)}
	w.apply(retention.Policy{Default: retention.Keep})
	w.now = w.now.Add(days(9))
	o := w.options(policy)
	o.At = w.now.Add(-time.Minute)
	r, err := retention.New(clockless{w.store}, w.store, o).Plan(t.Context())
	if err != nil || strings.Contains(r.Confirm, "clock") || !strings.Contains(r.Confirm, "policy") {
		t.Errorf("%q, %v", r.Confirm, err)
	}
	o.AtByClock = true
	if r, err := retention.New(clockless{w.store}, w.store, o).Plan(t.Context()); err != nil || !strings.Contains(r.Confirm, "is this host's clock right?") {
		t.Errorf("by the clock: %q, %v", r.Confirm, err)
	}
}

// A machine with an empty battery, or with the wrong year set, hides and deletes
// nothing in a directory under the policy in force.
func TestClockAheadOnADirectory(t *testing.T) {
	s, err := dir.Open(t.TempDir(), dir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	run := func(ahead time.Duration) (*retention.Result, error) {
		o := retention.Options{Policy: retention.Policy{Default: days(30)}, Grace: grace, Clock: func() time.Time { return now.Add(ahead) }}
		return retention.New(s, nil, o).Apply(t.Context(), "")
	}
	for n, ago := range []int{0, 1, 5, 6} {
		at := now.Add(-days(ago)).UTC().Truncate(time.Hour)
		storagetest.Put(t, s, blobfmt.Name{Service: "app", Period: at, Number: n + 1}.String(), []byte("x"), storage.Attrs{Metadata: metadata(n, at, 1)})
	}
	if _, err := run(0); err != nil {
		t.Fatal(err)
	}
	for _, ahead := range []time.Duration{days(40), days(40) + 2*grace, 4000 * day} {
		var confirm *retention.ConfirmError
		if r, err := run(ahead); !errors.As(err, &confirm) || r.Total().Blobs != 0 {
			t.Errorf("%v ahead: %+v, %v", ahead, r, err)
		}
	}
	if h, err := horizon.Read(t.Context(), s); err != nil || h.Hides("app", horizon.DayOf(now)-6) {
		t.Errorf("%+v, %v", h, err)
	}
}
