package reading_test

import (
	"errors"
	"testing"
	"time"

	"blobtail/reading"
)

// The length of buckets suits the range, or else the records.
func TestLength(t *testing.T) {
	const hour, day = time.Hour, 24 * time.Hour
	chosen := func(s reading.Slices, rng reading.Range, last time.Duration) time.Duration {
		by, err := s.Length(rng, 0, int64(last), true)
		if err != nil {
			t.Error(err)
		}
		return by
	}
	for _, c := range []struct{ span, by time.Duration }{
		{0, time.Second},
		{time.Minute, time.Second},
		{hour, time.Minute},
		{hour + 1, 2 * time.Minute},
		{6 * hour, 10 * time.Minute},
		{day, 30 * time.Minute},
		{7 * day, 3 * hour},
		{30 * day, 12 * hour},
		{365 * day, 7 * day},
		{1<<63 - 1, 10 * 365 * day},
	} {
		if by := chosen(reading.Slices{}, reading.Always(), c.span); by != c.by {
			t.Errorf("%v: by %v, want %v", c.span, by, c.by)
		}
		if by := chosen(reading.Slices{}, reading.Range{From: 0, To: int64(c.span)}, 3*day); by != c.by && int64(c.span) != reading.Newest {
			t.Errorf("a range of %v: by %v, want %v", c.span, by, c.by)
		}
		if by := chosen(reading.Slices{Until: int64(c.span)}, reading.Always(), 0); by != c.by {
			t.Errorf("until %v: by %v, want %v", c.span, by, c.by)
		}
	}
	// Never more than 60, and seldom less than 24.
	for span := time.Minute; span < 20*365*day; span += span / 7 {
		by := chosen(reading.Slices{}, reading.Always(), span)
		if n := int64((span + by - 1) / by); n > 60 || n < 15 {
			t.Errorf("%v: %d buckets", span, n)
		}
	}
	if by := chosen(reading.Slices{Most: 10}, reading.Always(), hour); by != 10*time.Minute {
		t.Errorf("10 at most: by %v", by)
	}
	s := reading.Slices{By: time.Second, Bound: 3600}
	if by := chosen(s, reading.Always(), hour); by != time.Second {
		t.Errorf("by %v", by)
	}
	var many *reading.BucketsError
	if _, err := s.Length(reading.Always(), 0, int64(hour)+1, true); !errors.As(err, &many) || many.Last != int64(hour)+1 {
		t.Error(err)
	}
	if by, err := s.Length(reading.Always(), 0, 0, false); err != nil || by != time.Second {
		t.Errorf("of nothing: %v %v", by, err)
	}
	if by, err := new(reading.Slices).Length(reading.Always(), 0, 0, false); err != nil || by != time.Minute {
		t.Errorf("of nothing: %v %v", by, err)
	}
}
