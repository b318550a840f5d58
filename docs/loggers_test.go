package docs_test

import (
	"os"
	"strings"
	"testing"

	"blobtail/record"
)

// docs/LOGGERS.md has the names of fields in the order in which they are tried.
func TestLoggersHasTheNames(t *testing.T) {
	page, err := os.ReadFile("LOGGERS.md")
	if err != nil {
		t.Fatal(err)
	}
	names := record.KnownNames()
	for part, list := range map[string][]string{"time": names.Time, "level": names.Level, "message": names.Message, "service": names.Service} {
		if row := "| " + part + " | `" + strings.Join(list, "`, `") + "` |\n"; !strings.Contains(string(page), row) {
			t.Errorf("LOGGERS.md lacks the row\n%s", row)
		}
	}
}
