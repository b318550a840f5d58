package search

import (
	"slices"
	"strings"
	"testing"
)

// A line of a stranger costs about what its length is worth: what would cost its square is refused.
func TestHostile(t *testing.T) {
	for name, c := range map[string]struct{ line, says string }{
		"too long":     {strings.Repeat("a ", mostLine/2) + "b", "a search has at most 65,536 bytes"},
		"the longest":  {strings.Repeat("a ", mostLine/2), ""},
		"a few (":      {strings.Repeat("( ", 150) + strings.Repeat("a ", 30_000), ""},
		"many (":       {strings.Repeat("( ", 30_000), "so many ( without a )"},
		"many lists":   {strings.Repeat("a:(b ", 12_000), "so many ( without a )"},
		"many in (":    {strings.Repeat("a in (", 10_000), "so many ( without a )"},
		"many groups":  {strings.Repeat("(a) ", 16_000), ""},
		"nested":       {strings.Repeat("(", 200) + "a" + strings.Repeat(")", 200), "so many groups within each other"},
		"many NOT":     {strings.Repeat("NOT ", 16_000) + "a", ""},
		"large class":  {`/[\x{100}-\x{10000}]/`, ""},
		"large repeat": {"/(?:" + strings.Repeat(`\pL`, 300) + "){3}/", ""},
	} {
		q, err := Parse(c.line)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		if err != nil {
			continue
		}
		if _, err := Parse(q.String()); err != nil && len(q.String()) <= mostLine {
			t.Errorf("%s: what it prints: %v", name, err)
		}
		if text, notes := q.LogQL(false, nil); strings.HasPrefix(name, "large") && (strings.Contains(text, "~") || len(notes) == 0) {
			t.Errorf("%s: %.100s, %q", name, text, notes)
		}
		WordAt(c.line)
	}
}

// Columns are counted in characters, also behind what was read twice.
func TestColumns(t *testing.T) {
	for line, want := range map[string][]int{
		`é ü`:                              {1, 3},
		`é (ü OR "ß x") -a:b`:              {1, 4, 9, 16},
		`(é ü`:                             {1, 4},
		`日本:(語 OR "ü") x in (é, ü) y`:      {5, 10, 21, 24, 27},
		`a:[1 TO 2] é:{3 TO 4} z`:          {3, 3, 14, 14, 23},
		`NOT NOT é where:(a == "ü") /ß/ ü`: {1, 11, 28, 32},
	} {
		q, err := Parse(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		var got []int
		for _, term := range q.Terms() {
			got = append(got, term.Begin)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: columns %v, want %v", line, got, want)
		}
	}
}
