// Package layers holds the architecture's rules over the source: the permitted imports,
// constructs that no file may use, licenses that no module may have, and limits for sizes. It has
// tests only; `make lint` runs them, and so does `go test ./...`.
package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const (
	module = "blobtail"
	// here is this package, and root the way from it to the root of the repository.
	here = "internal/dev/layers"
	root = "../../.."
)

// allowed has a row for each package: the packages of the module that it may import.
// Imports go strictly downward. A row names only the packages it needs, so that review
// sees each new import as a decision. Test files are free.
var allowed = map[string][]string{
	// 0: words and contracts.
	"record/times":      {},
	"record/ack":        {},
	"record":            {"record/times", "record/ack"},
	"storage":           {},
	"storage/fsys":      {},
	"internal/when":     {"record/times"},
	"internal/progress": {},
	"internal/spelling": {},
	"internal/signpost": {"internal/spelling"},
	"internal/literals": {},
	"internal/units":    {},
	"internal/watch":    {},
	"internal/trust":    {"storage/fsys"},
	"buffer/wal":        {"storage/fsys"},
	"logql":             {},
	"internal/budget":   {"internal/units"},
	"internal/spill":    {"internal/budget", "storage/fsys"},
	"internal/printing": {},
	"storage/fanout":    {},
	"internal/regex":    {"internal/budget"},
	"logql/stage":       {"logql", "record", "internal/literals", "internal/budget", "internal/printing", "internal/regex"},

	// 1: stored forms and drivers.
	"blobfmt/filter":          {},
	"blobfmt/linezstd":        {},
	"blobfmt":                 {"record", "blobfmt/filter", "blobfmt/linezstd"},
	"record/origin":           {"record"},
	"record/forms":            {"record"},
	"record/names":            {"record"},
	"record/text":             {"record", "record/names", "record/times"},
	"record/trace":            {"record", "record/text", "record/times"},
	"record/meaning":          {"record", "record/names", "record/text", "record/times", "record/trace"},
	"internal/where":          {"blobfmt/filter", "record", "internal/budget", "internal/grep", "internal/regex", "internal/spelling"},
	"internal/globset":        {"record"},
	"storage/lru":             {},
	"buffer/runlog":           {"record", "record/origin", "storage", "buffer/wal"},
	"storage/internal/bounds": {"storage"},
	"logql/metric":            {"logql", "logql/stage", "internal/budget"},
	"storage/mem":             {"storage", "storage/internal/bounds"},
	"storage/dir":             {"storage/lru", "storage", "storage/internal/bounds", "storage/fsys"},
	"storage/dir/tables":      {"storage", "storage/internal/bounds", "storage/fsys"},
	"storage/traffic":         {},
	"storage/azure":           {"storage/fanout", "storage", "storage/internal/bounds", "storage/traffic"},

	"internal/azurelogs/formats": {"record/meaning", "record", "record/times"},

	"internal/access": {"record", "record/ack", "storage/fsys", "internal/units", "internal/watch", "internal/yamltext"},
	"internal/certs":  {"internal/trust", "internal/watch", "storage/fsys"},

	"internal/loopback":   {},
	"internal/count":      {},
	"internal/count/proc": {"internal/count"},
	"internal/door":       {"internal/access", "internal/budget", "internal/count", "internal/loopback", "internal/signpost"},

	// 2: the flow. The buffer does not know blobs, the writer does not know the log.
	"internal/sendfiles":           {"record", "storage/fsys", "internal/progress", "internal/trust"},
	"buffer":                       {"record", "storage", "buffer/wal", "buffer/runlog", "internal/count", "storage/fsys"},
	"blobwriter":                   {"record", "blobfmt", "storage", "internal/count"},
	"internal/storeid":             {"storage", "storage/fsys"},
	"internal/storeid/premises":    {"internal/storeid", "storage", "storage/fsys", "internal/units"},
	"internal/lease":               {"record/ack", "storage/fanout", "storage", "storage/fsys"},
	"buffer/ship":                  {"record", "record/ack", "storage", "buffer/wal", "buffer/runlog", "internal/lease"},
	"internal/clockskew":           {"storage"},
	"internal/trial":               {"storage"},
	"reading/unflushed/live":       {"storage/fanout", "record", "internal/lease", "internal/door", "internal/loopback", "internal/trust"},
	"reading/unflushed/live/peers": {"internal/lease", "reading/unflushed/live", "storage"},
	"tailindex":                    {"storage/fanout", "record", "storage"},
	"internal/migrations":          {"storage", "internal/lease", "tailindex"},
	"reading/blobs/indexcache":     {"blobfmt", "storage/lru"},
	"storage/together":             {"storage", "storage/fanout"},
	"catalog/hold":                 {"catalog/horizon", "record", "storage"},
	"catalog/horizon":              {"storage/fanout", "record", "blobfmt", "storage"},
	"catalog/closed":               {"record", "blobfmt", "catalog/horizon"},
	"catalog/erasure":              {"blobfmt", "storage", "catalog/horizon", "catalog"},
	"catalog":                      {"storage/fanout", "storage/lru", "record", "blobfmt", "storage", "catalog/closed", "catalog/horizon"},

	"internal/azurelogs": {"storage/fanout", "record", "storage", "internal/azurelogs/formats"},

	// 3: the ends. Sources do not know the buffer.
	"source/body": {
		"record/names", "record/meaning", "record", "record/text", "record/times", "record/trace", "record/origin", "source/tokens",
	},
	"source/httpsource": {
		"record/names", "record/meaning", "record", "record/ack", "record/origin", "source/body", "internal/count", "internal/door",
		"internal/spelling", "internal/signpost", "source/tokens",
	},
	"source/natssource": {
		"record/meaning", "record", "record/origin", "source/body", "internal/count", "storage/fanout", "storage/fsys",
	},
	"source/loki":     {"record/names", "record/meaning", "record", "record/times", "source/body", "source/httpsource", "source/tokens"},
	"source/elastic":  {"record/meaning", "record", "source/body", "source/httpsource"},
	"source/journald": {"record/meaning", "record", "source/body", "source/httpsource"},
	"source/splunk":   {"record/names", "record/meaning", "record", "source/body", "source/httpsource"},
	"source/datadog":  {"record/names", "record/meaning", "record", "record/times", "source/body", "source/httpsource"},
	"source/gelf":     {"record/names", "record/meaning", "record", "source/body", "source/httpsource"},
	"source/otlp":     {"record/names", "record/meaning", "record", "source/body", "source/httpsource", "source/tokens"},
	"source/tokens":   {},
	"source/carry":    {"record/names", "record/meaning", "record"},
	"source/shippers": {"source/httpsource", "source/loki", "source/otlp", "source/elastic", "source/journald", "source/splunk", "source/datadog", "source/gelf"},
	"source/dryrun": {
		"record/meaning", "record", "source/body", "source/carry", "source/httpsource", "source/natssource", "source/shippers",
		"source/syslog",
	},
	"source/syslog": {
		"record/names", "record/meaning", "record", "record/text", "record/times", "source/body", "internal/count", "internal/signpost",
	},
	"internal/grep":              {"record", "blobfmt/filter", "internal/literals", "internal/budget", "internal/regex"},
	"internal/tally":             {"record", "internal/globset", "internal/where", "internal/count"},
	"internal/rules":             {"record/forms", "record", "internal/globset", "internal/where", "internal/count"},
	"reading/blobs":              {"catalog/erasure", "storage/fanout", "internal/grep", "internal/where", "internal/units", "record", "blobfmt/filter", "blobfmt", "storage", "storage/mem", "catalog/closed", "catalog/horizon", "catalog", "internal/progress", "internal/spelling", "internal/budget", "internal/spill", "storage/lru"},
	"internal/azurelogs/asblobs": {"storage/fanout", "internal/spill", "record", "blobfmt", "storage", "catalog", "internal/azurelogs", "internal/azurelogs/formats", "internal/units"},
	"internal/azurelogs/imports": {"record", "storage", "internal/azurelogs", "internal/azurelogs/formats"},
	"configs":                    {},
	"docs/measured/scale":        {},
	"internal/bill":              {"docs/measured/scale", "storage/fanout", "configs", "record", "blobfmt", "catalog", "storage/traffic", "internal/progress", "internal/units", "internal/yamltext", "storage/fsys"},
	"internal/config": {
		"record/meaning", "record/forms", "record", "record/ack", "internal/units", "internal/openstore", "storage/fsys",
		"internal/spelling", "internal/when", "internal/yamltext",
	},
	"retention/closing": {"record", "blobfmt", "storage", "catalog/closed", "catalog/horizon", "catalog", "internal/progress"},
	"retention/compact": {
		"catalog/erasure", "catalog/hold", "storage/fanout", "record", "blobfmt", "storage", "catalog/closed",
		"catalog/horizon", "catalog", "retention/closing", "internal/progress", "internal/units",
	},
	"retention/erase": {
		"storage/fanout", "record", "blobfmt", "storage", "catalog/erasure", "catalog/hold", "catalog/closed", "catalog/horizon", "catalog",
		"tailindex", "internal/lease", "internal/progress", "internal/spelling", "internal/units", "internal/where",
		"retention", "retention/closing", "retention/compact",
	},
	"retention": {"catalog/erasure", "catalog/hold", "storage/fanout", "record", "storage", "retention/closing", "catalog/closed", "catalog/horizon", "catalog", "tailindex", "internal/clockskew", "internal/progress", "internal/units"},
	// It joins the records in blobs with unflushed ones.
	"reading/unflushed": {"storage/fanout", "record", "storage", "reading/blobs", "tailindex", "reading/unflushed/live", "internal/lease", "internal/storeid", "catalog/horizon", "internal/budget", "internal/units", "internal/trust"},
	"retention/copying": {
		"storage/fanout", "record", "blobfmt", "storage", "catalog/closed", "catalog/erasure", "catalog/horizon", "catalog",
		"internal/lease", "internal/progress", "internal/storeid",
	},

	"retention/export": {
		"record", "storage", "catalog/closed", "catalog/hold", "catalog/horizon", "catalog", "internal/progress",
		"reading/blobs", "reading/survey",
	},

	// 4: wiring.
	"internal/openstore": {"record", "internal/spelling", "storage", "storage/dir", "storage/dir/tables", "storage/azure", "storage/mem", "storage/traffic", "storage/fsys", "internal/azurelogs", "internal/azurelogs/asblobs", "internal/storeid"},
	"internal/cli":       {"internal/config", "storage", "internal/openstore", "internal/progress", "internal/units", "storage/fsys"},
	"internal/guide":     {},
	"internal/yamltext":  {},
	"reading/search":     {"internal/regex", "internal/spelling", "internal/where", "reading/blobs", "record"},
	"reading":            {"record/forms", "reading/search", "blobfmt", "internal/access", "internal/globset", "internal/lease", "internal/units", "internal/when", "logql", "logql/stage", "reading/unflushed", "reading/blobs", "storage/fanout", "logql/metric", "internal/where", "reading/survey", "reading/patterns", "record", "storage/together", "internal/budget", "internal/door", "internal/progress", "internal/storeid", "reading/unflushed/live", "reading/blobs/indexcache", "storage", "storage/traffic", "tailindex", "internal/trust"},
	"cmd/ingest": {
		"record/meaning", "record/forms", "record/ack", "internal/globset", "internal/bill", "buffer/ship", "internal/sendfiles",
		"internal/progress", "internal/guide", "internal/when", "source/body", "source/carry", "source/dryrun", "internal/azurelogs",
		"internal/azurelogs/imports", "internal/spelling", "internal/cli", "internal/config", "buffer/wal", "buffer", "blobwriter",
		"source/httpsource", "source/natssource", "source/otlp", "source/shippers", "storage", "internal/openstore", "internal/lease",
		"internal/clockskew", "record", "reading/unflushed/live", "reading/unflushed/live/peers", "tailindex", "internal/migrations",
		"catalog/horizon", "internal/storeid", "internal/storeid/premises", "internal/trial", "storage/fsys", "internal/access",
		"internal/certs", "internal/rules", "internal/tally", "source/syslog", "internal/count", "internal/count/proc",
		"internal/door", "internal/loopback", "internal/units", "internal/signpost", "internal/trust",
	},
	"reading/survey":   {"record", "internal/budget"},
	"reading/patterns": {"record", "internal/budget", "internal/regex"},
	"reading/form":     {"reading/search", "reading", "reading/survey", "reading/patterns", "record", "internal/units"},
	"reading/remote":   {"internal/loopback", "internal/spill", "internal/trust", "reading/form", "record", "blobfmt", "internal/lease", "internal/units", "reading", "reading/survey", "record/times"},
	"reading/fan":      {"reading", "reading/blobs", "reading/remote", "record", "storage/fanout"},
	"serve/api":        {"reading/search", "blobfmt", "internal/access", "internal/lease", "internal/spelling", "internal/units", "internal/when", "reading/form", "reading", "reading/survey", "record", "storage", "internal/budget", "internal/door"},
	"serve/page":       {"internal/door"},
	"serve/loki":       {"internal/units", "internal/when", "logql", "logql/metric", "logql/stage", "reading", "record", "record/times", "internal/budget", "internal/door"},
	"cmd/retention":    {"catalog", "retention/erase", "internal/where", "tailindex", "internal/lease", "internal/guide", "internal/bill", "internal/cli", "internal/when", "record", "internal/config", "storage", "storage/fsys", "internal/openstore", "catalog/horizon", "retention", "retention/closing", "retention/compact", "internal/progress", "internal/count", "internal/units", "catalog/hold", "retention/copying", "retention/export", "internal/storeid"},
	"cmd/query":        {"record/forms", "reading/search", "source/body", "internal/guide", "internal/printing", "internal/where", "internal/cli", "storage/fsys", "internal/azurelogs", "internal/when", "internal/config", "record", "record/times", "blobfmt", "storage", "storage/traffic", "reading/blobs", "internal/openstore", "internal/lease", "reading/unflushed", "reading/unflushed/live", "tailindex", "internal/bill", "catalog", "internal/storeid", "internal/progress", "internal/spelling", "internal/access", "internal/certs", "reading/blobs/indexcache", "reading", "reading/survey", "serve/loki", "serve/api", "serve/page", "reading/remote", "reading/fan", "reading/form", "internal/units", "internal/budget", "internal/count", "internal/door", "internal/signpost", "internal/trust"},
}

