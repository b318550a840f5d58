package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestWhereToLook ensures that each file and each function, type, constant and variable that
// docs/CODE.md names exists, and that a row names as many places as its question says.
func TestWhereToLook(t *testing.T) {
	table, _, ok := strings.Cut(read(t, codePage), "\n## Packages\n")
	if !ok {
		t.Fatal(codePage + ` has no section "Packages"`)
	}
	place := regexp.MustCompile("`([^`: ]+\\.go): ([^` ]+)`")
	many := regexp.MustCompile(`([0-9]+) places \|`)
	known := map[string]map[string]bool{}
	questions, group := 0, false
	for row := range strings.Lines(table) {
		if group = group || strings.HasPrefix(row, "| question "); !group || !strings.HasPrefix(row, "| ") || strings.HasPrefix(row, "| question ") {
			continue
		}
		questions++
		places := place.FindAllStringSubmatch(row, -1)
		if len(places) == 0 && !namedFile.MatchString(row) {
			t.Errorf("no file in %s", row)
		}
		if m := many.FindStringSubmatch(row); m != nil {
			if n, err := strconv.Atoi(m[1]); err != nil || len(namedFile.FindAllString(row, -1)) < n {
				t.Errorf("fewer than %d places in %s", n, row)
			}
		}
		for _, p := range places {
			file, name := p[1], p[2]
			if known[file] == nil {
				known[file] = declared(t, file)
			}
			if !known[file][name] {
				t.Errorf("%s does not declare %s", file, name)
			}
		}
	}
	if questions < 80 {
		t.Errorf("found %d questions", questions)
	}
}

// codePage says where things are in the code.
const codePage = "docs/CODE.md"

// namedFile is a file or a folder of the repository in a page.
var namedFile = regexp.MustCompile("`([a-zA-Z0-9_.]+(?:/[a-zA-Z0-9_.-]+)+)(?:: [^`]*)?`")

// TestNamedFiles ensures that the files and folders that the pages for engineers name exist.
func TestNamedFiles(t *testing.T) {
	// Blobs, packages of Go, and files below the folder of the text.
	other := regexp.MustCompile(`^(queue|web|service|net|testdata)/`)
	for page, least := range map[string]int{codePage: 150, "DESIGN.md": 8, "docs/DECISIONS.md": 7, "CONTRIBUTING.md": 20} {
		named := namedFile.FindAllStringSubmatch(read(t, page), -1)
		if len(named) < least {
			t.Errorf("%s names %d files", page, len(named))
		}
		for _, m := range named {
			if other.MatchString(m[1]) {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("%s names %s: %v", page, m[1], err)
			}
		}
	}
}

// declared returns the functions, methods (Receiver.Name), types, constants and variables of a
// file.
func declared(t *testing.T, file string) map[string]bool {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Errorf("%s: %v", codePage, err)
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
