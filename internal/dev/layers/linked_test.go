package layers

import (
	"os/exec"
	"strings"
	"testing"
)

// TestLinked ensures that the three programs are linked with no package of internal/dev.
func TestLinked(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/ingest", "./cmd/query", "./cmd/retention")
	list.Dir = root
	var stderr strings.Builder
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil || !strings.Contains(string(out), module+"/cmd/ingest\n") {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	for pkg := range strings.Lines(string(out)) {
		if strings.HasPrefix(pkg, module+"/internal/dev/") {
			t.Errorf("a program is linked with %s: move what it needs out of internal/dev", strings.TrimSpace(pkg))
		}
	}
}
