package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// program builds a binary that has the linked function runtime/debug.SetGCPercent.
func program(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module example.com/program\n\ngo 1.21\n",
		"main.go": "package main\n\nimport \"runtime/debug\"\n\nfunc main() { println(debug.SetGCPercent(1)) }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "build", "-o", "program", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, "program")
}

// TestCheck ensures that a vulnerability fails the check if its code is linked, unless the
// Go of releases has it fixed.
func TestCheck(t *testing.T) {
	binary := program(t)
	for name, c := range map[string]struct {
		symbol, release string
		bad             bool
		says            string
	}{
		"linked":             {"SetGCPercent", "go1.98.7", true, "GO-2000-0001 in stdlib"},
		"no release is made": {"SetGCPercent", "", true, "fixed in v1.99.0: a hole\n"},
		"fixed for releases": {"SetGCPercent", "go1.99.0", false, "(releases are built with go1.99.0)"},
		"not linked":         {"WriteHeapDump", "go1.98.7", false, "0 vulnerabilities in linked code, 1 more"},
	} {
		t.Run(name, func(t *testing.T) {
			db := t.TempDir()
			entry := fmt.Sprintf(`{"schema_version":"1.3.1","id":"GO-2000-0001","modified":"2000-01-01T00:00:00Z","summary":"a hole",
				"affected":[{"package":{"name":"stdlib","ecosystem":"Go"},
				"ranges":[{"type":"SEMVER","events":[{"introduced":"0"},{"fixed":"1.99.0"}]}],
				"ecosystem_specific":{"imports":[{"path":"runtime/debug","symbols":[%q]}]}}]}`, c.symbol)
			if err := os.WriteFile(filepath.Join(db, "GO-2000-0001.json"), []byte(entry), 0o600); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			bad, err := check(t.Context(), "file://"+filepath.ToSlash(db), c.release, []string{binary}, &out)
			if err != nil || bad != c.bad || !strings.Contains(out.String(), c.says) {
				t.Errorf("bad %v, %v; it says\n%s", bad, err, out.String())
			}
		})
	}
}

// TestModules ensures that a vulnerability of a module counts with any version of Go, and that
// findings of several levels are one.
func TestModules(t *testing.T) {
	found, err := read(strings.NewReader(`{"osv":{"id":"GO-1","summary":"a hole"}}
		{"finding":{"osv":"GO-1","fixed_version":"v1.2.3","trace":[{"module":"example.com/m","version":"v1.2.0"}]}}
		{"finding":{"osv":"GO-1","fixed_version":"v1.2.3","trace":[{"module":"example.com/m","version":"v1.2.0","package":"example.com/m","function":"F"}]}}`))
	if err != nil || len(found) != 1 || !found[0].linked || found[0].summary != "a hole" || found[0].harmless("go9.9.9") {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := read(strings.NewReader(`{"finding":`)); err == nil {
		t.Error("half an answer is taken for a whole one")
	}
}

// TestUnreachable ensures that a check without binaries or without a database fails, and
// names the remedy.
func TestUnreachable(t *testing.T) {
	if _, err := check(t.Context(), "", "", nil, new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "make build") {
		t.Error(err)
	}
	t.Chdir("..")
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOMODCACHE", t.TempDir())
	if _, err := check(t.Context(), "", "", []string{"x"}, new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "make vuln VULNDB=https://vuln.go.dev") {
		t.Error(err)
	}
}

// TestDatabase ensures that the database comes from the Go proxy, with its age.
func TestDatabase(t *testing.T) {
	t.Chdir("..")
	m, err := database(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := filepath.Glob(filepath.Join(m.Dir, "data", "osv", "GO-*.json")); len(entries) < 4000 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
	if !strings.Contains(m.String(), " days old") {
		t.Error(m)
	}
}
