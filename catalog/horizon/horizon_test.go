package horizon_test

import (
	"math"
	"testing"
	"time"

	"blobtail/catalog/horizon"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

func day(t *testing.T, s string) horizon.Day {
	t.Helper()
	d, err := horizon.ParseDay(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDays(t *testing.T) {
	for _, at := range []string{"2026-11-20T00:00:00Z", "2026-11-20T23:59:59.999999999Z", "1969-12-31T23:59:59Z", "1677-09-21T00:12:44Z", "2262-04-11T00:00:00Z"} {
		when, err := time.Parse(time.RFC3339Nano, at)
		if err != nil {
			t.Fatal(err)
		}
		d := horizon.DayOf(when)
		if got := d.String(); got != at[:10] {
			t.Errorf("DayOf(%s) = %s", at, got)
		}
		if ns := when.UnixNano(); when.Year() > 1677 && horizon.DayOfNs(ns) != d {
			t.Errorf("DayOfNs(%s) = %s", at, horizon.DayOfNs(ns))
		}
		if d.Start().After(when) || !(d + 1).Start().After(when) {
			t.Errorf("%s starts %s", d, d.Start())
		}
	}
	if horizon.DayOfNs(math.MinInt64).String() != "1677-09-21" {
		t.Error(horizon.DayOfNs(math.MinInt64))
	}
	for _, bad := range []string{"", "2026-11-31", "2026-1-2", "20261131", "2026-11-20 ", "26-11-20", "+2026112"} {
		if d, err := horizon.ParseDay(bad); err == nil {
			t.Errorf("ParseDay(%q) = %s", bad, d)
		}
	}
}

// The greatest name counts, in any order of creation, and only for its own service.
// Other objects next to them do not count.
func TestRead(t *testing.T) {
	s := mem.New(mem.Options{})
	for _, d := range []string{"2026-10-20", "2026-10-22", "2026-10-21", "2026-10-22"} {
		if err := horizon.Publish(t.Context(), s, "app", day(t, d)); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{"2026-11-02", "2026-10-30"} {
		if err := horizon.Drop(t.Context(), s, "app2", day(t, d)); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"_horizon/app2/20261199", "_horizon/app2/20261101.bak", "_horizon/20261101", "_horizon/app2/x/20261101", "_horizon/APP2/20261101"} {
		storagetest.Put(t, s, key, nil)
	}
	for name, services := range map[string][]string{"all": nil, "two": {"app", "app2"}, "many": {"a", "app", "app2", "b", "c", "d"}} {
		h, err := horizon.Read(t.Context(), s, services...)
		if err != nil {
			t.Fatal(err)
		}
		if len(h) != 2 {
			t.Errorf("%s: %+v", name, h)
		}
		for _, c := range []struct {
			service, day string
			want         bool
		}{
			{"app", "2026-10-21", true}, {"app", "2026-10-22", false}, {"app", "1999-01-01", true},
			{"app2", "2026-10-21", false}, {"app2", "2026-10-30", true}, {"app2", "2026-10-31", false}, {"app2", "2026-11-02", true},
			{"ap", "1999-01-01", false},
		} {
			if got := h.Hides(c.service, day(t, c.day)); got != c.want {
				t.Errorf("%s: Hides(%s, %s) = %v", name, c.service, c.day, got)
			}
		}
	}
	one, err := horizon.Read(t.Context(), s, "app")
	if err != nil || len(one) != 1 {
		t.Errorf("app alone: %+v, %v", one, err)
	}
	if err := horizon.Publish(t.Context(), s, "app/..", 1); err == nil {
		t.Error("a name that is no service was published")
	}
}
