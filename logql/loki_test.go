package logql_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"blobtail/logql"
)

// TestLokiJudges holds the list against Loki's own parser, by `logcli fmt`: it takes the same
// queries but for those of a list, and the printed form of a query means the same to it as the
// query. `make logcli` builds the command and runs this test.
func TestLokiJudges(t *testing.T) {
	logcli := os.Getenv("LOGCLI")
	if logcli == "" {
		t.Skip("make logcli runs this test")
	}
	format := func(t *testing.T, query string) (string, bool) {
		cmd := exec.CommandContext(t.Context(), logcli, "fmt")
		cmd.Stdin = strings.NewReader(query)
		out, err := cmd.Output()
		return string(out), err == nil
	}
	data, err := os.ReadFile("testdata/loki.txt")
	if err != nil {
		t.Fatal(err)
	}
	differs := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		differs[strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "␤", "\n")] = true
	}
	for _, q := range readJudged(t) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			tree, err := logql.Parse(q.query)
			form, taken := format(t, q.query)
			agree := taken == (err == nil)
			switch {
			case agree == differs[q.query]:
				t.Errorf("%s\nLoki takes it: %v, blobtail says %v", q.query, taken, err)
			case taken && err == nil:
				if again, _ := format(t, tree.String()); again != form {
					t.Errorf("%s\nis to Loki\n%sbut printed it is\n%s", q.query, form, again)
				}
			}
		})
	}
}
