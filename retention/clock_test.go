package retention_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"blobtail/blobfmt"
	"blobtail/retention"
	"blobtail/retention/horizon"
	"blobtail/storage"
	"blobtail/storage/dir"
)

// clockless is a store without its own clock, like a directory.
type clockless struct{ storage.BlobStore }

// Signs that make a host's clock doubtful if there is no other clock, also under the
// policy that was applied last.
func TestClockGuard(t *testing.T) {
	legal := retention.Rule{Service: "legal", Age: retention.Keep}
	for _, c := range []struct {
		name  string
		rules []retention.Rule
		make  func(w *world) // the stored blobs, the last of them stored just now
		ahead time.Duration  // the host's clock
		want  string
	}{
		{"months ahead", nil, func(w *world) { w.blob("app", 0, 1); w.blob("web", days(2), 1) }, days(40), "nothing of it was stored after 2026-11-20"},
		{"right", nil, func(w *world) { w.blob("app", 0, 1); w.blob("web", days(40), 1) }, 0, ""},
		{"nothing to hide", nil, func(w *world) { w.blob("app", 0, 1) }, days(29), ""},
		{"everything is of old, and was stored lately", nil, func(w *world) { w.blob("app", days(40), 1); w.blob("app", days(41), 1) }, day, ""},
		{"everything is of old, and was stored some time ago", nil, func(w *world) { w.blob("app", days(40), 1) }, day + time.Second, "nothing of it was stored after 2026-11-20"},
		{"one service has ended", nil, func(w *world) { w.blob("app", days(31), 1); w.blob("web", 0, 1) }, days(2), ""},
		{"all but what is kept has ended", []retention.Rule{legal}, func(w *world) { w.blob("app", days(31), 1); w.blob("legal", 0, 1) }, day + time.Hour, ""},
		{"what is kept has ended too", []retention.Rule{legal}, func(w *world) { w.blob("app", days(31), 1); w.blob("legal", 0, 1) }, days(3), "nothing of it was stored after 2026-11-20"},
		{"what is to come", nil, func(w *world) { w.blob("app", 0, 1); w.blob("app", -days(400), 1) }, days(40), "nothing of it was stored after 2026-11-20"},
		{"what is not ours", nil, func(w *world) {
			w.blob("app", 0, 1)
			w.put("app/2026/12/20/x", 1, nil)
			w.put("app/2026/12/21/1200/000001.log", 1, nil)
		}, days(40), "nothing of it was stored after 2026-11-20"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			policy := retention.Policy{Default: days(30), Rules: c.rules}
			w.apply(policy)
			c.make(w)
			w.now = w.now.Add(c.ahead)
			before := w.state()
			r, err := retention.New(clockless{w.store}, w.store, w.options(policy)).Apply(t.Context(), "")
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var confirm *retention.ConfirmError
			says := c.want + ": is this host's clock right? It says " + w.now.Format(time.DateOnly)
			if !errors.As(err, &confirm) || !strings.Contains(err.Error(), says) || diff(w.state(), before) != "" {
				t.Fatalf("%v, want %s\n%s", err, says, diff(w.state(), before))
			}
			if r, err = retention.New(clockless{w.store}, w.store, w.options(policy)).Apply(t.Context(), r.Plan.Hash); err != nil || len(r.Raised) == 0 {
				t.Errorf("confirmed: %+v, %v", r, err)
			}
			// The hidden days were confirmed, and are deleted when due.
			w.now = w.now.Add(grace)
			if _, err = retention.New(clockless{w.store}, w.store, w.options(policy)).Apply(t.Context(), ""); err != nil {
				t.Errorf("the next run: %v", err)
			}
		})
	}
}

// When the caller gives the time that ages count back from, no clock is read.
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
		if err := s.Create(t.Context(), blobfmt.Name{Service: "app", Period: at, Number: n + 1}.String(), []byte("x"), storage.Attrs{Metadata: metadata(n, at, 1)}); err != nil {
			t.Fatal(err)
		}
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
