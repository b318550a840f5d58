// Package engines_test asks the engines that people have about a store and its export as Parquet. `make
// engines` installs them, and runs it. Answers are those of logquery, and statistics spare reading.
package engines_test

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"blobtail/internal/dev/scale"
	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit"
)

const days = 7

var services = []string{"api-gateway", "auth", "checkout"}

// world is a store of closed days, its export, and the commands.
type world struct {
	t       *testing.T
	dir     string
	records int
	from    time.Time
}

// run runs a command in the directory of the world, and returns what it prints.
func (w *world) run(command string, args ...string) string {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), filepath.Join(w.dir, command), args...)
	var errs bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stderr = w.dir, append(testkit.Environ(), "BLOBTAIL_STORE=dir:data"), &errs
	begun := time.Now()
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("%s %q: %v\n%s", command, args, err, errs.String())
	}
	used, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if ok && command == "retention" {
		w.t.Logf("%s %s: %.1f s, %.1f CPU s, %d MiB\n%s", command, args[0], time.Since(begun).Seconds(),
			(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), used.Maxrss>>10, out)
	}
	return string(out)
}

func build(t *testing.T, records int) *world {
	w := &world{t: t, dir: t.TempDir(), records: records, from: time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -days-1)}
	for _, name := range []string{"ingest", "logquery", "retention"} {
		if err := testkit.Build("../..", w.dir, name); err != nil {
			t.Fatal(err)
		}
	}
	w.ingest()
	w.run("retention", "close")
	w.run("retention", "compact")
	w.run("retention", "export", "--parquet", "--to", "dir:lake")
	return w
}

