package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// namedFile is a file or a folder of the repository in a page, with a name that the file declares.
var namedFile = regexp.MustCompile("`([a-zA-Z0-9_.]+(?:/[a-zA-Z0-9_.-]+)+)(?:: ([^`]*))?`")

// TestNamedFiles ensures that the files and folders that the pages for engineers name exist, and each
// function, type, constant and variable that they name in a file.
func TestNamedFiles(t *testing.T) {
	// Blobs, packages of Go, and files below the folder of the text.
	other := regexp.MustCompile(`^(queue|web|service|net|testdata)/`)
	known, named := map[string]map[string]bool{}, 0
	for _, page := range []string{"docs/dev/code.md", "DESIGN.md", "docs/dev/decisions.md", "CONTRIBUTING.md"} {
		for _, m := range namedFile.FindAllStringSubmatch(read(t, page), -1) {
			file, name := m[1], m[2]
			if named++; other.MatchString(file) {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, file)); err != nil {
				t.Errorf("%s names %s: %v", page, file, err)
			} else if strings.HasSuffix(file, ".go") && name != "" && !strings.Contains(name, " ") {
				if known[file] == nil {
					known[file] = declared(t, file)
				}
				if !known[file][name] {
					t.Errorf("%s: %s does not declare %s", page, file, name)
				}
			}
		}
	}
	if named < 200 {
		t.Errorf("found %d names of files", named)
	}
}

// declared returns the functions, methods (Receiver.Name), types, constants and variables of a
// file.
func declared(t *testing.T, file string) map[string]bool {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return map[string]bool{}
	}
	names := map[string]bool{}
	for _, d := range parsed.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names[receiver(d)+d.Name.Name] = true
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					names[s.Name.Name] = true
				case *ast.ValueSpec:
					for _, name := range s.Names {
						names[name.Name] = true
					}
				}
			}
		}
	}
	return names
}

// receiver returns the type of a method's receiver with a dot behind it, without star
// and type parameters.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	x := f.Recv.List[0].Type
	for {
		switch y := x.(type) {
		case *ast.StarExpr:
			x = y.X
		case *ast.IndexExpr:
			x = y.X
		case *ast.IndexListExpr:
			x = y.X
		case *ast.Ident:
			return y.Name + "."
		default:
			return ""
		}
	}
}
