package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../../../.."

// listed returns a list of directories in the Makefile, in order.
func listed(t *testing.T, name string) []string {
	t.Helper()
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?m)^` + name + ` +:= ((?:.*\\\n)*.*)`).FindSubmatch(makefile)
	if list == nil {
		t.Fatalf("the Makefile has no %s", name)
	}
	all := strings.Fields(strings.ReplaceAll(string(list[1]), "\\", ""))
	slices.Sort(all)
	return all
}

// matching returns the directories of the repository that a function wants, in order, as the
// Makefile names them.
func matching(t *testing.T, want func(dir, name string) (bool, error)) (all []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if d.Name() == "node_modules" || d.Name() == ".git" || d.Name() == "bin" {
			return fs.SkipDir
		}
		if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != root {
			return fs.SkipDir // another module, no part of the product
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name := "./" + filepath.ToSlash(rel)
		if wanted, err := want(path, name); err != nil {
			return err
		} else if wanted {
			all = append(all, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

// The Makefile lists the raced packages that have such tests, and no others. The other packages
// have one run, in full.
func TestCounted(t *testing.T) {
	raced := listed(t, "RACED")
	want := matching(t, func(dir, name string) (bool, error) {
		if !slices.Contains(raced, name) {
			return false, nil
		}
		tests, err := counted(dir)
		return len(tests) > 0, err
	})
	if got := listed(t, "COUNTED"); len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("COUNTED has\n%q, want\n%q", got, want)
	}
}

// unraced start goroutines, and their tests need no race detector.
var unraced = map[string]string{
	"./internal/dev/bench":            "the benchmark",
	"./internal/dev/bench/rig":        "its tests wait for processes",
	"./internal/dev/compare/reads":    "its tests wait for processes",
	"./internal/dev/compare/victoria": "its test waits for a process",
	"./internal/dev/try":              "its tests wait for processes",
	"./internal/cli":                  "waits for signals",
	"./internal/dev/testkit/meter":    "for tests",
	"./reading/readingtest":           "for tests",
	"./storage/storagetest":           "for tests",
}

// Packages that start goroutines are raced.
func TestRaced(t *testing.T) {
	raced := listed(t, "RACED")
	starting := matching(t, func(dir, name string) (bool, error) { return starts(dir) })
	if len(starting) < 10 {
		t.Errorf("only %q start goroutines", starting)
	}
	for _, name := range starting {
		if !slices.Contains(raced, name) && unraced[name] == "" {
			t.Errorf("%s starts goroutines, and RACED in the Makefile does not have it", name)
		}
	}
	for name := range unraced {
		if !slices.Contains(starting, name) {
			t.Errorf("%s starts no goroutines, and needs no reason", name)
		}
	}
}

// starts reports whether the code of a package, without its tests, starts goroutines: by a go
// statement, or by a method Go.
func starts(dir string) (found bool, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return false, err
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return false, err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				found = true
			case *ast.CallExpr:
				if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Go" {
					found = true
				}
			}
			return true
		})
	}
	return found, nil
}
