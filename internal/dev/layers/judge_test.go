package layers

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// reads are the packages through which the result of a read passes.
var reads = []string{"reading/blobs", "reading/unflushed", "reading", "serve/api", "reading/form", "reading/remote", "serve/loki", "cmd/query", "internal/door"}

// rows are files that tell of rows of ingesters, which are no read of records.
var rows = []string{"serve/api/ingesters.go"}

// TestOneJudge ensures that reading/blobs/outcome.go alone decides whether a read is complete: no
// other file counts problems or sets Complete by anything but its answer, and above package
// unflushed none takes problems away. The page and the client of a server go by what the server says.
func TestOneJudge(t *testing.T) {
	judged := false
	for _, f := range parse(t) {
		if f.isTest() || !slices.Contains(reads, f.pkg) || slices.Contains(rows, f.path) {
			continue
		}
		makes := f.pkg == "reading/blobs" || f.pkg == "reading/unflushed"
		ast.Inspect(f.tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if !countsProblems(n.X) && !countsProblems(n.Y) || !isNumber(n.X) && !isNumber(n.Y) {
					return true
				}
				if f.path == "reading/blobs/outcome.go" {
					judged = true
				} else {
					t.Errorf("%s: ask Complete of the outcome, which may come to know more than the number of problems", f.line(n.Pos()))
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Complete" && !asksComplete(n.Value) {
					t.Errorf("%s: only the outcome of a read says that it is complete", f.line(n.Pos()))
				}
			case *ast.AssignStmt:
				for _, to := range n.Lhs {
					sel, ok := to.(*ast.SelectorExpr)
					if ok && (sel.Sel.Name == "Complete" || sel.Sel.Name == "Problems" && !makes) {
						t.Errorf("%s: add a problem by Lack; nothing else may change whether a read is complete", f.line(n.Pos()))
					}
				}
			}
			return true
		})
	}
	if !judged {
		t.Error("reading/blobs/outcome.go does not count problems any more: where is it decided whether a read is complete?")
	}
	t.Run("page", pageAsks)
}

// pageAsks ensures the same of the page: source.js alone sets `complete`, from the word of the server;
// nothing counts problems; and a file that shows problems asks whether the result is complete.
func pageAsks(t *testing.T) {
	const judge = "source.js"
	sets, counts := regexp.MustCompile(`\bcomplete\s*(?::|=[^=])`), regexp.MustCompile(`problems\??\.length`)
	files, err := filepath.Glob(filepath.Join(root, "serve/page/files/*.js"))
	if err != nil {
		t.Fatal(err)
	}
	judged := false
	for _, file := range files {
		name, text := filepath.Base(file), readFile(t, file)
		for _, said := range append(sets.FindAllString(text, -1), counts.FindAllString(text, -1)...) {
			if judged = judged || name == judge; name != judge || strings.Contains(said, "length") {
				t.Errorf("%s: %q: only the server says whether a result is complete; ask its outcome", file, said)
			}
		}
		if strings.Contains(text, ".problems") && !strings.Contains(text, ".complete") {
			t.Errorf("%s shows problems and does not ask for complete", file)
		}
	}
	if !judged {
		t.Errorf("%s does not set complete any more: where does the page have it from?", judge)
	}
}

// countsProblems reports whether an expression is the number of some problems.
func countsProblems(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return false
	}
	if fun, ok := call.Fun.(*ast.Ident); !ok || fun.Name != "len" {
		return false
	}
	of := call.Args[0]
	if method, ok := of.(*ast.CallExpr); ok {
		of = method.Fun
	}
	sel, ok := of.(*ast.SelectorExpr)
	return ok && strings.EqualFold(sel.Sel.Name, "problems")
}

func isNumber(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && lit.Kind == token.INT
}

// asksComplete reports whether an expression is the answer of a method Complete.
func asksComplete(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Complete"
}

// TestOneRefusal ensures that package door alone says when to ask again and which credentials
// are accepted: each protocol has these headers from its refusal. What plays another service in
// tests answers for itself.
func TestOneRefusal(t *testing.T) {
	said := map[string]bool{"WWW-Authenticate": false, "Retry-After": false}
	for _, f := range parse(t) {
		if f.isTest() || strings.HasPrefix(f.pkg, "internal/dev/") {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 2 {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			lit, isText := call.Args[0].(*ast.BasicLit)
			if !ok || !isText || sel.Sel.Name != "Set" && sel.Sel.Name != "Add" {
				return true
			}
			name := strings.Trim(lit.Value, `"`)
			if _, of := said[name]; !of {
				return true
			}
			if said[name] = true; f.path != "internal/door/refusal.go" {
				t.Errorf("%s: make a door.Refusal, which writes %s", f.line(n.Pos()), name)
			}
			return true
		})
	}
	for name, found := range said {
		if !found {
			t.Errorf("nothing writes %s", name)
		}
	}
}
