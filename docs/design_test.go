package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestWhereToLook ensures that each file and each function or type that the table
// "Where to look" of DESIGN.md names exists.
func TestWhereToLook(t *testing.T) {
	_, table, ok := strings.Cut(read(t, "DESIGN.md"), "\n## Where to look\n")
	table, _, end := strings.Cut(table, "\n## ")
	if !ok || !end {
		t.Fatal(`DESIGN.md has no section "Where to look"`)
	}
	place := regexp.MustCompile("`([^`: ]+\\.go): ([^` ]+)`")
	known := map[string]map[string]bool{}
	questions := 0
	for row := range strings.Lines(table) {
		if !strings.HasPrefix(row, "| ") || strings.HasPrefix(row, "| question ") {
			continue
		}
		questions++
		places := place.FindAllStringSubmatch(row, -1)
		if len(places) == 0 {
			t.Errorf("no file and function in %s", row)
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
	if questions < 20 {
		t.Errorf("found %d questions", questions)
	}
}

// TestPackages ensures that the table of packages in DESIGN.md names every package
// of the product, and no other.
func TestPackages(t *testing.T) {
	_, table, _ := strings.Cut(read(t, "DESIGN.md"), "\n| level | package | job |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	named := map[string]bool{}
	for row := range strings.Lines(table) {
		cells := strings.SplitN(row, "|", 4)
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[2], -1) {
			named[m[1]] = true
		}
	}
	found := map[string]bool{}
	// For tests and development, or inner packages of one folder.
	other := regexp.MustCompile(`^(bench|integration|storage/storagetest|source/sourcetest|source/body/loggers|reading/readingtest|storage/internal/.*|internal/fsys/simdisk|` +
		`internal/(azurelogs/logstest|bench|check|demo|layers|loggen|loggers|termshot|testenv|testkit))(/|$)`)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == "node_modules" || name == ".git" || name == "testdata") {
			return filepath.SkipDir
		} else if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != root {
			return filepath.SkipDir // another module
		}
		rel, err := filepath.Rel(root, path)
		pkg := filepath.ToSlash(filepath.Dir(rel))
		if strings.HasSuffix(rel, ".go") && !strings.HasSuffix(rel, "_test.go") && !other.MatchString(pkg) {
			found[pkg] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range found {
		if !named[name] {
			t.Errorf("DESIGN.md does not name the package %s", name)
		}
	}
	for name := range named {
		if !found[name] {
			t.Errorf("DESIGN.md names the package %s, and there is none", name)
		}
	}
}

// declared returns the functions, methods (Receiver.Name) and types of a file.
func declared(t *testing.T, file string) map[string]bool {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Errorf("DESIGN.md: %v", err)
		return map[string]bool{}
	}
	names := map[string]bool{}
	for _, d := range parsed.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names[receiver(d)+d.Name.Name] = true
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if s, ok := s.(*ast.TypeSpec); ok {
					names[s.Name.Name] = true
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
