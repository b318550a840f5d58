package deploy

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// importer gives a package its imports.
type importer func(path string) (*types.Package, error)

func (f importer) Import(path string) (*types.Package, error) { return f(path) }

// TestOtherSystems ensures that logquery compiles for the systems that it is released for, as far
// as types go. A compiler would compile the standard library for each first. Packages of others are
// read without the bodies of their functions.
func TestOtherSystems(t *testing.T) {
	for _, system := range []string{"windows", "darwin"} {
		list := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap", "./cmd/query")
		list.Dir, list.Env = "..", append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system)
		out, err := list.Output()
		if err != nil {
			t.Fatal(err)
		}
		set, known := token.NewFileSet(), map[string]*types.Package{"unsafe": types.Unsafe}
		for in := json.NewDecoder(strings.NewReader(string(out))); in.More(); { // each after its imports
			var p struct {
				ImportPath, Dir string
				GoFiles         []string
				ImportMap       map[string]string
			}
			if err := in.Decode(&p); err != nil {
				t.Fatal(err)
			}
			var files []*ast.File
			for _, name := range p.GoFiles {
				f, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
				if err != nil {
					t.Fatal(err)
				}
				files = append(files, f)
			}
			check := types.Config{
				IgnoreFuncBodies: !strings.HasPrefix(p.ImportPath, "blobtail/"), Sizes: types.SizesFor("gc", "amd64"),
				Error: func(err error) { t.Errorf("for %s: %v", system, err) },
				Importer: importer(func(path string) (*types.Package, error) {
					if vendored, ok := p.ImportMap[path]; ok {
						path = vendored
					}
					return known[path], nil
				}),
			}
			if p.ImportPath != "unsafe" {
				known[p.ImportPath], _ = check.Check(p.ImportPath, set, files, nil) // Error has its errors
			}
		}
		if len(known) < 100 {
			t.Errorf("for %s: %d packages", system, len(known))
		}
	}
}
