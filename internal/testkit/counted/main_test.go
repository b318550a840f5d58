package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The Makefile lists the directories that have such tests, and no others.
func TestMakefile(t *testing.T) {
	const root = "../../.."
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?m)^COUNTED +:= ((?:.*\\\n)*.*)`).FindSubmatch(makefile)
	if list == nil {
		t.Fatal("the Makefile has no COUNTED")
	}
	listed := strings.Fields(strings.ReplaceAll(string(list[1]), "\\", ""))
	var want []string
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if d.Name() == "node_modules" || d.Name() == ".git" {
			return fs.SkipDir
		}
		tests, err := counted(path)
		if len(tests) > 0 {
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			want = append(want, "./"+filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(listed)
	slices.Sort(want)
	if len(want) == 0 || !slices.Equal(listed, want) {
		t.Errorf("COUNTED has\n%q, want\n%q", listed, want)
	}
}