// ingest sends the records of the days in their order.
func (w *world) ingest() {
	w.t.Helper()
	ports, err := testenv.FreePorts(2)
	if err != nil {
		w.t.Fatal(err)
	}
	var p testkit.Process
	cmd := exec.Command(filepath.Join(w.dir, "ingest"), "--store", "dir:data", "--wal", "wal",
		"--listen", "127.0.0.1:"+ports[0], "--admin", "127.0.0.1:"+ports[1])
	cmd.Dir, cmd.Env = w.dir, testkit.Environ()
	if err := p.Start(testkit.NewParent(), cmd); err != nil {
		w.t.Fatal(err)
	}
	if err := p.Ready("http://127.0.0.1:" + ports[1] + "/readyz"); err != nil {
		w.t.Fatal(err)
	}
	send := func(port, path string, body []byte) {
		resp, err := http.Post("http://127.0.0.1:"+port+path, "", bytes.NewReader(body))
		if err == nil {
			var said []byte
			said, err = io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode/100 != 2 {
				w.t.Fatalf("%s: %s", resp.Status, said)
			}
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	lines, body := scale.NewLines(1), []byte{}
	step := days * 24 * time.Hour / time.Duration(w.records)
	for i := range w.records {
		body = lines.Append(body, services[i%len(services)], w.from.Add(time.Duration(i)*step))
		if len(body) > 4<<20 || i == w.records-1 {
			send(ports[0], "/ingest", body)
			body = body[:0]
		}
	}
	send(ports[1], "/flush", nil)
	if err := p.End(syscall.SIGTERM); err != nil {
		w.t.Fatal(err)
	}
}

// size is how many bytes the files of some names have.
func (w *world) size(root string, names ...string) (n int64) {
	w.t.Helper()
	err := filepath.WalkDir(filepath.Join(w.dir, root), func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(filepath.Join(w.dir, root), path)
		if err == nil && !d.IsDir() && (len(names) == 0 || slices.Contains(names, rel)) {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				n += info.Size()
			}
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// answers are rows by questions. All numbers are float64.
type answers map[string][][]any

// logquery answers by the command.
func (w *world) logquery(q *questions) answers {
	w.t.Helper()
	from, to := w.from.Format(time.RFC3339), w.from.AddDate(0, 0, days).Format(time.RFC3339)
	ask := func(args ...string) string {
		return w.run("logquery", append(args, "--from", from, "--to", to, "--live", "off", "-q", "-u")...)
	}
	a := answers{"nosuch": nil}
	table := ask("hist", "*", "--by", "1h", "--by-field", "service,level", "--top", "50", "-o", "csv")
	rows, err := csv.NewReader(strings.NewReader(table)).ReadAll()
	if err != nil {
		w.t.Fatal(err)
	}
	total := 0.
	for _, row := range rows[1:] {
		at, err := time.Parse(time.RFC3339, row[0])
		if err != nil {
			w.t.Fatal(err)
		}
		for i, head := range rows[0] {
			if service, level, ok := strings.Cut(head, " / "); ok && row[i] != "0" {
				n := number(w.t, row[i])
				a["counts"], total = append(a["counts"], []any{service, level, float64(at.Unix()), n}), total+n
			}
		}
	}
	if int(total) != w.records {
		w.t.Errorf("logquery counts %v records, want %d", total, w.records)
	}
	for _, service := range services {
		row := []any{service}
		for _, p := range []string{"0.5", "0.99"} {
			query := fmt.Sprintf("quantile_over_time(%s, {service=%q} | json | unwrap duration_ms [%dd])", p, service, days)
			out := w.run("logquery", "--logql", query, "--step", "0", "--from", from, "--to", to, "--live", "off", "-q", "-o", "csv")
			lines := strings.Split(strings.TrimSpace(out), "\n")
			row = append(row, number(w.t, lines[1][strings.LastIndexByte(lines[1], ',')+1:]))
		}
		a["quantiles"] = append(a["quantiles"], row)
	}
	users := map[string]float64{}
	for line := range strings.Lines(ask("top", "user_id", q.Service, "--level", "critical", "-n", "1000000", "-o", "csv")) {
		f := strings.Split(strings.TrimSpace(line), ",")
		if strings.HasPrefix(f[0], "u1") {
			users[f[0]] = number(w.t, f[1])
		}
	}
	pairs := 0.
	for line := range strings.Lines(ask(q.Other, "--level", "error", "--fields", "user_id", "-o", "csv")) {
		pairs += users[strings.TrimSpace(line)]
	}
	if pairs == 0 {
		w.t.Error("the join is of nothing")
	}
	a["join"] = [][]any{{pairs}}
	for line := range strings.Lines(ask("*", "--where", fmt.Sprintf("request_id == %q", q.ID), "-o", "json")) {
		var r struct {
			TS             time.Time
			Level, Service string
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			w.t.Fatal(err)
		}
		a["id"] = append(a["id"], []any{float64(r.TS.UnixNano()), r.Level, r.Service})
	}
	if len(a["id"]) != 1 {
		w.t.Errorf("%v", a["id"])
	}
	return a
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// questions are the variables of ask.py.
type questions struct {
	Lake    string   `json:"lake"`
	Names   []string `json:"names"` // of blobs
	ID      string   `json:"id"`
	NoSuch  string   `json:"nosuch"`
	Service string   `json:"service"`
	Other   string   `json:"other"`
	Hour    int64    `json:"hour"`
	Date    string   `json:"date"`
}

// answered is what ask.py prints.
type answered struct {
	Parquet answers          `json:"parquet"`
	Blobs   answers          `json:"blobs"`
	Bytes   map[string]int64 `json:"bytes"` // read, by questions
}

// equal compares rows in any order. A quantile may differ by what adding in another order does.
func equal(a, b [][]any) bool {
	sorted := func(rows [][]any) [][]any {
		return slices.SortedFunc(slices.Values(rows), func(x, y []any) int { return strings.Compare(fmt.Sprint(x), fmt.Sprint(y)) })
	}
	return slices.EqualFunc(sorted(a), sorted(b), func(x, y []any) bool {
		return slices.EqualFunc(x, y, func(v, w any) bool {
			f, is := v.(float64)
			g, isToo := w.(float64)
			return v == w || is && isToo && math.Abs(f-g) <= 1e-9*math.Abs(f)
		})
	})
}

func TestEngines(t *testing.T) {
	python := os.Getenv("ENGINES_PYTHON")
	if python == "" {
		t.Skip("make engines runs this test")
	}
	w := build(t, testkit.Setting("BLOBTAIL_RECORDS", 2_000_000))
	names := strings.Fields(w.run("logquery", "ls", "--names", "--live", "off", "--from", w.from.Format(time.RFC3339)))
	lake, blobs := w.size("lake"), w.size("data", names...)
	t.Logf("%d records: Parquet %d bytes, compacted blobs %d: %.3f", w.records, lake, blobs, float64(lake)/float64(blobs))
	if float64(lake) > 1.15*float64(blobs) {
		t.Error("Parquet is larger than 1.15 times the blobs")
	}
	day := w.from.AddDate(0, 0, 3)
	q := &questions{Lake: filepath.Join(w.dir, "lake"), NoSuch: strings.Repeat("0f", 16), Service: services[1], Other: services[2],
		Hour: day.Add(9 * time.Hour).UnixNano(), Date: day.Format(time.DateOnly)}
	for _, name := range names {
		q.Names = append(q.Names, filepath.Join("data", name))
	}
	seven := day.Add(7 * time.Hour).Format(time.RFC3339)
	first := w.run("logquery", services[1], "--from", seven, "--limit", "1", "--live", "off", "-q", "-o", "json")
	_, id, _ := strings.Cut(first, `"request_id":"`)
	q.ID = id[:32]
	text, err := json.Marshal(q)
	if err == nil {
		err = os.WriteFile(filepath.Join(w.dir, "questions.json"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	want := w.logquery(q)
	for _, engine := range []string{"duckdb", "clickhouse", "spark"} {
		t.Run(engine, func(t *testing.T) { w.engine(t, python, engine, want, lake) })
	}
}

func (w *world) engine(t *testing.T, python, engine string, want answers, lake int64) {
	script, err := filepath.Abs("ask.py")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, script, engine, "questions.json")
	var errs bytes.Buffer
	cmd.Dir, cmd.Stderr = w.dir, &errs
	begun := time.Now()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	var got answered
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, len(out)+1)
	for lines.Scan() { // engines say this and that before
		if err := json.Unmarshal(lines.Bytes(), &got); err == nil && got.Parquet != nil {
			break
		}
	}
	for form, a := range map[string]answers{"Parquet": got.Parquet, "blobs": got.Blobs} {
		for name, rows := range want {
			if (form == "Parquet" || engine != "spark") && !equal(a[name], rows) {
				t.Errorf("%s of %s: %.300v\nlogquery %.300v", name, form, a[name], rows)
			}
		}
	}
	of := map[string]float64{}
	for name, n := range got.Bytes {
		of[name] = float64(n) / float64(lake)
	}
	t.Logf("%.0f s; bytes read, of those of Parquet: %.3v", time.Since(begun).Seconds(), of)
	most := map[string]float64{"two": 0.2, "hour": 0.2, "day": 0.2, "nosuch": 0.5}
	if engine == "spark" {
		delete(most, "hour") // it has no statistics of nanoseconds
	}
	if w.records < 1_000_000 {
		return // footers are most of it
	}
	for name, part := range most {
		if of[name] > part || of["all"] < 0.3 {
			t.Errorf("%s reads %.3f of the bytes, more than %.2f; all messages are %.3f", name, of[name], part, of["all"])
		}
	}
}
