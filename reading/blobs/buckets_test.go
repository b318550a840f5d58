package blobs_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"blobtail/reading/blobs"
)

// The buckets of a zone cover all times, without gaps and without overlaps.
func TestBuckets(t *testing.T) {
	names := []string{"UTC", "Europe/Berlin", "Asia/Kolkata", "America/Sao_Paulo", "Australia/Lord_Howe", "Africa/Monrovia", "Pacific/Apia"}
	lengths := []time.Duration{1, time.Second, 7 * time.Second, time.Minute, 15 * time.Minute, time.Hour, 6 * time.Hour, 7 * time.Hour, 24 * time.Hour, 36 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour}
	rapid.Check(t, func(t *rapid.T) {
		zone, err := time.LoadLocation(rapid.SampledFrom(names).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		b := blobs.Buckets{Length: rapid.SampledFrom(lengths).Draw(t, "length"), Zone: zone}
		// The years 1700 to 2250: beyond, a bucket may begin before all times.
		ns := rapid.Int64Range(-8_520_000_000, 8_830_000_000).Draw(t, "s")*1e9 + rapid.Int64Range(0, 1e9).Draw(t, "ns")
		start := b.Start(ns)
		next := b.Next(start)
		if start > ns || next <= ns || b.Start(start) != start || b.Start(next-1) != start || b.Start(next) != next {
			t.Fatalf("%d is in the bucket from %d to %d; that of the start begins at %d, of the end at %d, of the next at %d",
				ns, start, next, b.Start(start), b.Start(next-1), b.Start(next))
		}
	})
}

func TestBucketsStart(t *testing.T) {
	for _, c := range []struct {
		zone   string
		length time.Duration
		at     string
		want   string
	}{
		{"Asia/Kolkata", 24 * time.Hour, "2026-11-20T20:00:00Z", "2026-11-21T00:00:00+05:30"},
		{"Asia/Kolkata", time.Hour, "2026-11-20T20:40:00Z", "2026-11-21T02:00:00+05:30"},
		{"Europe/Berlin", 7 * 24 * time.Hour, "2026-11-20T20:00:00Z", "2026-11-16T00:00:00+01:00"}, // a Monday
		{"UTC", 7 * 24 * time.Hour, "2026-11-20T20:00:00Z", "2026-11-16T00:00:00Z"},
		{"Europe/Berlin", 24 * time.Hour, "2026-10-25T22:00:00Z", "2026-10-25T00:00:00+02:00"}, // a day of 25 hours
		{"Europe/Berlin", time.Hour, "2026-10-25T00:30:00Z", "2026-10-25T02:00:00+02:00"},
		{"Europe/Berlin", time.Hour, "2026-10-25T01:30:00Z", "2026-10-25T02:00:00+01:00"},
		{"America/Sao_Paulo", 24 * time.Hour, "2018-11-04T12:00:00Z", "2018-11-04T01:00:00-02:00"}, // it has no midnight
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		at, _ := time.Parse(time.RFC3339, c.at)
		b := blobs.Buckets{Length: c.length, Zone: zone}
		if got := time.Unix(0, b.Start(at.UnixNano())).In(zone).Format(time.RFC3339); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	all := blobs.Buckets{Length: time.Hour}
	if all.Start(math.MinInt64) != math.MinInt64 || all.Next(all.Start(math.MaxInt64)) != math.MaxInt64 {
		t.Error("the ends of time have no buckets")
	}
}
