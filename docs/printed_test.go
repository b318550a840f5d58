package docs

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

// update writes the pages and tables that are printed from the code; make pages does.
var update = flag.Bool("update", false, "write anew what is printed from the code, and the tables of docs/measured/cost.md")

// printedBy begins the line of a printed page that tells it from a hand-written one.
const printedBy = "<!-- printed by go test "

// note is that line, with the test that prints the page.
func note(test string) string { return printedBy + "./docs -run " + test + " -update -->\n" }

// printed wants a file to have a text, or writes it.
func printed(t *testing.T, file, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(filepath.Join(root, file), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if read(t, file) != want {
		t.Errorf("%s is not what the code says: run make pages", file)
	}
}
