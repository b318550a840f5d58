package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Build puts a command of the product into a directory: ingest, logquery or retention, as
// `make build` makes them. root is the root of the repository. BLOBTAIL_BIN names a directory
// that has them already: `make test` builds them once for all tests, and a person may test those
// of another commit. flags are further ones of go build.
func Build(root, dir, name string, flags ...string) error {
	to := filepath.Join(dir, name)
	if given := os.Getenv("BLOBTAIL_BIN"); given != "" && len(flags) == 0 {
		return place(filepath.Join(given, name), to)
	}
	folder := "./cmd/" + name
	if name == "logquery" {
		folder = "./cmd/query"
	}
	args := append([]string{"build", "-trimpath", "-o", to}, flags...)
	cmd := exec.Command("go", append(args, folder)...)
	cmd.Dir, cmd.Env = root, os.Environ()
	if len(flags) == 0 { // the race detector needs cgo
		cmd.Env = append(cmd.Env, "CGO_ENABLED=0")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return nil
}

// place links a file to another name, or copies it where that cannot be. Not by a symbolic link:
// tests run commands as a user without access to the first name.
func place(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}

// Command returns the path of a command of the product, as [Build] makes it.
func Command(t testing.TB, root, name string) string {
	t.Helper()
	dir := t.TempDir()
	if err := Build(root, dir, name); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}
