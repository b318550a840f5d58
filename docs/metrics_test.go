package docs

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit"
	"blobtail/storage"
	dirstore "blobtail/storage/dir"
)

// TestMetrics ensures that docs/operate/metrics.md explains every blobtail metric of a running ingester or
// of a run of retention, and docs/read/serve.md those of logquery serve, and that pages name no other.
func TestMetrics(t *testing.T) {
	bin, served := build(t), map[string]string{}
	for page, programs := range map[string][]map[string]string{
		"docs/operate/metrics.md": {ingesterMetrics(t, bin), left(t, bin)},
		"docs/read/serve.md":      {serverMetrics(t, bin)},
	} {
		explained := namedMetrics(t, page)
		for _, metrics := range programs {
			for name := range metrics {
				if !explained[name] {
					t.Errorf("%s does not explain %s", page, name)
				}
			}
			if len(metrics) < 5 {
				t.Errorf("%s: found %d metrics", page, len(metrics))
			}
			maps.Copy(served, metrics)
		}
	}
	for _, page := range pages(t) {
		for name := range namedMetrics(t, page) {
			if served[name] == "" {
				t.Errorf("%s names %s, which is not served", page, name)
			}
		}
	}
}

// namedMetrics returns the metrics that a page names.
func namedMetrics(t *testing.T, page string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, name := range regexp.MustCompile(`\bblobtail_[a-z_]+[a-z]\b`).FindAllString(read(t, page), -1) {
		names[regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")] = true
	}
	return names
}

// stream starts a NATS server with the stream that an ingester reads from, and
// returns its URL.
func stream(t *testing.T) string {
	t.Helper()
	server := testenv.StartNATS(t)
	_, js := server.Connect()
	if _, err := js.CreateStream(t.Context(), testenv.Stream("LOGS")); err != nil {
		t.Fatal(err)
	}
	return server.URL
}

// ingesterMetrics asks an ingester that has answered a request for the names of its own metrics.
func ingesterMetrics(t *testing.T, bin string) map[string]string {
	t.Helper()
	config := filepath.Join(t.TempDir(), "blobtail.yaml") // some metrics are those of settings
	if err := os.WriteFile(config, []byte("counters: [{name: a, service: a}]\nrules: [{name: a, service: a, drop: true}]\nforms: [{services: [a], form: common, store: true}]\ningest: {ack: shipped}"), 0o600); err != nil {
		t.Fatal(err)
	}
	ready := started(t, filepath.Join(bin, "ingest"), "--config", config, "--store", "dir:"+t.TempDir(), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0",
		"--nats", stream(t), "--syslog", "127.0.0.1:0")
	r, err := http.Post("http://"+ready.Listen+"/ingest/hello", "text/plain", strings.NewReader("the lights are on"))
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	return asked(t, "http://"+ready.Admin)
}

// serverMetrics asks logquery serve for the names of its metrics.
func serverMetrics(t *testing.T, bin string) map[string]string {
	t.Helper()
	return asked(t, started(t, filepath.Join(bin, "logquery"), "serve", "--store", "dir:"+t.TempDir(), "--listen", "127.0.0.1:0").URL)
}

// A readyLine is a line of a log with the addresses of a program.
type readyLine struct{ Message, Listen, Admin, URL string }

// started starts a program and returns the line that says that it is ready. The test stops it.
func started(t *testing.T, program string, args ...string) (ready readyLine) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = environment("HOME=" + t.TempDir())
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for lines := json.NewDecoder(stderr); ready.Message != "ready" && ready.URL == ""; {
		if err := lines.Decode(&ready); err != nil {
			t.Fatalf("%s did not start: %v", program, err)
		}
	}
	go io.Copy(io.Discard, stderr)
	return ready
}

// asked returns the names of the metrics of a program.
func asked(t *testing.T, address string) map[string]string {
	t.Helper()
	r, err := http.Get(address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return named(body)
}

// left returns the names of the metrics that a run of retention leaves in its file.
func left(t *testing.T, bin string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	store, err := dirstore.Open(dir, dirstore.Options{})
	if err == nil {
		err = store.Create(t.Context(), "web/2026/11/20/1500/000001.log", nil, storage.Attrs{Metadata: map[string]string{"format": "1", "batch": "x"}})
	}
	config, file := filepath.Join(t.TempDir(), "blobtail.yaml"), filepath.Join(t.TempDir(), "retention.prom")
	if err := errors.Join(err, os.WriteFile(config, []byte("retention: {default: 9999d}"), 0o600)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "retention"), "apply", "--config", config, "--store", "dir:"+dir, "--metrics-file", file)
	cmd.Env = environment()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return named(text)
}

// named returns our metrics in a Prometheus text: their kinds and meanings, as cells of a table.
func named(text []byte) map[string]string {
	names := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^# HELP (blobtail_[a-z_]+) (.*)\n# TYPE \S+ (\w+)$`).FindAllSubmatch(text, -1) {
		names[string(m[1])] = string(m[3]) + " | " + escaped(string(m[2]))
	}
	return names
}

// TestPrintedMetrics ensures that docs/reference/metrics.md has the metrics of all programs, as they
// describe themselves.
func TestPrintedMetrics(t *testing.T) {
	bin := build(t)
	var page strings.Builder
	page.WriteString("# Metrics, by program\n\n" + note("TestPrintedMetrics") + `
What the programs say of their own metrics, beside the usual ` + "`go_*` and `process_*`" + `. When to act on
one: [operate/metrics.md](../operate/metrics.md).
`)
	for _, program := range []struct {
		title   string
		metrics map[string]string
	}{
		{"ingest, /metrics of --admin", ingesterMetrics(t, bin)},
		{"logquery serve, /metrics", serverMetrics(t, bin)},
		{"retention apply, --metrics-file", left(t, bin)},
	} {
		page.WriteString("\n## " + program.title + "\n\n| metric | kind | meaning |\n|---|---|---|\n")
		for _, name := range slices.Sorted(maps.Keys(program.metrics)) {
			page.WriteString("| `" + name + "` | " + program.metrics[name] + " |\n")
		}
	}
	printed(t, "docs/reference/metrics.md", page.String())
}
