package deploy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

type dashboard struct {
	UID        string
	Panels     []panel
	Templating struct {
		List []struct {
			Name, Type string
			Query      json.RawMessage
		}
	}
}

type panel struct {
	Title   string
	Targets []struct {
		Expr       string
		Datasource struct{ Type string }
	}
}

// read reads a dashboard, and returns the names of its variables beside those of Grafana.
func (d *dashboard) read(t *testing.T, file string) map[string]bool {
	t.Helper()
	if err := json.Unmarshal([]byte(read(t, file)), d); err != nil {
		t.Fatal(err)
	}
	if len(d.Panels) < 10 {
		t.Errorf("%s has %d panels", file, len(d.Panels))
	}
	variables := map[string]bool{"__rate_interval": true, "__auto": true}
	for _, v := range d.Templating.List {
		variables[v.Name] = true
	}
	return variables
}

// TestDashboard ensures that expressions name metrics and labels that an ingester serves.
// internal/dev/tools/promcheck parses them.
func TestDashboard(t *testing.T) {
	var d dashboard
	variables, served := d.read(t, "grafana/dashboard.json"), served(t)
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			checkQuery(t, v.Name, string(v.Query), variables, served)
		}
	}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			if !strings.Contains(target.Expr, `instance=~"$instance"`) {
				t.Errorf("%s: the variable has no effect on %s", p.Title, target.Expr)
			}
			checkQuery(t, p.Title, target.Expr, variables, served)
		}
	}
}

// checkQuery ensures that a query uses variables and metrics that exist, and selects the
// metrics by labels that they have.
func checkQuery(t *testing.T, title, query string, variables map[string]bool, served map[string][]string) {
	t.Helper()
	query = strings.ReplaceAll(query, `\"`, `"`)
	for _, m := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(query, -1) {
		if !variables[m[1]] {
			t.Errorf("%s: there is no variable %s", title, m[1])
		}
	}
	metrics := regexp.MustCompile(`\b((?:blobtail|process|go)_[a-z_]+)(?:\{([^}]*)\})?`).FindAllStringSubmatch(query, -1)
	if len(metrics) == 0 {
		t.Errorf("%s asks for nothing", title)
	}
	for _, m := range metrics {
		labels, ok := served[m[1]]
		if !ok {
			t.Errorf("%s: no ingester serves %s", title, m[1])
		}
		for _, label := range regexp.MustCompile(`(\w+)(?:=~|!~|!=|=)"`).FindAllStringSubmatch(m[2], -1) {
			if label[1] != "instance" && !slices.Contains(labels, label[1]) {
				t.Errorf("%s: %s has no label %s", title, m[1], label[1])
			}
		}
	}
}

// served returns the metrics of a running ingester with their labels.
func served(t *testing.T) map[string][]string {
	t.Helper()
	tmp := t.TempDir()
	conf := filepath.Join(tmp, "blobtail.yaml")
	if err := os.WriteFile(conf, []byte("counters: [{name: a, service: web}]\nrules: [{name: b, service: noise, drop: true}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(ingester(t), "--config", conf, "--store", "dir:"+filepath.Join(tmp, "store"), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	cmd.Env = []string{} // no setting of this machine's
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	var ready struct{ Message, Listen, Admin string }
	log := bufio.NewReader(stderr)
	for ready.Message != "ready" {
		line, err := log.ReadBytes('\n')
		if err != nil {
			t.Fatalf("the ingester did not start: %v", err)
		}
		_ = json.Unmarshal(line, &ready)
	}
	go func() { _, _ = io.Copy(io.Discard, log) }()
	ask := func(ask func() (*http.Response, error)) []byte {
		answer, err := ask()
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%d %s, %v", answer.StatusCode, text, err)
		}
		return text
	}
	ask(func() (*http.Response, error) {
		return http.Post("http://"+ready.Listen+"/ingest/web", "text/plain", strings.NewReader("hello"))
	})
	return labelsOf(ask(func() (*http.Response, error) { return http.Get("http://" + ready.Admin + "/metrics") }))
}

// labelsOf returns the labels of each metric of a page.
func labelsOf(text []byte) map[string][]string {
	names := map[string][]string{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z_]+)(?:\{([^}]*)\})? `).FindAllSubmatch(text, -1) {
		labels := names[string(m[1])]
		for pair := range bytes.SplitSeq(m[2], []byte(",")) {
			label, _, _ := bytes.Cut(pair, []byte("="))
			labels = append(labels, string(label))
		}
		names[string(m[1])] = labels
	}
	return names
}
