//go:build linux

package fsys_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blobtail/storage/fsys"
)

// A directory for temporary files that cannot be used is named with TMPDIR and the remedy.
func TestTemp(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ dir, want string }{
		{dir, ""},
		{dir + "/missing", "no temporary file can be written to " + dir + "/missing: no such file or directory; make it, or set TMPDIR to another directory"},
		{file, "no temporary file can be written to " + file + ": not a directory; make it writable for this user, or set TMPDIR"},
		{"/proc", "no temporary file can be written to /proc: "},
	} {
		t.Setenv("TMPDIR", c.dir)
		got, err := fsys.Temp()
		if got != c.dir || (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "TMPDIR")) {
			t.Errorf("%s: %v, want %q", got, err, c.want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}