// forTests are packages that only tests and development programs import, with the
// packages that they may import themselves.
var forTests = map[string][]string{
	"storage/storagetest":            {"storage"},
	"storage/fsys/simdisk":           {"storage/fsys"},
	"internal/dev/testkit/certstest": {},
	"internal/dev/testenv":           {},
	"internal/guide/guidetest":       {"internal/guide"},
	"reading/readingtest":            {"catalog/closed", "internal/dev/testkit/box", "internal/lease", "reading/unflushed", "reading/blobs", "reading", "reading/survey", "record", "retention/closing", "retention/compact", "storage", "storage/mem", "storage/storagetest"},
	"source/sourcetest":              {"record/meaning", "record", "source/httpsource"},
	"internal/dev/testenv/stores":    {"internal/dev/testenv", "storage", "storage/azure", "storage/dir", "storage/dir/tables", "storage/mem"},
	"internal/dev/testkit":           {},
	"internal/dev/testkit/meter":     {},
	"internal/dev/check":             {"record"},
	"internal/dev/bench/answers":     {"internal/dev/bench/rig"},
	"internal/dev/bench/result":      {},
	"internal/dev/bench/rig":         {"internal/dev/bench/result", "internal/dev/corpus"},
	"internal/dev/corpus":            {"record"},
	"internal/dev/scale":             {"storage", "storage/azure"},
	"source/body/loggers":            {},
	"internal/azurelogs/logstest":    {}, // no parser: expected records must not share the mistakes of one
	"internal/dev/testkit/box": {
		"record/meaning", "record", "record/origin", "buffer", "buffer/wal", "blobwriter", "storage/fsys/simdisk", "internal/lease",
		"tailindex", "reading/unflushed", "reading/unflushed/live", "reading/unflushed/live/peers", "reading/blobs", "storage",
		"storage/mem", "storage/storagetest",
	},
}

