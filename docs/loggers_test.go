package docs_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"blobtail/source/body/loggers"
)

// update writes the table of loggers anew; make loggers does.
var update = flag.Bool("update", false, "write the table of docs/send/loggers.md anew")

// The table of loggers is that of the rows in source/body/loggers/testdata.
func TestLoggersTable(t *testing.T) {
	const begin, end = "<!-- the table of loggers, by make loggers -->\n", "<!-- the end of the table -->\n"
	rows, err := loggers.Read("../source/body/loggers/testdata")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("send/loggers.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), begin)
	was, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("docs/send/loggers.md lacks the lines %s%s", begin, end)
	}
	table := "\n" + loggers.Table(rows) + "\n"
	switch {
	case was == table:
	case *update:
		if err := os.WriteFile("send/loggers.md", []byte(before+begin+table+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the table of docs/send/loggers.md is not that of the rows: run make loggers")
	}
}
