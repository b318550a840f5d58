package integration_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/catalog/horizon"
)

// Many small blobs become few, and no reader sees a difference. The replaced blobs
// are deleted a grace later, and then a run finds nothing to do.
func TestCompaction(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, at place) {
		e := newEstate(t, at, "default: 10d")
		e.gap = 6 * time.Minute
		// Two ingesters with different periods, so that blobs of an hour begin at
		// several times.
		a := start(t, at, t.TempDir(), e.flag, "--period", "10m")
		b := start(t, at, t.TempDir(), e.flag, "--lane", "1")
		for range 6 {
			e.fill(a, "web", 4, 2, 3, 4, 12)
			e.fill(b, "web", 4, 2, 3, 4)
		}
		e.fill(a, "db", 40, 3)
		// The other one ingests the same again: copies, which are shown once.
		twice := e.lines("web", 5, 4)
		a.mustPost("/ingest/web", twice)
		a.mustFlush()
		b.mustPost("/ingest/web", twice)
		b.mustFlush()
		a.stop()
		b.stop()
		ask := [][]string{
			{"web", "db", "-o", "json"}, {"web", "-n", "50", "-r", "-o", "json"}, {"hist", "web", "--by", "30m", "-o", "json"},
			{"hist", "*", "--by", "1d", "-o", "csv"}, {"web", "--count"}, {"web", "-F", "-1 was", "-o", "json"},
			{"web", "--count", "--from", e.day(4).Start().Add(25 * time.Minute).Format(time.RFC3339), "--to", e.day(3).Start().Add(40 * time.Minute).Format(time.RFC3339)},
		}
		var before [][]byte
		for _, args := range ask {
			before = append(before, query(t, at, args...))
		}
		same := func(when string) {
			t.Helper()
			for i, args := range ask {
				if got := query(t, at, args...); !bytes.Equal(got, before[i]) {
					t.Errorf("%s: logquery %s gives another answer: %s", when, strings.Join(args, " "), difference(got, before[i]))
				}
			}
			query(t, at, "verify")
		}
		small := logs(t, at)

		e.close()
		e.must(0, "compact")
		both := logs(t, at)
		compacted := slices.DeleteFunc(slices.Clone(both), func(k string) bool { return !strings.Contains(k, "/99") })
		if len(compacted) == 0 || len(both) != len(small)+len(compacted) {
			t.Fatalf("%d blobs before, %d after, %d of them compacted", len(small), len(both), len(compacted))
		}
		same("before what is replaced goes")
		e.must(0, "compact")
		if got := logs(t, at); !slices.Equal(got, both) {
			t.Errorf("a second run within the grace: %v", got)
		}

		e.must(0, "compact", "--grace", "0s")
		few := logs(t, at)
		t.Logf("%d blobs before, %d after", len(small), len(few))
		if len(few)*2 > len(small) {
			t.Errorf("%d blobs before, %d after", len(small), len(few))
		}
		same("after it has gone")
		e.must(0, "compact", "--grace", "0s")
		if got := logs(t, at); !slices.Equal(got, few) {
			t.Errorf("a run with nothing to do: %v, was %v", got, few)
		}

		// Compacted blobs expire like all others.
		e.confirm()
		e.sweep()
		old := func(d horizon.Day) bool { return d < e.day(10) }
		if got := of(logs(t, at), "web", old); len(of(small, "web", old)) == 0 || len(got) > 0 {
			t.Errorf("of web stay %v", got)
		}
		e.policy("default: 2d")
		e.confirm()
		e.sweep()
		e.counts("web", e.day(2))
	})
}
