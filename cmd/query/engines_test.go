package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"blobtail/catalog/horizon"
	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit"
	"blobtail/retention/closing"
	"blobtail/retention/compact"
	"blobtail/storage"
	"blobtail/storage/azure"
	"blobtail/storage/dir"
)

// An engine is a database of others that reads blobs as files.
type engine struct {
	name string
	cmd  []string                    // before the SQL
	dir  string                      // of the store: paths are relative to it
	list func(paths []string) string // the blobs of some paths as a table with ts, level and service
}

// TestDuckDB and TestClickHouse ensure that engines see the rows that logquery counts.
func TestDuckDB(t *testing.T) {
	testkit.FullOnly(t, "another program reads")
	t.Parallel()
	node, modules := needNode(t)
	if _, err := os.Stat(filepath.Join(modules, "@duckdb", "node-api")); err != nil {
		missing(t, "no DuckDB: npm ci --ignore-scripts")
	}
	engine{name: "DuckDB", cmd: []string{node, tool(t, "duckdb"), "-csv", "-c"}, list: func(paths []string) string {
		return "read_ndjson(['" + strings.Join(paths, "','") + "'], compression='zstd', columns={ts:'VARCHAR',level:'VARCHAR',service:'VARCHAR'})"
	}}.check(t)
}

// `make engines` fetches the engine and runs this test.
func TestClickHouse(t *testing.T) {
	clickhouse(t, func(paths []string) string {
		files := paths[0] // in braces, * does not work
		if len(paths) > 1 {
			files = "{" + strings.Join(paths, ",") + "}"
		}
		return "file('" + files + "','JSONEachRow','ts String, level String, service String','zstd')"
	}).check(t)
}

// ClickHouse reads the same from a container of Azure.
func TestClickHouseAzure(t *testing.T) {
	var a *testenv.Azurite
	container := testenv.Name("c")
	e := clickhouse(t, func(paths []string) string {
		return "azureBlobStorage('" + a.ConnectionString + "','" + container + "','" + paths[0] + "','JSONEachRow','zstd','ts String, level String, msg String')"
	})
	a = env.Azurite(t)
	store, err := azure.Open(container, azure.Options{Getenv: a.Getenv})
	if err == nil {
		err = store.EnsureContainer(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	total := severalHours(t, store)
	if got := e.count(t, []string{"{api,orders,web}/2026/11/*/*/*.log"}, "true"); got != total {
		t.Errorf("%d rows, want %d", got, total)
	}
	rows := e.ask(t, "SELECT DISTINCT _path FROM "+e.list([]string{"web/2026/11/18/0{1,2}00/*.log"})+" ORDER BY _path")
	if len(rows) != 6 || rows[0] != container+"/web/2026/11/18/0100/000001.log" {
		t.Errorf("%q", rows)
	}
}

// clickhouse is the engine that `make engines` has fetched.
func clickhouse(t *testing.T, list func(paths []string) string) engine {
	t.Helper()
	if os.Getenv("ENGINES_PYTHON") == "" {
		t.Skip("make engines runs this test")
	}
	return engine{name: "ClickHouse", cmd: []string{tool(t, "clickhouse"), "local", "-q"}, list: list}
}

// missing skips a test without a tool, except in CI.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// needNode is the path of Node, and of its modules.
func needNode(t *testing.T) (node, modules string) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		missing(t, "no Node")
	}
	modules, err = filepath.Abs("../../node_modules")
	if err != nil {
		t.Fatal(err)
	}
	return node, modules
}

// ask runs a query that has one column. A header is left out.
func (e engine) ask(t *testing.T, sql string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), e.cmd[0], append(e.cmd[1:len(e.cmd):len(e.cmd)], sql)...)
	cmd.Dir = e.dir
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s\n%.500s", e.name, err, errs.String(), sql)
	}
	rows := strings.Split(strings.TrimSpace(string(out)), "\n")
	if e.name == "DuckDB" {
		rows = rows[1:]
	}
	return rows
}

