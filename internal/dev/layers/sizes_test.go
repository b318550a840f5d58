package layers

import (
	"flag"
	"fmt"
	"go/ast"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// shrink lowers the rows of sizes.txt to what the source has, and takes away those of things that
// are gone or small. It raises none.
var shrink = flag.Bool("shrink", false, "write what became smaller into sizes.txt")

// size is what something of the source has of a kind: a struct of fields, a function of lines.
type size struct {
	kind, name string // the name of a file, folder or package, with a dot and a name of it
	n          int
}

// sizes has the sizes of the source by kind and name. Functions and files of systems may have one
// name: the largest counts.
type sizes map[[2]string]int

func (s sizes) add(kind, name string, n int) {
	s[[2]string{kind, name}] = max(s[[2]string{kind, name}], n)
}

// TestSizes compares the source with the limits, and what is over a limit with its row in sizes.txt.
func TestSizes(t *testing.T) {
	s := sizes{}
	for _, f := range parse(t) {
		s.add("file", f.path, f.set.Position(f.tree.FileEnd).Line)
		if !f.isTest() {
			s.ofGo(f)
		}
	}
	s.ofPage(t)
	s.ofColumns(t)
	rows, comments := readRows(t)
	for _, k := range slices.SortedFunc(maps.Keys(s), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		kind, name, n := k[0], k[1], s[k]
		was, listed := rows[k]
		switch {
		case n > was && n > mostOf[kind]:
			t.Errorf("%s has %s, and at most %d are allowed: divide it, or raise its row in sizes.txt, with the reason in docs/dev/decisions.md",
				name, units(kind, n), max(was, mostOf[kind]))
		case listed && n < was && !*shrink:
			t.Errorf("%s has %s now, and sizes.txt says %d: go test ./internal/dev/layers -shrink", name, units(kind, n), was)
		case listed:
			if rows[k] = n; n <= mostOf[kind] {
				delete(rows, k)
			}
		}
	}
	for k := range rows {
		if _, ok := s[k]; !ok {
			if delete(rows, k); !*shrink {
				t.Errorf("sizes.txt has a row for the %s of %s, and there is none: go test ./internal/dev/layers -shrink", k[0], k[1])
			}
		}
	}
	if *shrink {
		writeRows(t, rows, comments)
	}
}

// units says a size in words.
func units(kind string, n int) string {
	return strconv.Itoa(n) + " " + map[string]string{
		"columns": "lines of over 140 columns", "fields": "fields", "file": "lines", "lines": "lines",
		"methods": "methods", "names": "exported names", "parameters": "parameters",
	}[kind]
}

// ofGo adds the sizes of a Go file.
func (s sizes) ofGo(f file) {
	if f.tree.Name.Name != "main" {
		s[[2]string{"names", f.pkg}] += exported(f.tree)
	}
	for _, d := range f.tree.Decls {
		d, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		of := receiver(d)
		s.add("lines", f.pkg+"."+of+d.Name.Name, f.set.Position(d.End()).Line-f.set.Position(d.Pos()).Line+1)
		s.add("parameters", f.pkg+"."+of+d.Name.Name, fields(d.Type.Params))
		if of != "" {
			s[[2]string{"methods", f.pkg + "." + strings.TrimSuffix(of, ".")}]++
		}
	}
	ast.Inspect(f.tree, func(n ast.Node) bool {
		if n, ok := n.(*ast.TypeSpec); ok {
			if of, ok := n.Type.(*ast.StructType); ok {
				s.add("fields", f.pkg+"."+n.Name.Name, fields(of.Fields))
			}
		}
		return true
	})
}

// fields counts the fields of a struct, or the parameters of a function. An embedded one is one.
func fields(of *ast.FieldList) (n int) {
	for _, f := range of.List {
		n += max(1, len(f.Names))
	}
	return n
}

// receiver returns the type of a method's receiver with a dot behind it.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	name := ""
	ast.Inspect(f.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name + "."
		}
		return true
	})
	return name
}

