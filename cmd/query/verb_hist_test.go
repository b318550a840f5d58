package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"blobtail/internal/cli"
	"blobtail/reading"
	"blobtail/record"
	"blobtail/storage/dir"
)

// slots are buckets with some starts.
func slots(starts ...int64) (all []reading.Slot) {
	for _, start := range starts {
		all = append(all, reading.Slot{Bucket: reading.Bucket{Start: start}})
	}
	return all
}

// All of time, in buckets that are not aligned to its ends.
func TestFilled(t *testing.T) {
	n, by := 0, 100*365*24*time.Hour
	var last int64
	for b, empty := range filled(slots(reading.Oldest, -int64(by), 0), reading.Buckets{Length: by}, 10) {
		if empty > 0 {
			t.Errorf("%d empty ones", empty)
		}
		if n > 0 && b.Start <= last {
			t.Fatalf("%d behind %d", b.Start, last)
		}
		last = b.Start
		n++
	}
	if n != 4 || last != 0 {
		t.Errorf("%d buckets, the last at %d", n, last)
	}
}

// A long stretch of empty buckets is one line.
func TestFolded(t *testing.T) {
	for _, c := range []struct{ gap, lines, empty int }{{1, 2, 0}, {2, 3, 0}, {21, 22, 0}, {22, 3, 21}, {10_188, 3, 10_187}} {
		lines, folded := 0, 0
		for _, empty := range filled(slots(0, int64(c.gap)*int64(time.Minute)), reading.Buckets{Length: time.Minute}, 20) {
			lines++
			folded += empty
		}
		if lines != c.lines || folded != c.empty {
			t.Errorf("%+v: %d lines, %d folded", c, lines, folded)
		}
	}
}

// A bar has its full width with any counts, and each level is visible.
func TestShare(t *testing.T) {
	for _, counts := range [][record.NumLevels]int64{
		{record.Info: 1}, {record.Info: 1e9, record.Error: 1}, {1, 1, 1, 1, 1, 1, 1}, {record.Debug: 2, record.Other: 1}, {1e9, 1e9, 1e9, 1, 1, 1, 1},
	} {
		for length := range 80 {
			sum, shown, there := 0, 0, 0
			for l, cells := range share(counts[:], length) {
				sum += cells
				if cells > 0 && counts[l] == 0 {
					t.Errorf("%v in %d: %v has cells", counts, length, record.Level(l))
				}
				if cells > 0 {
					shown++
				}
				if counts[l] > 0 {
					there++
				}
			}
			if sum != length || shown < min(length, there) {
				t.Errorf("%v in %d: %d cells, %d of %d levels", counts, length, sum, shown, there)
			}
		}
	}
}

// On a terminal the output is text in colour, as wide as the terminal.
func TestHistTerminal(t *testing.T) {
	path := t.TempDir() + "/data"
	store, err := dir.Open(path, dir.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&text, `{"ts":%d,"service":"web","level":"%s","msg":"x"}`+"\n", 1795183200+i, []string{"info", "error"}[i/1400])
	}
	if err := addBlob(store, []byte(text.String()), 1); err != nil {
		t.Fatal(err)
	}
	code, out, errs := terminal(t, path, "hist", "web", "--by", "10m")
	want := "from              total                                              error  info\n" +
		"2026-11-20 14:00    600  \x1b[32m" + strings.Repeat("█", 42) + "\x1b[0m          600\n" +
		"2026-11-20 14:10    600  \x1b[32m" + strings.Repeat("█", 42) + "\x1b[0m          600\n" +
		"2026-11-20 14:20    300  \x1b[31m" + strings.Repeat("█", 7) + "\x1b[0m\x1b[32m" + strings.Repeat("█", 14) + "\x1b[0m" + strings.Repeat(" ", 21) + "    100   200\n"
	if code != cli.OK || out != want {
		t.Errorf("exit %d, stderr %s, printed\n%q, want\n%q", code, errs, out, want)
	}
	_, out, errs = terminal(t, path, "hist", "web", "--color", "never", "-q")
	for line := range strings.Lines(out) {
		if len(line) > 81 {
			t.Errorf("%d wide: %s", len(line), line)
		}
	}
	if strings.Count(out, "\n") != 51 || errs != "" || strings.Contains(out, "\x1b") {
		t.Errorf("%d lines, stderr %s", strings.Count(out, "\n"), errs)
	}
}
