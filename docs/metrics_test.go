package docs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// TestPrintedMetrics ensures that docs/reference/metrics.md has each blobtail metric of a running ingester,
// of logquery serve, and of a run of retention, and that pages name no other.
func TestPrintedMetrics(t *testing.T) {
	bin := build(t)
	page := bytes.NewBufferString("# Metrics, by program\n\n" + note("TestPrintedMetrics") + `
What the programs say of their own metrics, with the labels of each, and the
[alerts](../../deploy/prometheus/alerts.yaml) that ask for it. How to scrape them, and which to watch:
[operate/metrics.md](../operate/metrics.md).
`)
	alerts, served := alertsByMetric(t), map[string]bool{}
	for _, program := range []struct{ title, text string }{
		{"ingest, /metrics of --admin", ingesterMetrics(t, bin)},
		{"logquery serve, /metrics", serverMetrics(t, bin)},
		{"retention apply, --metrics-file", left(t, bin)},
	} {
		all := families(program.text)
		if len(all) < 5 {
			t.Errorf("%s: found %d metrics", program.title, len(all))
		}
		fmt.Fprintf(page, "\n## %s\n\n| metric | kind | labels | meaning | alerts |\n|---|---|---|---|---|\n", program.title)
		for _, f := range all {
			served[f.name] = true
			fmt.Fprintf(page, "| `%s` | %s | %s | %s | %s |\n",
				f.name, f.kind, f.labels, escaped(f.help), strings.Join(alerts[f.name], ", "))
		}
	}
	printed(t, "docs/reference/metrics.md", page.String())
	for _, page := range pages(t) {
		for name := range namedMetrics(read(t, page)) {
			if !served[name] {
				t.Errorf("%s names %s, which is not served", page, name)
			}
		}
	}
}

// namedMetrics returns the metrics that a text names.
func namedMetrics(text string) map[string]bool {
	names := map[string]bool{}
	for _, name := range regexp.MustCompile(`\bblobtail_[a-z_]+[a-z]\b`).FindAllString(text, -1) {
		names[regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")] = true
	}
	return names
}

// alertsByMetric returns the alerts of deploy/prometheus that ask for each metric.
func alertsByMetric(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, rule := range strings.Split(read(t, "deploy/prometheus/alerts.yaml"), "\n      - ") {
		name, is := strings.CutPrefix(rule, "alert: ")
		_, asked, has := strings.Cut(name, "expr: ")
		if name, _, _ = strings.Cut(name, "\n"); !is || !has {
			continue
		}
		asked, _, _ = strings.Cut(asked, "        labels:")
		for metric := range namedMetrics(asked) {
			found[metric] = append(found[metric], "`"+name+"`")
		}
	}
	return found
}

// A family is a metric as a program serves it.
type family struct{ name, kind, help, labels string }

// closed are the labels whose values are all served from the start.
var closed = []string{"reason", "result", "how", "form", "kind"}

// families returns our metrics in a Prometheus text, in order of their names.
func families(text string) (all []family) {
	for _, part := range strings.Split("\n"+text, "\n# HELP ")[1:] {
		head, series, _ := strings.Cut(part, "\n# TYPE ")
		f := family{kind: strings.Fields(series)[1]}
		if f.name, f.help, _ = strings.Cut(head, " "); !strings.HasPrefix(f.name, "blobtail_") {
			continue
		}
		values := map[string]map[string]bool{}
		for _, m := range regexp.MustCompile(`(\w+)="([^"]*)"`).FindAllStringSubmatch(series, -1) {
			if m[1] != "le" {
				if values[m[1]] == nil {
					values[m[1]] = map[string]bool{}
				}
				values[m[1]][m[2]] = true
			}
		}
		var labels []string
		for _, label := range slices.Sorted(maps.Keys(values)) {
			of := ""
			if slices.Contains(closed, label) {
				of = ": " + strings.Join(slices.Sorted(maps.Keys(values[label])), ", ")
			}
			labels = append(labels, "`"+label+"`"+of)
		}
		f.labels = strings.Join(labels, "; ")
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b family) int { return strings.Compare(a.name, b.name) })
	return all
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

// ingesterMetrics asks an ingester that has answered a request for its metrics.
func ingesterMetrics(t *testing.T, bin string) string {
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

// serverMetrics asks logquery serve, which has answered a request, for its metrics.
func serverMetrics(t *testing.T, bin string) string {
	t.Helper()
	url := started(t, filepath.Join(bin, "logquery"), "serve", "--store", "dir:"+t.TempDir(), "--listen", "127.0.0.1:0").URL
	r, err := http.Get(url + "/api/v1/services")
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	return asked(t, url)
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

// asked returns the metrics of a program.
func asked(t *testing.T, address string) string {
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
	return string(body)
}

// left returns the metrics that a run of retention leaves in its file.
func left(t *testing.T, bin string) string {
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
	return string(text)
}
