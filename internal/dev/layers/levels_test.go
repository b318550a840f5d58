package layers

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the levels into the table of packages")

// A page has the table of packages between these lines.
const (
	tableBegin = "<!-- packages: begin -->\n"
	tableHead  = "| level | package | job |\n|---|---|---|\n"
	tableEnd   = "<!-- packages: end -->\n"
)

// A tableRow is a row of the table of packages. It names one package or several.
type tableRow struct {
	level    string
	packages []string
	cell     string // with the packages
	job      string
	most     int // level of its last package
}

// TestPackageTable ensures that a page has a table with each package of the product, by levels. A
// package without imports is at level 0, and each other one is a level above the highest that it
// imports. With -update the test writes the levels and sorts the rows.
func TestPackageTable(t *testing.T) {
	page, before, table, after := findTable(t)
	levels := levelsOf(t)
	rows := rowsOf(t, page, table)
	named := map[string]bool{}
	for i := range rows {
		r := &rows[i]
		least := len(levels)
		for _, pkg := range r.packages {
			level, ok := levels[pkg]
			if !ok {
				t.Errorf("%s names the package %s, and the product has none: take it out", page, pkg)
			}
			if named[pkg] {
				t.Errorf("%s names the package %s twice", page, pkg)
			}
			named[pkg] = true
			least, r.most = min(least, level), max(r.most, level)
		}
		if r.level = fmt.Sprint(least); least != r.most {
			r.level = fmt.Sprintf("%d-%d", least, r.most)
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(levels)) {
		if !named[pkg] {
			t.Errorf("%s does not name the package %s: add a row to its table, with any level, and run this test with -update", page, pkg)
		}
	}
	if t.Failed() {
		return
	}
	slices.SortFunc(rows, func(a, b tableRow) int {
		return cmp.Or(a.most-b.most, strings.Compare(a.packages[0], b.packages[0]))
	})
	var now strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&now, "| %s |%s|%s", r.level, r.cell, r.job)
	}
	switch {
	case now.String() == table:
	case *update:
		if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(page)), []byte(before+now.String()+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the levels in %s are not those of the imports: go test ./%s -run TestPackageTable -update", page, here)
	}
}

// findTable finds the one page with the table of packages, and its rows.
func findTable(t *testing.T) (page, before, table, after string) {
	t.Helper()
	for _, name := range pageNames(t) {
		head, rest, ok := strings.Cut(readPage(t, name), tableBegin+tableHead)
		if !ok {
			continue
		}
		rows, tail, ended := strings.Cut(rest, tableEnd)
		if page != "" || !ended {
			t.Fatalf("the table of packages is on %s too, or does not end: it stands once, between the lines\n%s%s", name, tableBegin, tableEnd)
		}
		page, before, table, after = name, head+tableBegin+tableHead, rows, tableEnd+tail
	}
	if page == "" {
		t.Fatalf("no page has the table of packages, which begins with\n%s%s", tableBegin, tableHead)
	}
	return page, before, table, after
}

// rowsOf reads the rows of a table.
func rowsOf(t *testing.T, page, table string) (rows []tableRow) {
	t.Helper()
	name := regexp.MustCompile("`([^`]+)`")
	for row := range strings.Lines(table) {
		cells := strings.SplitN(row, "|", 4)
		if len(cells) < 4 {
			t.Fatalf("%s: no row of the table of packages: %s", page, row)
		}
		r := tableRow{cell: cells[2], job: cells[3]}
		for _, m := range name.FindAllStringSubmatch(cells[2], -1) {
			r.packages = append(r.packages, m[1])
		}
		if len(r.packages) == 0 {
			t.Fatalf("%s: a row of the table of packages names none: %s", page, row)
		}
		rows = append(rows, r)
	}
	return rows
}

// levelsOf computes the level of each package of the product. Inner packages of a folder, which
// only that folder may import, have no row.
func levelsOf(t *testing.T) map[string]int {
	t.Helper()
	imports := product(t)
	levels := map[string]int{}
	var level func(pkg string) int
	level = func(pkg string) int {
		if n, ok := levels[pkg]; ok {
			return n
		}
		n := 0
		for _, imp := range imports[pkg] {
			n = max(n, level(imp)+1)
		}
		levels[pkg] = n
		return n
	}
	for pkg := range imports {
		level(pkg)
	}
	maps.DeleteFunc(levels, func(pkg string, _ int) bool { return strings.Contains(pkg, "/internal/") })
	return levels
}