// externals are modules that belong to one place: an import elsewhere is at the wrong
// level.
var externals = map[string][]string{
	"github.com/tdewolff/":       {"serve/page"},
	"github.com/Azure/":          {"storage/azure", "internal/dev/azuretry"}, // the second tries claims on the service itself
	"modernc.org/sqlite":         {"storage/dir/tables"},
	"github.com/alecthomas/kong": {"internal/cli", "internal/guide", "internal/guide/guidetest", "cmd/ingest", "cmd/query", "cmd/retention"},
	"github.com/goccy/go-yaml":   {"internal/yamltext", "internal/config", "internal/access", "serve/api"},
	"github.com/parquet-go/":     {"retention/export"},    // a third of its program; the other two are not linked with it
	"github.com/prometheus/":     {"internal/count/proc"}, // of the kernel's files only; a library of metrics costs each start
	"go.opentelemetry.io/":       {},                      // the tests of source/otlp compare with it; it needs too much memory
	// Equal calls are made by storage/fanout. The parts of the others are of several kinds.
	"golang.org/x/sync/errgroup": {"storage/fanout", "buffer", "cmd/ingest", "cmd/query"},
	"net/http/pprof":             {"cmd/ingest"},
	"log/slog":                   {},
	"log":                        {"source/httpsource", "internal/door"}, // net/http's ErrorLog is of its type
}

