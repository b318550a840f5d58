package docs

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestIndex ensures that a reader of README.md is two clicks from each page: README.md links the
// index and few pages besides, and the index links all.
func TestIndex(t *testing.T) {
	const mostLinked = 6 // with the index
	linked := func(page string) (out []string) {
		for _, m := range regexp.MustCompile(`\]\(([^)#\s]+\.md)`).FindAllStringSubmatch(read(t, page), -1) {
			if name := filepath.Join(filepath.Dir(page), m[1]); !slices.Contains(out, name) && strings.HasPrefix(name, "docs/") {
				out = append(out, name)
			}
		}
		return out
	}
	if first := linked("README.md"); !slices.Contains(first, "docs/README.md") || len(first) > mostLinked {
		t.Errorf("README.md links %v", first)
	}
	index := linked("docs/README.md")
	for _, page := range pages(t) {
		if strings.HasPrefix(page, "docs/") && page != "docs/README.md" && !slices.Contains(index, page) {
			t.Errorf("docs/README.md does not link %s", page)
		}
	}
}
