package docs_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"blobtail/record/names"
)

// TestNames ensures that docs/send/loggers.md has the known names of each part, in the order in
// which they are tried.
func TestNames(t *testing.T) {
	page, err := os.ReadFile("send/loggers.md")
	if err != nil {
		t.Fatal(err)
	}
	for part, name := range []string{names.Time: "time", names.Level: "level", names.Message: "message", names.Service: "service"} {
		row := fmt.Sprintf("\n| %s | `%s` |\n", name, strings.Join(names.Known(names.Part(part)), "`, `"))
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/send/loggers.md lacks the row%s", row)
		}
	}
}