// file is a parsed Go file of the module.
type file struct {
	path string // from the root, with slashes
	pkg  string // directory of it
	set  *token.FileSet
	tree *ast.File
}

func (f file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

func (f file) line(p token.Pos) string {
	return f.path + ":" + strconv.Itoa(f.set.Position(p).Line)
}

func (f file) imports() []string {
	var out []string
	for _, spec := range f.tree.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err == nil {
			out = append(out, p)
		}
	}
	return out
}

// parse reads every Go file of the module, with any build tags.
func parse(t *testing.T) []file {
	t.Helper()
	files, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 50 {
		t.Fatalf("found %d files: this is not the whole module", len(files))
	}
	return files
}

// parsed has the files for all tests, which only look at them.
var parsed = sync.OnceValues(func() ([]file, error) {
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		return nil, err
	}
	var files []file
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() {
			if base == "node_modules" || base == "testdata" || strings.HasPrefix(base, ".") && name != root {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil && name != root {
				return filepath.SkipDir // another module, no part of the product
			}
			return nil
		}
		if !strings.HasSuffix(base, ".go") || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		files = append(files, file{path: rel, pkg: path.Dir(rel), set: set, tree: tree})
		return nil
	})
	return files, err
})

// TestImports ensures that each package imports only packages of its row, and that each
// package has a row.
func TestImports(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range parse(t) {
		if f.isTest() {
			continue
		}
		row, known := allowed[f.pkg]
		if !known {
			row, known = forTests[f.pkg]
		}
		if !known && !seen[f.pkg] && !developmentProgram(f) {
			t.Errorf("package %s has no row here: decide what it may import", f.pkg)
		}
		seen[f.pkg] = true
		for _, imp := range f.imports() {
			ours, ok := strings.CutPrefix(imp, module+"/")
			if !ok {
				continue
			}
			if _, testing := forTests[ours]; testing && !developmentProgram(f) && !isForTests(f.pkg) {
				t.Errorf("%s imports %s, which is for tests", f.path, ours)
			} else if known && !slices.Contains(row, ours) {
				t.Errorf("%s imports %s; %s may import %s", f.path, ours, f.pkg, orNothing(row))
			}
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(allowed)) {
		if !seen[pkg] {
			t.Errorf("there is no package %s; take its row away", pkg)
		}
	}
}

// developmentProgram reports whether f is of a program that is never shipped:
// a main package below internal/.
func developmentProgram(f file) bool {
	return f.tree.Name.Name == "main" && (strings.HasPrefix(f.pkg, "internal/"))
}

func isForTests(pkg string) bool { _, ok := forTests[pkg]; return ok }

func orNothing(row []string) string {
	if len(row) == 0 {
		return "nothing of ours"
	}
	return strings.Join(row, ", ")
}

// TestRowsGoDownward ensures that the table itself has no cycle.
func TestRowsGoDownward(t *testing.T) {
	const visiting, done = 1, 2
	state := map[string]int{}
	var visit func(pkg string, trail []string)
	visit = func(pkg string, trail []string) {
		switch state[pkg] {
		case visiting:
			t.Fatalf("the table has a cycle: %s", strings.Join(append(trail, pkg), " -> "))
		case done:
			return
		}
		state[pkg] = visiting
		for _, dep := range allowed[pkg] {
			if _, ok := allowed[dep]; !ok {
				t.Errorf("%s may import %s, which has no row", pkg, dep)
			}
			visit(dep, append(trail, pkg))
		}
		state[pkg] = done
	}
	for _, pkg := range slices.Sorted(maps.Keys(allowed)) {
		visit(pkg, nil)
	}
}

// TestExternals ensures that a module is used in its one place only.
func TestExternals(t *testing.T) {
	for _, f := range parse(t) {
		if f.isTest() {
			continue
		}
		for _, imp := range f.imports() {
			for prefix, where := range externals {
				hit := imp == prefix || strings.HasSuffix(prefix, "/") && strings.HasPrefix(imp, prefix)
				if hit && !slices.Contains(where, f.pkg) {
					t.Errorf("%s imports %s; that is for %s", f.path, imp, orNothing(where))
				}
			}
		}
	}
}

// staging are calls that upload in blocks. If two writers stage blocks under one name,
// the blob that one commits has blocks of the other. Each blob of ours is one conditional
// PUT.
var staging = []string{
	"UploadStream", "UploadBuffer", "UploadFile", "StageBlock", "StageBlockFromURL", "CommitBlockList",
	"AppendBlock", "AppendBlockFromURL", "UploadPages",
}

// TestNoFileDoesWhatNoneMay ensures the rules for all files: no staged uploads, no init
// functions, and no mutable package variables. Test files may keep a fixture in a
// variable.
func TestNoFileDoesWhatNoneMay(t *testing.T) {
	for _, f := range parse(t) {
		for _, decl := range f.tree.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.Name == "init" {
					t.Errorf("%s: an init function runs whether anyone asks or not; call it by name", f.line(d.Pos()))
				}
			case *ast.GenDecl:
				if d.Tok == token.VAR && !f.isTest() && !isFile(d) {
					for _, spec := range d.Specs {
						checkVar(t, f, spec.(*ast.ValueSpec))
					}
				}
			}
		}
		if f.isTest() {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && slices.Contains(staging, sel.Sel.Name) {
				t.Errorf("%s: %s uploads in parts that two writers can mix; use one conditional PUT", f.line(sel.Pos()), sel.Sel.Name)
			}
			return true
		})
	}
}

