package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// A narrow table keeps its main columns, and names the others.
func TestTableFits(t *testing.T) {
	for _, tt := range []struct {
		columns    int
		head, note string
	}{
		{0, "first                last                 blobs  records  service", ""},
		{80, "first                last                 blobs  records  service", ""},
		{60, "last                 blobs  records  service", "too narrow for: first; -o json has all"},
		{40, "last                 records  service", "too narrow for: first, blobs; -o json has all"},
		{20, "records  service", "too narrow for: first, blobs, last; -o json has all"},
		{5, "records  service", "too narrow for: first, blobs, last; -o json has all"},
	} {
		var out, notes bytes.Buffer
		a := &app{out: newOutput(&out)}
		a.Stderr, a.env.columns = &notes, tt.columns
		a.env.getenv = func(string) string { return "" }
		tab := table{heads: []head{{"first", true, 3}, {"last", true, 1}, {"blobs", false, 2}, {"records", false, 0}, {"service", true, 0}}}
		tab.add("2026-11-20 14:00:00", "2026-11-20 14:24:59", "1", "1,500", "web")
		tab.print(a, "-o json")
		if err := a.out.flush(); err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(out.String(), "\n")
		if first != tt.head || !strings.Contains(notes.String(), tt.note) || tt.note == "" && notes.Len() > 0 {
			t.Errorf("%d columns: %q, %s", tt.columns, first, notes.String())
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(line) - 1; tt.columns > 20 && n > tt.columns {
				t.Errorf("%d columns: a line of %d", tt.columns, n)
			}
		}
	}
}

// A value of several lines, or a long one, stays in its row.
func TestCell(t *testing.T) {
	a := &app{}
	a.env.columns, a.env.getenv = 60, func(string) string { return "" }
	for value, want := range map[string]string{
		`""`:                                 `""`,
		`502`:                                `502`,
		`"two\n\tlines"`:                     `two\n\tlines`,
		`"` + strings.Repeat("é", 100) + `"`: strings.Repeat("é", 41) + "…",
	} {
		if got := cell(value, max(a.width()-len("records  100.0 %  "), 20)); got != want {
			t.Errorf("%s: %s, want %s", value, got, want)
		}
	}
}
