package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const comparison = "docs/COMPARISON.md"

// systems are the columns of the tables of docs/COMPARISON.md. A source of a system is
// a letter and a number, and leads to the maker's own pages: ours are files beside the page.
var systems = []struct{ name, letter, address string }{
	{"blobtail", "B", ""},
	{"VictoriaLogs", "V", "https://github.com/VictoriaMetrics/VictoriaLogs/blob/"},
	{"Loki", "L", "https://github.com/(?:grafana/loki|prometheus/prometheus)/blob/"},
	{"Quickwit", "Q", "https://github.com/quickwit-oss/quickwit/blob/"},
	{"Azure Monitor Logs", "A", "https://(?:github.com/MicrosoftDocs/azure-monitor-docs/blob|learn.microsoft.com)/"},
}

// sources returns the definitions of links of docs/COMPARISON.md, by their names.
func sources(t *testing.T) map[string]string {
	t.Helper()
	defined := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\[(\w+)\]: (\S+)$`).FindAllStringSubmatch(read(t, comparison), -1) {
		if defined[m[1]] != "" {
			t.Errorf("[%s] is defined twice", m[1])
		}
		defined[m[1]] = m[2]
	}
	return defined
}

// cells calls f with each cell of each table that compares the systems, the part of the
// page that is measured left out, and returns their number.
func cells(t *testing.T, f func(line, column int, cell string)) (n int) {
	t.Helper()
	page, _, _ := strings.Cut(read(t, comparison), "<!-- compare: begin -->")
	for i, line := range strings.Split(page, "\n") {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") {
			continue
		}
		row := strings.Split(strings.Trim(line, "|"), "|")
		if len(row) != len(systems)+1 {
			t.Errorf("%s:%d: %d columns", comparison, i+1, len(row))
			continue
		}
		for c, cell := range row[1:] {
			if strings.TrimSpace(row[0]) == "" {
				if strings.TrimSpace(cell) != systems[c].name {
					t.Errorf("%s:%d: column %d is %q", comparison, i+1, c+1, cell)
				}
				continue
			}
			f(i+1, c, strings.TrimSpace(cell))
			n++
		}
	}
	return n
}

// TestComparisonSources ensures that each cell of docs/COMPARISON.md has a source of the
// system of its column or a trial on the page, or says that none was found, and that each
// source is used.
func TestComparisonSources(t *testing.T) {
	defined, used := sources(t), map[string]bool{}
	named, trial := regexp.MustCompile(`\[(\w+)\]`), regexp.MustCompile(`\[tried\]\(#[\w-]+\)`)
	n := cells(t, func(line, column int, cell string) {
		all := named.FindAllStringSubmatch(trial.ReplaceAllString(cell, ""), -1)
		if len(all) == 0 && cell != "not found" && !trial.MatchString(cell) {
			t.Errorf("%s:%d: %q has no source", comparison, line, cell)
		}
		for _, m := range all {
			used[m[1]] = true
			if !strings.HasPrefix(m[1], systems[column].letter) {
				t.Errorf("%s:%d: [%s] is no source of %s", comparison, line, m[1], systems[column].name)
			}
			if defined[m[1]] == "" {
				t.Errorf("%s:%d: [%s] leads nowhere", comparison, line, m[1])
			}
		}
	})
	if n < 5*25 {
		t.Errorf("the tables have %d cells", n)
	}
	for name := range defined {
		if !used[name] {
			t.Errorf("[%s] is the source of no cell", name)
		}
	}
}

// TestComparisonAddresses ensures that a source of ours is a file and a heading that
// exist, and that one of others is the maker's page at a version that does not change.
func TestComparisonAddresses(t *testing.T) {
	fixed := regexp.MustCompile(`/blob/(?:v\d+\.\d+\.\d+|[0-9a-f]{12,40})/`)
	for name, target := range sources(t) {
		i := slices.IndexFunc(systems, func(s struct{ name, letter, address string }) bool { return strings.HasPrefix(name, s.letter) })
		switch {
		case i < 0:
			t.Errorf("[%s] is of no system", name)
		case systems[i].address != "":
			if !regexp.MustCompile("^" + systems[i].address).MatchString(target) {
				t.Errorf("[%s] is no page of %s: %s", name, systems[i].name, target)
			}
			if strings.Contains(target, "/blob/") && !fixed.MatchString(target) {
				t.Errorf("[%s] names no version: %s", name, target)
			}
		default:
			file, heading, _ := strings.Cut(target, "#")
			file = filepath.Join("docs", file)
			if _, err := os.Stat(filepath.Join(root, file)); err != nil {
				t.Errorf("[%s]: %v", name, err)
			} else if heading != "" && !slices.Contains(anchors(read(t, file)), heading) {
				t.Errorf("[%s]: %s has no such heading", name, target)
			}
		}
	}
}

// TestComparisonCommands ensures that each command of ours in the tables is one that
// another page runs.
func TestComparisonCommands(t *testing.T) {
	var shown strings.Builder
	for _, page := range pages(t) {
		if page == comparison || !strings.HasPrefix(page, "docs/") {
			continue
		}
		for _, b := range blocks(t, page) {
			shown.WriteString(b.text)
		}
	}
	for _, name := range commandsOf(t) {
		if !regexp.MustCompile(`(?m)(?:^|[ |(])` + regexp.QuoteMeta(name) + `(?:[ \n|)]|$)`).MatchString(shown.String()) {
			t.Errorf("no page runs %q", name)
		}
	}
}

// commandsOf returns the commands of blobtail's column.
func commandsOf(t *testing.T) (out []string) {
	t.Helper()
	cells(t, func(_, column int, cell string) {
		if column != 0 {
			return
		}
		for _, m := range regexp.MustCompile("`((?:logquery|ingest|retention|zstd)[^`]*)`").FindAllStringSubmatch(cell, -1) {
			out = append(out, m[1])
		}
	})
	if len(out) < 4 {
		t.Errorf("the tables have the commands %q", out)
	}
	return out
}

// TestComparisonVersions ensures that the page names one version of VictoriaLogs, the one
// that is installed to be measured, and one of Loki, that of logcli in docs/GRAFANA.md.
func TestComparisonVersions(t *testing.T) {
	victoria := versionOf(t, "VictoriaLogs", `VictoriaLogs/blob/([^/]+)/`)
	mods, err := filepath.Glob(filepath.Join(root, "internal/dev/tools/*/go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for _, mod := range mods {
		text, err := os.ReadFile(mod)
		if err != nil {
			t.Fatal(err)
		}
		installed := regexp.MustCompile(`VictoriaMetrics/VictoriaLogs (v\S+)`).FindSubmatch(text)
		if installed != nil && string(installed[1]) != victoria {
			t.Errorf("%s installs %s, and %s is about %s", mod, installed[1], comparison, victoria)
		}
	}
	loki := versionOf(t, "Loki", `grafana/loki/blob/([^/]+)/`)
	if !strings.Contains(read(t, "docs/GRAFANA.md"), "logcli "+strings.TrimPrefix(loki, "v")) {
		t.Errorf("docs/GRAFANA.md is about another version of logcli than %s", loki)
	}
}

// versionOf returns the version of a system that the head of docs/COMPARISON.md names.
// The addresses of its sources, in which a group matches the version, have to be of it.
func versionOf(t *testing.T, name, address string) string {
	t.Helper()
	page := read(t, comparison)
	m := regexp.MustCompile(`\*\*` + name + ` (v\d+\.\d+\.\d+)\*\*`).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("%s names no version of %s", comparison, name)
	}
	for _, a := range regexp.MustCompile(address).FindAllStringSubmatch(page, -1) {
		if a[1] != m[1] {
			t.Errorf("%s: %s, and a source is of %s", name, m[1], a[1])
		}
	}
	return m[1]
}

// TestComparisonMeasured ensures that the page ends with the part with the measured figures.
func TestComparisonMeasured(t *testing.T) {
	if !regexp.MustCompile(`(?s)\n## Measured\n\n<!-- compare: begin -->\n.+\n<!-- compare: end -->\n$`).MatchString(read(t, comparison)) {
		t.Errorf("%s does not end with the heading Measured and the marks of the measured part", comparison)
	}
}
