package logql_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"blobtail/logql"
)

// A judged query is one of testdata/judged.txt.
type judged struct {
	query      string
	ours       string // the error; "": blobtail takes it
	theirs     bool   // Grafana takes it
	difference string // why the two differ
}

// readJudged reads testdata/judged.txt.
func readJudged(t testing.TB) []judged {
	data, err := os.ReadFile("testdata/judged.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []judged
	var heading judged
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if who, ok := strings.CutPrefix(line, "== "); ok {
			heading = judged{theirs: who == "both take" || strings.HasPrefix(who, "only Grafana")}
			_, heading.difference, _ = strings.Cut(who, ": ")
			continue
		}
		if msg, ok := strings.CutPrefix(line, "    "); ok {
			all[len(all)-1].ours = msg
		} else if line != "" && !strings.HasPrefix(line, "# Queries") && !strings.HasPrefix(line, "# that") {
			q := heading
			q.query = strings.ReplaceAll(line, "␤", "\n")
			all = append(all, q)
		}
	}
	return all
}

// TestJudged ensures that each query of the list is taken, or refused by the error of the list.
func TestJudged(t *testing.T) {
	all := readJudged(t)
	if len(all) < 400 {
		t.Fatalf("%d queries, want 400", len(all))
	}
	for _, q := range all {
		tree, err := logql.Parse(q.query)
		switch {
		case err == nil && q.ours == "":
			same(t, q.query, tree)
		case err == nil:
			t.Errorf("%s\nwas taken, want %s", q.query, q.ours)
		case err.Error() != q.ours:
			t.Errorf("%s\n got %v\nwant %s", q.query, err, q.ours)
		}
		if (q.ours == "") != q.theirs && q.difference == "" {
			t.Errorf("%s: no reason why Grafana and blobtail differ", q.query)
		}
	}
}

// TestGrafanaJudges holds the list against the grammar that Grafana's editor uses.
func TestGrafanaJudges(t *testing.T) {
	all := readJudged(t)
	var queries []string
	for _, q := range all {
		queries = append(queries, q.query)
	}
	for i, taken := range judge(t, queries) {
		if taken != all[i].theirs {
			t.Errorf("%s\nGrafana takes it: %v, want %v", all[i].query, taken, all[i].theirs)
		}
	}
}

// judge says of each query whether Grafana's grammar takes it.
func judge(t *testing.T, queries []string) []bool {
	t.Helper()
	modules, err := filepath.Abs("../node_modules")
	if err != nil {
		t.Fatal(err)
	}
	node, err := exec.LookPath("node")
	if _, missing := os.Stat(filepath.Join(modules, "@grafana", "lezer-logql")); err != nil || missing != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("no Node, or no @grafana/lezer-logql: npm ci --ignore-scripts")
		}
		t.Skip("no Node, or no @grafana/lezer-logql: npm ci --ignore-scripts")
	}
	in, err := json.Marshal(queries)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, "testdata/judge.cjs")
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	cmd.Stdin = bytes.NewReader(in)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var taken []bool
	if err := json.Unmarshal(out, &taken); err != nil || len(taken) != len(queries) {
		t.Fatalf("%d of %d verdicts: %v", len(taken), len(queries), err)
	}
	return taken
}
