package lint

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// command returns the path of a program: that of BLOBTAIL_BIN, else a new one.
func command(t *testing.T, name, folder string) string {
	t.Helper()
	if made := os.Getenv("BLOBTAIL_BIN"); made != "" {
		return filepath.Join(made, name)
	}
	file := filepath.Join(t.TempDir(), name)
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", file, "./cmd/"+folder)
	build.Dir, build.Env = filepath.Join("..", ".."), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return file
}

// page starts a program, waits for a line of its log in which address finds where its metrics are,
// and returns that page.
func page(t *testing.T, program string, args []string, address func(line map[string]any) string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env, cmd.Dir = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, t.TempDir()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	log := ""
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		log += lines.Text() + "\n"
		var line map[string]any
		if json.Unmarshal(lines.Bytes(), &line) != nil || address(line) == "" {
			continue
		}
		go io.Copy(io.Discard, stderr)
		answer, err := http.Get(address(line) + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	t.Fatalf("%s has ended:\n%s", program, log)
	return nil
}

// complain returns what `promtool check metrics` says about a page.
func complain(t *testing.T, text []byte) (all []string) {
	t.Helper()
	problems, err := promlint.New(bytes.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		all = append(all, p.Metric+": "+p.Text)
	}
	return all
}

// TestExposition ensures that `promtool check metrics` has nothing to say about the metrics of an
// ingester, of logquery serve and of the job of retention.
func TestExposition(t *testing.T) {
	folder := t.TempDir()
	store := "dir:" + filepath.Join(folder, "store")
	conf := filepath.Join(folder, "blobtail.yaml")
	// Each part has metrics, also if nothing answers it.
	if err := os.WriteFile(conf, []byte("counters: [{name: a, service: a}]\nrules: [{name: a, service: a, drop: true}]\nretention: {default: 9999d}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ingester := page(t, command(t, "ingest", "ingest"), []string{"--config", conf, "--store", store, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0",
		"--wal", filepath.Join(folder, "wal"), "--nats", "nats://127.0.0.1:1", "--syslog", "127.0.0.1:0"}, func(line map[string]any) string {
		if admin, ok := line["admin"].(string); ok && line["message"] == "ready" {
			return "http://" + admin
		}
		return ""
	})
	server := page(t, command(t, "logquery", "query"), []string{"serve", "--store", store, "--listen", "127.0.0.1:0"}, func(line map[string]any) string {
		url, _ := line["url"].(string)
		return url
	})
	left := filepath.Join(folder, "retention.prom")
	if out, err := exec.CommandContext(t.Context(), command(t, "retention", "retention"), "apply", "--config", conf, "--store", store, "--metrics-file", left).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	job, err := os.ReadFile(left)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text []byte
		has  string
	}{"ingest": {ingester, "blobtail_nats_ready"}, "logquery serve": {server, "blobtail_serve_queries"}, "retention": {job, "blobtail_retention_last_run_exit_code"}} {
		if !bytes.Contains(c.text, []byte(c.has)) {
			t.Errorf("%s lacks %s: this is not all of it", name, c.has)
		}
		for _, problem := range complain(t, c.text) {
			t.Errorf("%s: %s", name, problem)
		}
	}
}
