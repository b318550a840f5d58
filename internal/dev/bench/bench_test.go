package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/bench/report"
	"blobtail/internal/dev/bench/rig"
	"blobtail/internal/dev/testkit/meter"
)

// The sides run as new, old, old, new.
func TestInTurn(t *testing.T) {
	b := &bench{sides: []*side{{version: "new"}, {version: "old"}}}
	var order []string
	if err := b.inTurn(3, func(_ int, s *side) error { order = append(order, s.version); return nil }); err != nil {
		t.Fatal(err)
	}
	if want := []string{"new", "old", "old", "new", "new", "old"}; !slices.Equal(order, want) {
		t.Errorf("%v, not %v", order, want)
	}
}

func TestMeasured(t *testing.T) {
	var samples []sample
	for i := range 5 {
		v := float64(i + 1)
		samples = append(samples, sample{rig.Usage{WallMS: 10 * v, CPUs: v, RSSMB: 100 * v}, v, &exchange{30 * time.Millisecond, i, 2, 1000, 5 * v}})
	}
	m := measured(samples, 1.5)
	if m.Runs != 5 || m.Figure != (report.Spread{Median: 3, Min: 1, Max: 5}) || m.WallMS.Median != 30 || m.RSSMB.Max != 500 || m.CPUY != 2 || m.YardS != 1.5 {
		t.Errorf("%+v", m)
	}
	if r := m.Remote; r.DelayMS != 30 || r.Requests.Median != 2 || r.Chain.Max != 2 || r.Bytes.Median != 1000 || r.UndelayedMS.Median != 15 {
		t.Errorf("%+v", r)
	}
	row := memoryRow(report.Row{ID: "vi", Measured: m}, 70)
	if row.Judge(); row.ID != "vi-memory" || row.Figure.Median != 300 || row.Unit != "MB" || *row.Met {
		t.Errorf("%+v", row)
	}
}

func TestExchange(t *testing.T) {
	at := func(ms int64) time.Time { return time.UnixMilli(ms) }
	var x exchange
	x.count([]meter.Request{{Begun: at(0), Ended: at(30), Bytes: 10}, {Begun: at(1), Ended: at(31), Bytes: 20}, {Begun: at(32), Ended: at(60), Bytes: 5}})
	if x.requests != 3 || x.chain != 2 || x.bytes != 35 {
		t.Errorf("%+v", x)
	}
}

// Each record since the time is in one part, in order.
func TestDeal(t *testing.T) {
	b := &bench{work: t.TempDir(), parser: newParser()}
	c := &rig.Corpus{File: filepath.Join(b.work, "corpus")}
	if err := os.WriteFile(c.File, []byte(asSent), 0o600); err != nil {
		t.Fatal(err)
	}
	parts, err := b.deal(c, time.Date(2026, 11, 10, 12, 0, 0, 50e6, time.UTC).Truncate(time.Second), 2)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(asSent, "\n")
	for i, want := range []string{lines[0] + lines[2], lines[1]} {
		got, err := os.ReadFile(parts[i].File)
		if err != nil || string(got) != want || parts[i].Records != strings.Count(want, "\n") {
			t.Errorf("part %d has %d records: %s, %v", i, parts[i].Records, got, err)
		}
	}
	if parts, err = b.deal(c, time.Date(2026, 11, 10, 12, 0, 1, 0, time.UTC), 2); err != nil || parts[0].Records != 1 || parts[1].Records != 0 {
		t.Errorf("since the last second: %v, %v", parts, err)
	}
}
