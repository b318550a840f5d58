package meaning_test

import (
	"bytes"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Tests and names are gathered once, and frozen: the tests of what is rebuilt change with it.
var gather = flag.Bool("gather", false,
	"write literals.txt, names.txt and phrases.txt in testdata anew, from the tests and the sources of readers")

// TestGather writes the files of frozen texts with -gather: literals.txt has the texts of unit
// tests and of scripts with cases (CASES names their folder), names.txt has the names and words
// that the readers know, and phrases.txt what they look for in texts. All have a quoted text a line.
func TestGather(t *testing.T) {
	if !*gather {
		t.Skip("only with -gather")
	}
	texts, names, phrases := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, dir := range []string{"record", "record/*", "source/*", "source/body/loggers", "internal/azurelogs/formats",
		"internal/azurelogs/logstest"} {
		for _, file := range glob(t, dir, "*.go") {
			into, literal := texts, isText
			if !strings.HasSuffix(file, "_test.go") {
				into, literal = names, isName
			}
			for _, s := range literals(t, file) {
				if literal(s) {
					into[s] = true
				}
				if isPhrase(file, s) {
					phrases[s] = true
				}
			}
		}
	}
	for _, file := range []string{"integration/mixed_test.go", "integration/syslog_test.go", "integration/interop/records_test.go"} {
		for _, s := range literals(t, filepath.Join(root, file)) {
			if isText(s) {
				texts[s] = true
			}
		}
	}
	scripts := slices.Concat(glob(t, "cmd/ingest/testdata/script", "*.txtar"), glob(t, "docs", "*/*.md"))
	if cases := os.Getenv("CASES"); cases != "" {
		for _, dir := range []string{"loggers", "meaning"} {
			found, err := filepath.Glob(filepath.Join(cases, dir, "*.sh"))
			if err != nil || len(found) == 0 {
				t.Fatalf("no scripts in %s: %v", cases, err)
			}
			scripts = append(scripts, found...)
		}
	}
	for _, file := range scripts {
		for _, s := range scripted(t, file) {
			texts[s] = true
		}
	}
	write(t, "literals.txt", texts)
	write(t, "names.txt", names)
	write(t, "phrases.txt", phrases)
}

func glob(t *testing.T, dir, name string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(*from, dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// isText reports whether a text of a test may be an input.
func isText(s string) bool {
	return len(s) >= 8 && len(s) <= 16<<10 && strings.ContainsAny(s, " {=:<-\n\x00")
}

var name = regexp.MustCompile(`^[A-Za-z@_][A-Za-z0-9@_.:-]{0,30}$`)

func isName(s string) bool { return name.MatchString(s) }

// isPhrase reports whether a text in a reader of texts may be one that it looks for there.
func isPhrase(file, s string) bool {
	dir := filepath.ToSlash(filepath.Dir(file))
	body := strings.HasSuffix(dir, "/source/body") || strings.HasSuffix(dir, "/record/text") || strings.HasSuffix(dir, "/record/trace")
	of := body || strings.HasSuffix(dir, "/record") || strings.HasSuffix(dir, "/source/syslog") || strings.HasSuffix(dir, "/record/times")
	return of && !strings.HasSuffix(file, "_test.go") && len(s) > 1 && len(s) <= 80 && (body || !isName(s))
}

// literals are the texts of a file of Go, those of a sum as one.
func literals(t *testing.T, file string) (all []string) {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.CallExpr: // the texts of failures are no inputs
			f, ok := n.Fun.(*ast.SelectorExpr)
			return !ok || !slices.Contains([]string{"Errorf", "Fatalf", "Logf", "Skip", "Error", "Fatal"}, f.Sel.Name)
		case ast.Expr:
			if s, ok := sum(n); ok {
				all = append(all, s)
				return false
			}
		}
		return true
	})
	return all
}

func sum(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			s, err := strconv.Unquote(e.Value)
			return s, err == nil
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			a, ok := sum(e.X)
			b, also := sum(e.Y)
			return a + b, ok && also
		}
	}
	return "", false
}

var quoted = regexp.MustCompile(`'([^']{8,})'|"([^"]{12,})"`)

// scripted are the lines of a script or a page, and the texts that it quotes.
func scripted(t *testing.T, file string) (all []string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	page := strings.HasSuffix(file, ".md")
	for line := range bytes.Lines(data) {
		s := strings.TrimRight(string(line), "\r\n")
		if isText(s) && (!page || likely.MatchString(s)) && len(s) < 600 {
			all = append(all, s)
		}
		for _, m := range quoted.FindAllStringSubmatch(s, -1) {
			if s := m[1] + m[2]; isText(s) && !page {
				all = append(all, s)
			}
		}
	}
	return all
}

// likely tells a line of a log in a page.
var likely = regexp.MustCompile(`^\s*[{<\[]|\d\d:\d\d:\d\d|(?i)\b(error|warn|info|level)[]:= ]`)

func write(t *testing.T, name string, texts map[string]bool) {
	t.Helper()
	var b bytes.Buffer
	for _, s := range slices.Sorted(maps.Keys(texts)) {
		b.WriteString(strconv.Quote(s) + "\n")
	}
	if err := os.WriteFile(filepath.Join("testdata", name), b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
