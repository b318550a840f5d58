package docs

import (
	"bufio"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"testing"

	"blobtail/internal/dev/testkit"
)

// TestServeMetrics ensures that docs/SERVING.md explains each metric of logquery serve, and
// no others.
func TestServeMetrics(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), testkit.Command(t, root, "logquery"), "serve", "--store", "dir:"+t.TempDir(), "--listen", "127.0.0.1:0")
	cmd.Env = environment("HOME=" + t.TempDir())
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(stderr).ReadBytes('\n')
	var said struct{ URL string }
	if err != nil || json.Unmarshal(line, &said) != nil {
		t.Fatalf("%v: %s", err, line)
	}
	answer, err := http.Get(said.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	served := named(text)
	explained := map[string]bool{}
	for _, name := range regexp.MustCompile("blobtail_serve_[a-z_]+").FindAllString(read(t, "docs/SERVING.md"), -1) {
		explained[name] = true
	}
	if len(served) < 10 || !maps.Equal(served, explained) {
		t.Errorf("served:    %q\nexplained: %q", slices.Sorted(maps.Keys(served)), slices.Sorted(maps.Keys(explained)))
	}
}