// checkVar accepts package variables that are constants in all but name: errors, tables,
// compiled patterns, and assertions that a type implements an interface.
func checkVar(t *testing.T, f file, v *ast.ValueSpec) {
	t.Helper()
	for i, name := range v.Names {
		if name.Name == "_" {
			continue
		}
		if i >= len(v.Values) || !constantLike(v.Values[i]) {
			t.Errorf("%s: %s is state of the package; keep it in a value that someone owns", f.line(v.Pos()), name.Name)
		}
	}
}

// isFile reports whether the compiler fills a variable with a file.
func isFile(d *ast.GenDecl) bool {
	return d.Doc != nil && strings.HasPrefix(d.Doc.List[len(d.Doc.List)-1].Text, "//go:embed ")
}

// makers return values that are never changed.
var makers = []string{
	"errors.New", "fmt.Errorf", "regexp.MustCompile", "crc32.MakeTable", "strings.NewReplacer", "time.Date",
}

func constantLike(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit, *ast.CompositeLit:
		return true
	case *ast.CallExpr:
		switch fun := e.Fun.(type) {
		case *ast.SelectorExpr:
			pkg, ok := fun.X.(*ast.Ident)
			return ok && slices.Contains(makers, pkg.Name+"."+fun.Sel.Name)
		case *ast.ArrayType: // []byte("...")
			return true
		case *ast.FuncLit: // a table filled in place: var t = func() [256]bool { ... }()
			return len(e.Args) == 0
		}
	}
	return false
}
