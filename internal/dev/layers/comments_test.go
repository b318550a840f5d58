package layers

import (
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// namedPackage is the name of a package in a sentence. Before other words, such as "the package",
// no name follows.
var namedPackage = regexp.MustCompile(`(?:^|[.,:;]\s|\(|\b(?:in|of|by|from|on|as|for|is|than|to|with|and|or)\s)[Pp]ackage\s+([a-z][\w/]*)`)

// member is the name of a type or a function behind that of its package.
var member = regexp.MustCompile(`\.[A-Z]\w*$`)

// linked is a link to a name of another package.
var linked = regexp.MustCompile(`\[\*?([a-z]\w*)\.[A-Z][\w.]*\]`)

// TestCommentsNamePackages ensures that a package, a folder or a file that a comment names exists:
// as `package buffer`, [buffer.Buffer], blobtail/buffer or buffer/wal. A pattern has to match some.
func TestCommentsNamePackages(t *testing.T) {
	known, roots := map[string]bool{}, map[string]bool{module: true}
	for _, f := range parse(t) {
		known[f.tree.Name.Name], known[path.Base(f.pkg)] = true, true
		roots[folderOf(f.pkg)] = true
		for _, imp := range f.imports() {
			known[path.Base(imp)] = true
		}
	}
	inTree := regexp.MustCompile(`(?:^|[^\w./-])((?:` + strings.Join(slices.Collect(maps.Keys(roots)), "|") + `)/[\w./*-]*)`)
	found := 0
	for _, f := range parse(t) {
		for _, group := range f.tree.Comments {
			text := group.Text()
			for _, m := range append(namedPackage.FindAllStringSubmatch(text, -1), linked.FindAllStringSubmatch(text, -1)...) {
				name := strings.TrimPrefix(m[1], module+"/")
				if found++; !known[name] && name != "and" && (!strings.Contains(name, "/") || !exists(t, name)) {
					t.Errorf("%s: a comment names the package %s, and there is none", f.line(group.Pos()), m[1])
				}
			}
			for _, m := range inTree.FindAllStringSubmatch(text, -1) {
				name := strings.TrimRight(strings.TrimPrefix(m[1], module+"/"), "./")
				if found++; !exists(t, member.ReplaceAllString(name, "")) {
					t.Errorf("%s: a comment names %s, and there is none", f.line(group.Pos()), m[1])
				}
			}
		}
	}
	if found < 300 {
		t.Errorf("found %d names in comments", found)
	}
}

// exists reports whether a path from the root, or a pattern of paths, is of a file or a folder.
func exists(t *testing.T, name string) bool {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return len(found) > 0
}
