package logql_test

import (
	"os"
	"strings"
	"testing"

	"blobtail/logql"
)

// A query of testdata/loki.txt, with the verdicts of Loki and of blobtail.
type lokiJudged struct {
	query        string
	theirs, ours bool   // Loki takes it, blobtail takes it
	printed      string // the form that blobtail prints, if both take it
	line         int    // in the file
}

// readLoki reads testdata/loki.txt.
func readLoki(t testing.TB) (all []lokiJudged) {
	data, err := os.ReadFile("testdata/loki.txt")
	if err != nil {
		t.Fatal(err)
	}
	var heading lokiJudged
	begun := false // the lines above the first heading are a comment
	for line := range strings.Lines(string(data)) {
		heading.line++
		line = strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "␤", "\n")
		if who, ok := strings.CutPrefix(line, "== "); ok {
			who, why, _ := strings.Cut(who, ": ")
			heading.theirs = who == "both take" || who == "only Loki takes"
			heading.ours = who == "both take" || who == "only blobtail takes"
			begun = true
			if !heading.theirs && !heading.ours && who != "neither takes" || heading.theirs != heading.ours && why == "" {
				t.Fatalf("line %d of loki.txt: the heading does not say who takes the queries, and why only one does", heading.line)
			}
			continue
		}
		if !begun || line == "" {
			continue
		}
		if printed, ok := strings.CutPrefix(line, "    "); ok {
			all[len(all)-1].printed = printed
			continue
		}
		q := heading
		q.query, q.printed = line, line
		all = append(all, q)
	}
	return all
}

// TestLokiJudges holds the parser against the recorded verdicts of Loki's own: both take the same
// queries, but for those under a heading that says why not. To Loki the printed form of a query
// means the same as the query.
func TestLokiJudges(t *testing.T) {
	all := readLoki(t)
	if len(all) < 2_000 {
		t.Fatalf("%d queries, want 2,000", len(all))
	}
	for _, q := range all {
		tree, err := logql.Parse(q.query)
		switch {
		case (err == nil) != q.ours:
			t.Errorf("loki.txt, line %d: %s\nblobtail says %v. Loki takes it: %v", q.line, q.query, err, q.theirs)
		case q.ours && q.theirs && tree.String() != q.printed:
			t.Errorf("loki.txt, line %d: %s\nis printed as\n%s\nLoki has judged\n%s", q.line, q.query, tree, q.printed)
		}
	}
}
