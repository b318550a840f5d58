package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"blobtail/internal/dev/testkit"
	"blobtail/storage/dir"
)

// The view that is printed has the records that logquery counts, and DuckDB is started with it.
func TestDuckDBView(t *testing.T) {
	testkit.FullOnly(t, "another program reads")
	node, modules := needNode(t)
	if _, err := os.Stat(filepath.Join(modules, "@duckdb", "node-api")); err != nil {
		missing(t, "no DuckDB: npm ci --ignore-scripts")
	}
	root := t.TempDir()
	store, err := dir.Open(root, dir.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	total := severalHours(t, store)
	view := func(args ...string) string {
		t.Helper()
		code, out, errs := terminal(t, root, append([]string{"duckdb"}, args...)...)
		if code != 0 {
			t.Fatal(code, errs)
		}
		return out
	}
	hour := []string{"--from", "2026-11-18 01:00", "--to", "2026-11-18 01:30", "-u"}
	for _, c := range []struct {
		args []string
		want int
	}{{nil, total}, {[]string{"web"}, total / 3}, {append(hour, "web"), counted(t, root, append(hour, "web")...)}} {
		sql := view(append([]string{"--print"}, c.args...)...)
		sql += "SELECT count(*), max(record->>'$.user.tags[1]') FROM logs"
		out, err := exec.Command(node, tool(t, "duckdb"), "-csv", "-c", sql).Output()
		if want := fmt.Sprintf("\n%d,2\n", c.want); err != nil || !strings.HasSuffix(string(out), want) {
			t.Errorf("%v: %q, %v; want %q", c.args, out, err, want)
		}
	}
	fake := filepath.Join(t.TempDir(), "duckdb")
	if err := os.WriteFile(fake, []byte("#!/bin/sh\neval \"set -- $2\"\ncat \"$2\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(fake)+":"+os.Getenv("PATH"))
	if got := view("web"); got != view("web", "--print") {
		t.Errorf("DuckDB reads %.200s", got)
	}
	got := view("[^a]?", "--export", "dir:la'ke") + view("api,WEB", "--export", "lake/")
	for _, want := range []string{
		"(['la''ke/service=[!a]?/*/*.parquet'],", "(['lake/service=api/*/*.parquet',\n'lake/service=web/*/*.parquet'],",
	} {
		if !strings.Contains(got, want) {
			t.Error(got)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if code, _, errs := terminal(t, root, "duckdb"); code != 2 || !strings.Contains(errs, "--print prints the SQL") {
		t.Error(code, errs)
	}
	if code, _, errs := terminal(t, root, "duckdb", "--since", "1m"); code != 1 || !strings.Contains(errs, "no blob has records") {
		t.Error(code, errs)
	}
	if code, _, errs := terminal(t, root, "duckdb", "nosuch"); code != 2 || !strings.Contains(errs, "nosuch") {
		t.Error(code, errs)
	}
}