// exported counts the exported names of a file, without methods.
func exported(f *ast.File) (n int) {
	count := func(ids ...*ast.Ident) {
		for _, id := range ids {
			if id.IsExported() {
				n++
			}
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				count(d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					count(spec.Name)
				case *ast.ValueSpec:
					count(spec.Names...)
				}
			}
		}
	}
	return n
}

// pageFunction matches the first line of a function of a module, as prettier lays it out. Its last
// line is the next one that begins with a brace.
var pageFunction = regexp.MustCompile(`^(?:export )?(?:default )?(?:async )?(?:function\*? (\w+)|const (\w+) = .*=> \{$|const (\w+) = (?:async )?\($)`)

// ofPage adds the sizes of what browsers and Node run.
func (s sizes) ofPage(t *testing.T) {
	for _, name := range sources(t, ".js", ".mjs", ".css", ".ts") {
		lines := linesOf(t, name)
		s.add("file", name, len(lines))
		for i, line := range lines {
			m := pageFunction.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			if n := slices.IndexFunc(lines[i:], func(l string) bool { return strings.HasPrefix(l, "}") }); n > 0 {
				s.add("lines", name+"."+m[1]+m[2]+m[3], n+1)
			}
		}
	}
}

// ofColumns adds the long lines of each folder. A tab has four columns.
func (s sizes) ofColumns(t *testing.T) {
	for _, name := range sources(t, ".go", ".js", ".mjs", ".css", ".ts") {
		for _, line := range linesOf(t, name) {
			if len([]rune(line))+3*strings.Count(line, "\t") > mostColumns {
				s[[2]string{"columns", path.Dir(name)}]++
			}
		}
	}
}

// sources returns the files of ours with some extensions, by their paths from the root.
func sources(t *testing.T, extensions ...string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		switch base := d.Name(); {
		case d.IsDir() && name != root && (base == "node_modules" || strings.HasPrefix(base, ".") || slices.Contains(unlimited, rel)):
			return filepath.SkipDir
		case !d.IsDir() && slices.Contains(extensions, path.Ext(base)) && !slices.Contains(unlimited, rel):
			out = append(out, rel)
		}
		return nil
	})
	if err != nil || len(out) < 50 {
		t.Fatalf("found %d files with %v: this is not the whole repository: %v", len(out), extensions, err)
	}
	return out
}

func linesOf(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// readRows returns the rows of sizes.txt, and the reasons that some have.
func readRows(t *testing.T) (rows sizes, comments map[[2]string]string) {
	t.Helper()
	rows, comments = sizes{}, map[[2]string]string{}
	for _, line := range linesOf(t, here+"/sizes.txt") {
		row, reason, _ := strings.Cut(line, "#")
		if strings.TrimSpace(row) == "" {
			continue
		}
		var r size
		if _, err := fmt.Sscan(row, &r.kind, &r.name, &r.n); err != nil {
			t.Fatalf("sizes.txt: %q: want a kind, a name and a number: %v", line, err)
		}
		if _, ok := mostOf[r.kind]; !ok {
			t.Fatalf("sizes.txt: %q: no such kind", line)
		}
		rows[[2]string{r.kind, r.name}], comments[[2]string{r.kind, r.name}] = r.n, strings.TrimSpace(reason)
	}
	return rows, comments
}

// writeRows writes sizes.txt.
func writeRows(t *testing.T, rows sizes, comments map[[2]string]string) {
	t.Helper()
	var out strings.Builder
	out.WriteString("# What is larger than limits_test.go allows, with its present size. Rows only shrink:\n" +
		"# go test ./internal/dev/layers -shrink\n")
	for _, k := range slices.SortedFunc(maps.Keys(rows), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		fmt.Fprintf(&out, "%s %s %d", k[0], k[1], rows[k])
		if comments[k] != "" {
			fmt.Fprintf(&out, " # %s", comments[k])
		}
		out.WriteString("\n")
	}
	if err := os.WriteFile("sizes.txt", []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
