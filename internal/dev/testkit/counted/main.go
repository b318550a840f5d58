// Command counted prints a pattern for go test -run: the tests of some packages that have
// more cases without the race detector than with it. These call [testkit.Share], [testkit.Portion]
// or [testkit.FullOnly], or run a [testkit.Simulation], themselves or through functions of their
// package. `make test` runs them once more, in full.
//
//	go test -run "$(go run ./internal/dev/testkit/counted DIR...)" DIR...
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	var all []string
	for _, dir := range os.Args[1:] {
		tests, err := counted(dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, "counted:", err)
			os.Exit(1)
		}
		if len(tests) == 0 {
			fmt.Fprintf(os.Stderr, "counted: no test of %s has more cases without the race detector: leave it out\n", dir)
			os.Exit(1)
		}
		all = append(all, tests...)
	}
	slices.Sort(all)
	fmt.Printf("^(%s)$\n", strings.Join(slices.Compact(all), "|"))
}

// counted are the names of such tests in a directory. Functions and methods of one name
// count as one, so there may be a test too many.
func counted(dir string) (tests []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	uses := map[string]map[string]bool{} // by function: the names in its body
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				if uses[f.Name.Name] == nil {
					uses[f.Name.Name] = map[string]bool{}
				}
				ast.Inspect(f.Body, func(n ast.Node) bool {
					if id, ok := n.(*ast.Ident); ok {
						uses[f.Name.Name][id.Name] = true
					}
					return true
				})
			}
		}
	}
	marked := map[string]bool{"Share": true, "Portion": true, "FullOnly": true, "simulation": true}
	for grown := true; grown; {
		grown = false
		for f, names := range uses {
			for name := range names {
				if marked[name] && !marked[f] {
					marked[f], grown = true, true
				}
			}
		}
	}
	for f := range uses {
		if strings.HasPrefix(f, "Test") && f != "TestMain" && marked[f] {
			tests = append(tests, f)
		}
	}
	return tests, nil
}
