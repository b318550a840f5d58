package layers

import (
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"testing"
)

// sizes compares sizes with a limit, or with those of a list that may only shrink.
type sizes struct {
	most  int
	unit  string // such as "fields"
	limit string // name of the constant
	list  string // name of the list
	of    map[string]map[string]int
	seen  map[string]map[string]bool
}

// check compares one size.
func (s *sizes) check(t *testing.T, at, pkg, name string, size int) {
	t.Helper()
	was, listed := s.of[pkg][name]
	if listed {
		if s.seen == nil {
			s.seen = map[string]map[string]bool{}
		}
		if s.seen[pkg] == nil {
			s.seen[pkg] = map[string]bool{}
		}
		s.seen[pkg][name] = true
	}
	switch {
	case listed && size <= s.most:
		t.Errorf("%s: %s has %d %s, within %s: take its row out of %s", at, name, size, s.unit, s.limit, s.list)
	case listed && size < was:
		t.Errorf("%s: %s has %d %s now: lower the row in %s, which says %d", at, name, size, s.unit, s.list, was)
	case listed && size > was:
		t.Errorf("%s: %s has %d %s, and its row in %s says %d, which may only shrink: divide it, or raise the row in the commit that says why", at, name, size, s.unit, s.list, was)
	case !listed && size > s.most:
		t.Errorf("%s: %s has %d %s, and at most %d are allowed: divide it; %s may be raised in the commit that says why", at, name, size, s.unit, s.most, s.limit)
	}
}

// rest names the rows of things that are gone.
func (s *sizes) rest(t *testing.T) {
	t.Helper()
	for _, pkg := range slices.Sorted(maps.Keys(s.of)) {
		for _, name := range slices.Sorted(maps.Keys(s.of[pkg])) {
			if !s.seen[pkg][name] {
				t.Errorf("%s has a row for %s of %s, and there is none: take the row away, or move it with its package", s.list, name, pkg)
			}
		}
	}
}

// TestStructs ensures that structs have few fields. Tests are free.
func TestStructs(t *testing.T) {
	s := sizes{most: mostFields, unit: "fields", limit: "mostFields", list: "largeStructs", of: largeStructs}
	for _, f := range parse(t) {
		if f.isTest() {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			if n, ok := n.(*ast.TypeSpec); ok {
				if of, ok := n.Type.(*ast.StructType); ok {
					s.check(t, f.line(n.Pos()), f.pkg, n.Name.Name, fields(of))
				}
			}
			return true
		})
	}
	s.rest(t)
}

// fields counts the fields of a struct. An embedded one is one.
func fields(of *ast.StructType) (n int) {
	for _, f := range of.Fields.List {
		n += max(1, len(f.Names))
	}
	return n
}

// TestNames ensures that packages export few names. Methods do not count.
func TestNames(t *testing.T) {
	names := map[string]int{}
	for _, f := range parse(t) {
		if !f.isTest() && f.tree.Name.Name != "main" {
			names[f.pkg] += exported(f.tree)
		}
	}
	s := sizes{most: mostNames, unit: "exported names", limit: "mostNames", list: "largePackages", of: map[string]map[string]int{}}
	for pkg, n := range largePackages {
		s.of[pkg] = map[string]int{pkg: n}
	}
	for _, pkg := range slices.Sorted(maps.Keys(names)) {
		s.check(t, pkg, pkg, pkg, names[pkg])
	}
	s.rest(t)
}

// exported counts the exported names of a file.
func exported(f *ast.File) (n int) {
	count := func(id *ast.Ident) {
		if id.IsExported() {
			n++
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
					for _, id := range spec.Names {
						count(id)
					}
				}
			}
		}
	}
	return n
}

// TestFunctions ensures that functions fit a screen or two, and that files are not long. Tests
// may be longer than other functions.
func TestFunctions(t *testing.T) {
	s := sizes{most: mostLines, unit: "lines", limit: "mostLines", list: "longFunctions", of: longFunctions}
	for _, f := range parse(t) {
		line := func(p token.Pos) int { return f.set.Position(p).Line }
		if n := line(f.tree.FileEnd); n > mostFile {
			t.Errorf("%s has %d lines, and at most %d are allowed: divide it by subject; mostFile may be raised in the commit that says why", f.path, n, mostFile)
		}
		if f.isTest() {
			continue
		}
		for _, d := range f.tree.Decls {
			if d, ok := d.(*ast.FuncDecl); ok {
				s.check(t, f.line(d.Pos()), f.pkg, receiver(d)+d.Name.Name, line(d.End())-line(d.Pos())+1)
			}
		}
	}
	s.rest(t)
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
