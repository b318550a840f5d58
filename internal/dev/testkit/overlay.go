package testkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// chosenEnv has the name of the mutant that a binary with several of them is to be.
const chosenEnv = "BLOBTAIL_MUTANT"

// overlay is the changed source files of a build, for `go build -overlay`.
type overlay struct {
	root  string
	files map[string]*mutated // by path from the root
}

// mutated is a source file and its changed text.
type mutated struct {
	text  []byte // the source with the changes
	later []byte // functions of mutants, to be added at the end of the text

	source    []byte // the file as it is in the repository
	functions []*ast.FuncDecl
	pkg       string
}

func newOverlay(root string) *overlay {
	return &overlay{root: root, files: make(map[string]*mutated)}
}

func (o *overlay) file(path string) (*mutated, error) {
	if f := o.files[path]; f != nil {
		return f, nil
	}
	source, err := os.ReadFile(filepath.Join(o.root, filepath.FromSlash(path)))
	if err != nil {
		return nil, err
	}
	// In a new set a position is an offset in the source, plus 1.
	tree, err := parser.ParseFile(token.NewFileSet(), path, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f := &mutated{text: slices.Clone(source), source: source, pkg: tree.Name.Name}
	for _, d := range tree.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			f.functions = append(f.functions, fn)
		}
	}
	o.files[path] = f
	return f, nil
}

// apply makes the edits, which may be anywhere in a file.
func (o *overlay) apply(edits []Edit) error {
	for _, e := range edits {
		f, err := o.file(e[0])
		if err != nil {
			return err
		}
		if f.text, err = replaceOne(f.text, e); err != nil {
			return err
		}
	}
	return nil
}

// choose adds a mutant next to the code as it is: a second form of each function that
// its edits change, which the first one calls when the mutant is chosen. It adds nothing
// and returns false if an edit is not within the body of a function.
func (o *overlay) choose(m Mutant) (bool, error) {
	type target struct {
		in *mutated
		fn *ast.FuncDecl
	}
	forms := make(map[target][]byte)
	var changed []target
	for _, e := range m.Edits {
		f, err := o.file(e[0])
		if err != nil {
			return false, err
		}
		if _, err := replaceOne(f.source, e); err != nil {
			return false, err
		}
		fn := f.around(bytes.Index(f.source, []byte(e[1])), len(e[1]))
		if fn == nil {
			return false, nil
		}
		at := target{f, fn}
		if forms[at] == nil {
			forms[at] = f.source[fn.Body.Pos()-1 : fn.Body.End()-1]
			changed = append(changed, at)
		}
		if forms[at], err = replaceOne(forms[at], e); err != nil {
			return false, err
		}
	}
	for _, at := range changed {
		at.in.add(at.fn, m.Name, forms[at])
	}
	return true, nil
}

// around returns the function with all n bytes of the source at offset i in its body, if it can
// call another form of itself.
func (f *mutated) around(i, n int) *ast.FuncDecl {
	for _, fn := range f.functions {
		if begin, end := int(fn.Body.Pos()), int(fn.Body.End())-2; i < begin || i+n > end {
			continue
		}
		fields := fn.Type.Params.List
		if fn.Recv != nil {
			fields = append(slices.Clone(fn.Recv.List), fields...)
		}
		for _, p := range fields {
			if len(p.Names) == 0 || slices.ContainsFunc(p.Names, func(n *ast.Ident) bool { return n.Name == "_" }) {
				return nil
			}
		}
		return fn
	}
	return nil
}

// add adds a mutant's form of a function, and a call of it at the head of the function.
func (f *mutated) add(fn *ast.FuncDecl, mutant string, body []byte) {
	name := fmt.Sprintf("%sMutant%d", fn.Name.Name, len(f.later))
	before, after := f.source[fn.Pos()-1:fn.Name.Pos()-1], f.source[fn.Name.End()-1:fn.Body.Pos()-1]
	f.later = fmt.Appendf(f.later, "\n%s%s%s%s\n", before, name, after, body)

	call := name
	if fn.Recv != nil {
		call = fn.Recv.List[0].Names[0].Name + "." + name
	}
	var args []string
	for _, p := range fn.Type.Params.List {
		for _, n := range p.Names {
			args = append(args, n.Name)
		}
		if _, variadic := p.Type.(*ast.Ellipsis); variadic {
			args[len(args)-1] += "..."
		}
	}
	call += "(" + strings.Join(args, ", ") + ")"
	if fn.Type.Results == nil {
		call += "\n\t\treturn"
	} else {
		call = "return " + call
	}
	// The text differs from the source only by such calls, so it has this head once.
	old := f.source[fn.Pos()-1 : fn.Body.Pos()]
	f.text = bytes.Replace(f.text, old, fmt.Appendf(slices.Clone(old), "\n\tif chosenMutant == %q {\n\t\t%s\n\t}", mutant, call), 1)
}

// write writes the changed files to a directory, and returns the path of the list for
// `go build -overlay`.
func (o *overlay) write(dir string) (string, error) {
	var list struct{ Replace map[string]string }
	list.Replace = make(map[string]string)
	put := func(path string, text []byte) error {
		to := filepath.Join(dir, fmt.Sprint(len(list.Replace), ".go"))
		list.Replace[filepath.Join(o.root, filepath.FromSlash(path))] = to
		return os.WriteFile(to, text, 0o600)
	}
	for path, f := range o.files {
		if err := put(path, append(f.text, f.later...)); err != nil {
			return "", err
		}
		if f.later == nil {
			continue
		}
		name := "chosen_mutant.go"
		if strings.HasSuffix(path, "_test.go") {
			name = "chosen_mutant_test.go"
		}
		path = filepath.Dir(path) + "/" + name
		if _, ok := list.Replace[filepath.Join(o.root, path)]; ok {
			continue
		}
		text := fmt.Sprintf("package %s\n\nimport \"os\"\n\nvar chosenMutant = os.Getenv(%q)\n", f.pkg, chosenEnv)
		if err := put(path, []byte(text)); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(list)
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, text, 0o600)
}

func replaceOne(text []byte, e Edit) ([]byte, error) {
	if n := bytes.Count(text, []byte(e[1])); n != 1 {
		return nil, fmt.Errorf("%s has the text %d times that the mutant replaces:\n%s", e[0], n, e[1])
	}
	return bytes.Replace(text, []byte(e[1]), []byte(e[2]), 1), nil
}
