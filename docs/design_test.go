package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
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
