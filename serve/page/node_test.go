package page_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestNode runs the tests of the modules that need no browser.
func TestNode(t *testing.T) { tests(t, ".") }

// tests runs the tests beside the modules of a folder.
func tests(t *testing.T, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "testdata", "*.test.mjs"))
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	node(t, append([]string{"--test"}, files...)...)
}

// node runs Node.
func node(t *testing.T, args ...string) {
	t.Helper()
	path, err := exec.LookPath("node")
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("no Node")
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = append(os.Environ(), "NODE_NO_WARNINGS=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
