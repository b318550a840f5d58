package layers

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pageNames returns the paths of all pages, from the root.
func pageNames(t *testing.T) (out []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := d.Name(); d.IsDir() && (base == "node_modules" || base == "testdata" || strings.HasPrefix(base, ".") && name != root) {
			return filepath.SkipDir
		}
		if !d.IsDir() && strings.HasSuffix(name, ".md") {
			rel, err := filepath.Rel(root, name)
			if err != nil {
				return err
			}
			out = append(out, filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func readPage(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// words counts the words of a page, as wc does. A page that a test of docs prints from the code has none.
func words(t *testing.T, page string) int {
	text := readPage(t, page)
	if strings.Contains(text, "\n<!-- printed by go test ") {
		return 0
	}
	return len(strings.Fields(text))
}

// TestPageLength ensures that a reader sees the end of a page. The changelog is as long as its
// history, and printed pages are not read from their beginning to their end.
func TestPageLength(t *testing.T) {
	seen := map[string]bool{}
	for _, page := range pageNames(t) {
		if page == "CHANGELOG.md" {
			continue
		}
		n := words(t, page)
		was, listed := longPages[page]
		seen[page] = true
		switch {
		case page == "DESIGN.md":
			if n > mostDesign {
				t.Errorf("DESIGN.md has %d words, and at most %d are allowed: a chapter of one package belongs to its doc comment; mostDesign may be raised in the commit that says why", n, mostDesign)
			}
		case listed && n <= mostPage:
			t.Errorf("%s has %d words, within mostPage: take its row out of longPages", page, n)
		case listed && n < was-was/10:
			t.Errorf("%s has %d words now: lower the row in longPages, which says %d", page, n, was)
		case listed && n > was:
			t.Errorf("%s has %d words, and its row in longPages says %d, which may only shrink: divide the page, or raise the row in the commit that says why", page, n, was)
		case !listed && n > mostPage:
			t.Errorf("%s has %d words, and at most %d are allowed: divide it by reader; mostPage may be raised in the commit that says why", page, n, mostPage)
		}
	}
	for page := range longPages {
		if !seen[page] {
			t.Errorf("longPages has a row for %s, and there is no such page: take the row away", page)
		}
	}
}

// TestAllPages ensures that the hand-written pages of docs do not grow together, each within its limit.
func TestAllPages(t *testing.T) {
	all := 0
	for _, page := range pageNames(t) {
		if strings.HasPrefix(page, "docs/") {
			all += words(t, page)
		}
	}
	if all > mostDocs {
		t.Errorf("the pages of docs have %d words, and at most %d are allowed: say each thing once, on the page of its task; "+
			"mostDocs may be raised in the commit that says why", all, mostDocs)
	}
}
