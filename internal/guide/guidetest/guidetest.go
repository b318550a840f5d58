// Package guidetest holds the guide of a command against kong's model of it. Each command has a test
// that calls [Check], and so no verb and no flag is without a decision about it.
package guidetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"blobtail/internal/guide"
)

// Check holds a guide against a model. all are the verbs that use each flag of the whole command.
func Check(t *testing.T, app *kong.Application, g *guide.Guide, all ...string) {
	t.Helper()
	decisions(t, app, g, all)
	manual(t, app, g)
	completion(t, app, g)
	flagsUsed(t)
}

// decisions wants one for each verb, and no flag and no verb that there is not.
func decisions(t *testing.T, app *kong.Application, g *guide.Guide, all []string) {
	t.Helper()
	for _, verb := range app.Children {
		_, limited := g.Uses[verb.Name]
		if !verb.Hidden && limited == slices.Contains(all, verb.Name) {
			t.Errorf("%s: are all flags of the whole command of use to it? Say so in the test, or name those that are in Guide.Uses", verb.Name)
		}
	}
	for name, used := range g.Uses {
		verb := guide.Verb(app.Node, name)
		if verb == nil {
			t.Errorf("Guide.Uses has %s, which is no verb", name)
			continue
		}
		for _, flag := range used {
			if !slices.ContainsFunc(g.Flags(verb), func(f *kong.Flag) bool { return f.Name == flag }) {
				t.Errorf("Guide.Uses[%s] has %s, which is no flag of the whole command", name, flag)
			}
		}
	}
}

// manual wants each verb and each flag on the page, and no line that troff would misread. mandoc
// reads it too, if it is there.
func manual(t *testing.T, app *kong.Application, g *guide.Guide) {
	t.Helper()
	page := string(g.Manual(app))
	plain := strings.NewReplacer(`\-`, "-", `\(aq`, "'", `\e`, `\`).Replace(page)
	for name := range guide.FlagsOf(app) {
		if f := guide.FlagsOf(app)[name]; !f.Hidden && !strings.Contains(strings.ReplaceAll(plain, "--[no-]", "--"), "--"+f.Name) {
			t.Errorf("the manual lacks --%s", f.Name)
		}
	}
	for _, verb := range app.Children {
		if strings.Contains(plain, "\n.SS "+verb.Name+"\n") == verb.Hidden {
			t.Errorf("the manual: %s is hidden: %v", verb.Name, verb.Hidden)
		}
	}
	macros := []string{".TH", ".SH", ".SS", ".TP", ".B", ".BR", ".PP", ".nf", ".fi"}
	for line := range strings.Lines(page) {
		if first, _, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasPrefix(line, ".") && !slices.Contains(macros, first) || strings.HasPrefix(line, "'") {
			t.Errorf("troff misreads: %s", line)
		}
	}
	tool(t, "mandoc", page, "-T", "lint", "-W", "error")
}

// completion wants scripts that their shells can read, if these are there, and each verb and flag
// among the candidates.
func completion(t *testing.T, app *kong.Application, g *guide.Guide) {
	t.Helper()
	for _, shell := range guide.Shells() {
		tool(t, shell, guide.Script(shell, app.Name), "-n")
	}
	c := guide.Completion{Guide: g, App: app}
	for _, verb := range app.Children {
		if !verb.Hidden && !slices.Contains(c.Of([]string{verb.Name[:1]}), verb.Name) {
			t.Errorf("%s is not completed", verb.Name)
		}
		for _, f := range verb.Flags {
			if !f.Hidden && !slices.ContainsFunc(c.Of([]string{verb.Name, "--"}), func(word string) bool { return strings.TrimSuffix(word, "=") == "--"+f.Name }) {
				t.Errorf("%s --%s is not completed", verb.Name, f.Name)
			}
		}
	}
}

// tool gives a text to a program that checks it. A program that is missing checks nothing, not in CI
// either: .ci/run need not install each shell.
func tool(t *testing.T, program, text string, args ...string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		return
	}
	cmd := exec.Command(program, args...)
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", program, err, out)
	}
}

// flagsUsed wants each field with a help text of the package under test to be read by its code: a
// flag of a verb that nobody reads does nothing.
func flagsUsed(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no sources: %v", err)
	}
	read, flags := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				read[n.Sel.Name] = true
			case *ast.Field:
				verb, named := n.Type.(*ast.Ident)
				isVerb := named && strings.HasSuffix(verb.Name, "Cmd") || n.Tag != nil && strings.Contains(n.Tag.Value, `cmd:""`)
				if n.Tag != nil && strings.Contains(n.Tag.Value, `help:"`) && !isVerb && len(n.Names) == 1 {
					flags[n.Names[0].Name] = true
				}
			}
			return true
		})
	}
	for name := range flags {
		if !read[name] && name != "Version" {
			t.Errorf("nothing reads the flag %s", name)
		}
	}
}
