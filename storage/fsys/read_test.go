package fsys_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blobtail/storage/fsys"
)

// A file of an operator is read whole if it has an end, and its error names it if not.
func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte("listen: :80\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := fsys.Read(path); err != nil || string(text) != "listen: :80\n" {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := fsys.Read("/dev/zero"); text != nil || err == nil || !strings.Contains(err.Error(), "/dev/zero: it has more than 64 MiB") {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if _, err := fsys.Read(path + ".not"); !os.IsNotExist(err) {
		t.Error(err)
	}
}
