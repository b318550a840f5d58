package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/bench/report"
	"blobtail/internal/dev/testkit/meter"
)

// TestMain lets this binary be the child that runs commands.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "launch" {
		if err := launch(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A run has the output, the exit code, and the cost of the command, not of this process.
func TestRun(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ballast := make([]byte, 200<<20) // resident here when the child starts
	for i := range ballast {
		ballast[i] = 1
	}
	r := &runner{self: self}
	const script = `echo "$GREETING"; echo note >&2; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.05; head -c 3000000 /dev/zero; exit 7`
	for range 2 { // the second run uses the memory of the first
		out, u, errs, err := r.run(t.Context(), []string{"GREETING=hello", "PATH=" + os.Getenv("PATH")}, "sh", "-c", script)
		if err != nil {
			t.Fatal(err)
		}
		if len(out) != 3_000_006 || !strings.HasPrefix(string(out), "hello\n") || errs != "note\n" || u.Code != 7 {
			t.Errorf("%d bytes, %q on stderr, exit code %d", len(out), errs, u.Code)
		}
		if u.WallMS < 50 || u.CPUs <= 0 || u.CPUs > u.WallMS/1000*2 || u.RSSMB < 0.5 || u.RSSMB > 100 {
			t.Errorf("implausible: %+v", u)
		}
	}
	if ballast[len(ballast)-1] != 1 {
		t.Error("the ballast is gone")
	}
	if _, _, _, err := r.run(t.Context(), nil, "/no/such/program"); err == nil {
		t.Error("a missing program is no error")
	}
}

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
		samples = append(samples, sample{usage{WallMS: 10 * v, CPUs: v, RSSMB: 100 * v}, v, &exchange{30 * time.Millisecond, i, 2, 1000, 5 * v}})
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

// The CPU time of other processes is that of the machine without ours.
func TestOthers(t *testing.T) {
	at := time.Now()
	before, after := busy{at, 1000, 10}, busy{at.Add(2 * time.Second), 1003, 12}
	if got := after.others(before); got != 0.5 {
		t.Errorf("%v cores", got)
	}
	if now := busyNow(); now.all <= 0 || now.own <= 0 || now.own > now.all {
		t.Errorf("implausible: %+v", now)
	}
}

// A blob of the store counts; the log, the tables and other objects do not.
func TestBlobsOf(t *testing.T) {
	store := t.TempDir()
	for name, size := range map[string]int{"web/2026/11/10/1500/000001.log": 100, "web/2026/11/10/1600/000001.log": 20, ".wal/000001.log": 1000, ".tables/t.db": 1000, "_store": 7} {
		path := filepath.Join(store, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n, size, err := blobsOf(store); n != 2 || size != 120 || err != nil {
		t.Errorf("%d blobs of %d bytes, %v", n, size, err)
	}
	copied := filepath.Join(t.TempDir(), "copy")
	if err := copyStore(store, copied); err != nil {
		t.Fatal(err)
	}
	if n, size, err := blobsOf(copied); n != 2 || size != 120 || err != nil {
		t.Errorf("the copy has %d blobs of %d bytes, %v", n, size, err)
	}
	for name, there := range map[string]bool{"_store": true, ".tables/t.db": true, ".wal": false} {
		if _, err := os.Stat(filepath.Join(copied, name)); (err == nil) != there {
			t.Errorf("%s in the copy: %v", name, err)
		}
	}
}

// Each record since the time is in one part, in order.
func TestDeal(t *testing.T) {
	b := &bench{work: t.TempDir(), parser: newParser()}
	c := &corpus{file: filepath.Join(b.work, "corpus")}
	if err := os.WriteFile(c.file, []byte(asSent), 0o600); err != nil {
		t.Fatal(err)
	}
	parts, err := b.deal(c, time.Date(2026, 11, 10, 12, 0, 0, 50e6, time.UTC).Truncate(time.Second), 2)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(asSent, "\n")
	for i, want := range []string{lines[0] + lines[2], lines[1]} {
		got, err := os.ReadFile(parts[i].file)
		if err != nil || string(got) != want || parts[i].records != strings.Count(want, "\n") {
			t.Errorf("part %d has %d records: %s, %v", i, parts[i].records, got, err)
		}
	}
	if parts, err = b.deal(c, time.Date(2026, 11, 10, 12, 0, 1, 0, time.UTC), 2); err != nil || parts[0].records != 1 || parts[1].records != 0 {
		t.Errorf("since the last second: %v, %v", parts, err)
	}
}

func TestSelected(t *testing.T) {
	for _, c := range []struct {
		rows string
		ids  []string
		want bool
	}{
		{"", []string{"i"}, true}, {"i", []string{"i"}, true}, {"i", []string{"ii"}, false}, {"v,iii-*", []string{"iii-w"}, true},
		{"remote-*", []string{"i", "remote-tail"}, true}, {"remote-*", []string{"i"}, false},
	} {
		if got := (options{rows: c.rows}).selected(c.ids...); got != c.want {
			t.Errorf("-rows %q selects %q: %v", c.rows, c.ids, got)
		}
	}
}
