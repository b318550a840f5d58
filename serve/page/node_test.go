package page_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestNode runs the tests of the modules that need no browser.
func TestNode(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("no Node")
	}
	files, _ := filepath.Glob("testdata/*.test.mjs")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	cmd := exec.CommandContext(t.Context(), node, append([]string{"--test"}, files...)...)
	cmd.Env = append(os.Environ(), "NODE_NO_WARNINGS=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
