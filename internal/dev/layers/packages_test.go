package layers

import (
	"flag"
	"fmt"
	"go/doc"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// printPages writes the page of packages anew; make pages does.
var printPages = flag.Bool("update", false, "write docs/dev/packages.md anew")

// TestPackagesPage ensures that docs/dev/packages.md has each package of the product, below all that
// it imports, with the first sentence of its comment.
func TestPackagesPage(t *testing.T) {
	const page = "docs/dev/packages.md"
	sentences := map[string]string{}
	for _, f := range parse(t) {
		if f.tree.Doc != nil && !f.isTest() {
			sentences[f.pkg] = new(doc.Package).Synopsis(f.tree.Doc.Text())
		}
	}
	var rows []string
	for pkg := range allowed {
		words := strings.SplitN(strings.TrimSuffix(sentences[pkg], "."), " ", 3) // Package NAME does what
		if len(words) < 3 {
			t.Fatalf("the comment of package %s begins with %q", pkg, sentences[pkg])
		}
		text := strings.NewReplacer("|", `\|`, "<", `\<`, "[", "", "]", "").Replace(words[2])
		rows = append(rows, fmt.Sprintf("%03d| `%s` | %s |\n", level(pkg), pkg, text))
	}
	slices.Sort(rows)
	const head = "# Packages\n\n<!-- printed by go test ./internal/dev/layers -run TestPackagesPage -update -->\n\n" +
		"Each imports only packages above it. The sentence is the first one of its comment.\n\n" +
		"| package | does |\n|---|---|\n"
	text := head
	for _, row := range rows {
		text += row[3:]
	}
	name := filepath.Join(root, filepath.FromSlash(page))
	if *printPages {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if readPage(t, page) != text {
		t.Errorf("%s is not that of the packages: make pages", page)
	}
}

// level is the number of packages below a package, one below the other.
func level(pkg string) int {
	deepest := -1
	for _, below := range allowed[pkg] {
		deepest = max(deepest, level(below))
	}
	return deepest + 1
}