// count is the number of rows of some blobs for which a condition is true.
func (e engine) count(t *testing.T, paths []string, where string) int {
	t.Helper()
	rows := e.ask(t, "SELECT count(*) AS n FROM "+e.list(paths)+" WHERE "+where)
	n, err := strconv.Atoi(rows[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// check holds the engine against logquery: before compaction, when the replaced blobs and
// expired days are still there, and after they were deleted.
func (e engine) check(t *testing.T) {
	root := t.TempDir()
	store, err := dir.Open(root, dir.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	e.dir = root
	total := severalHours(t, store)
	all := []string{"*/2026/*/*/*/*.log"}
	if got, want := e.count(t, all, "true"), counted(t, root, "*"); got != total || want != total {
		t.Errorf("%s sees %d rows, logquery %d, want %d", e.name, got, want, total)
	}

	closed, err := closing.Run(t.Context(), store, closing.Options{Log: zerolog.Nop()})
	if err != nil || closed.Parts != 6 || len(closed.Problems) > 0 {
		t.Fatalf("%+v, %v", closed, err)
	}
	done, err := compact.Run(t.Context(), store, compact.Options{Log: zerolog.Nop()})
	if err != nil || done.Out == 0 || done.Waiting != done.In {
		t.Fatalf("%+v, %v", done, err)
	}
	if err := horizon.Publish(t.Context(), store, "orders", horizon.DayOf(time.Date(2026, 11, 19, 0, 0, 0, 0, time.UTC))); err != nil {
		t.Fatal(err)
	}
	if got, want := e.count(t, all, "true"), counted(t, root, "*"); got <= total || want >= total {
		t.Errorf("%s sees %d rows, logquery %d: compacted and expired blobs should make a difference", e.name, got, want)
	}
	for _, args := range [][]string{
		{"*"}, {"web"}, {"web,orders"}, {"*", "--from", "2026-11-19 01:00", "--to", "2026-11-19 01:30"}, {"api", "--day", "2026-11-18"},
	} {
		names := blobNames(t, root, args...)
		where := "true"
		if len(args) > 3 {
			where = "ts >= '2026-11-19T01:00' AND ts < '2026-11-19T01:30'"
		}
		for level, where := range map[string]string{"trace+": where, "error": where + " AND level = 'error'"} {
			if got, want := e.count(t, names, where), counted(t, root, append(args, "--level", level)...); got != want || want == 0 {
				t.Errorf("%s sees %d rows of %q and %s, logquery %d", e.name, got, args, level, want)
			}
		}
	}
	in := done.In
	tomorrow := func() time.Time { return time.Now().Add(24 * time.Hour) }
	done, err = compact.Run(t.Context(), store, compact.Options{Log: zerolog.Nop(), Now: tomorrow})
	if err != nil || done.Deleted == 0 || done.Deleted > in {
		t.Fatalf("%+v, %v", done, err)
	}
	if got, want := e.count(t, []string{"web/*/*/*/*/*.log"}, "true"), counted(t, root, "web"); got != want {
		t.Errorf("%s sees %d rows, logquery %d, after the replaced blobs were deleted", e.name, got, want)
	}
}

// severalHours stores records of three services in 2 days of 3 hours, in 3 blobs of many
// blocks each, and returns their number.
func severalHours(t *testing.T, store storage.BlobStore) (total int) {
	number := 0
	for _, service := range []string{"api", "orders", "web"} {
		for hour := range 6 {
			start := time.Date(2026, 11, 18+hour/3, hour%3, 0, 0, 0, time.UTC)
			for part := range 3 {
				var text bytes.Buffer
				for i := range 200 {
					r := map[string]any{"ts": start.Add(time.Duration(i*17+part) * time.Second).UnixNano(), "service": service,
						"level": []string{"info", "error", "warn"}[i%3], "msg": fmt.Sprintf("request %d of %d: é \"quoted\"\n", i, part)}
					if i%2 == 0 { // other records have other fields, and other types
						r["user"], r["at"] = map[string]any{"id": i, "tags": []int{1, 2}}, nil
					} else {
						r["user"] = "u" + strconv.Itoa(i)
					}
					line, err := json.Marshal(r)
					if err != nil {
						t.Fatal(err)
					}
					text.Write(append(line, '\n'))
					total++
				}
				number++
				if err := addBlob(store, text.Bytes(), number); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return total
}

// tool is the path of a program that stands in for a command.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs("../../docs/testdata/tools/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// counted is the number that logquery --count prints.
func counted(t *testing.T, root string, args ...string) int {
	t.Helper()
	_, out, errs := terminal(t, root, append(args, "--count", "--live", "off")...)
	n, err := strconv.Atoi(strings.ReplaceAll(strings.TrimSpace(out), ",", ""))
	if err != nil {
		t.Fatalf("%v: %s", err, errs)
	}
	return n
}

// blobNames are the blobs that logquery ls --names prints.
func blobNames(t *testing.T, root string, args ...string) []string {
	t.Helper()
	_, out, errs := terminal(t, root, append([]string{"ls", "--names"}, args...)...)
	if out == "" {
		t.Fatalf("no names: %s", errs)
	}
	return strings.Fields(out)
}
