package tables_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"blobtail/storage"
	"blobtail/storage/dir/tables"
)

// A reader without the right to write next to the database reads it, both at rest and
// while a writer has it open.
func TestReaderWithoutRights(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can be somebody else for a while")
	}
	root := t.TempDir()
	if err := os.Chmod(filepath.Dir(root), 0o755); err != nil {
		t.Fatal(err)
	}
	writer := open(t, root)
	rows := []storage.Row{{Key: "k", Props: map[string]any{"n": int64(1)}}}
	if err := writer.Upsert(t.Context(), "tail", "p", rows); err != nil {
		t.Fatal(err)
	}
	if _, err := writer.Swap(t.Context(), "ingesters", "p", storage.Row{Key: "k"}); err != nil {
		t.Fatal(err)
	}
	readable := func() {
		t.Helper()
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			mode := os.FileMode(0o644)
			if err == nil && d.IsDir() {
				mode = 0o755
			}
			return errors.Join(err, os.Chmod(path, mode))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	asNobody := func(what string, table string, want int) {
		t.Helper()
		reader, err := tables.Open(root)
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close() // the last connection removes the -wal
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread() // and never unlock: the thread ends with this
			if err := syscall.Setfsuid(65534); err != nil {
				t.Error(err)
			}
			if _, err := os.Create(filepath.Join(root, ".tables", "tail", "x")); err == nil {
				t.Error("the test's reader may write")
			}
			n := 0
			for _, err := range reader.Scan(t.Context(), table, "p", "", "", 0) {
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
				n++
			}
			if n != want {
				t.Errorf("%s: %d rows, want %d", what, n, want)
			}
		}()
		<-done
	}
	readable()
	asNobody("beside a writer", "tail", 1)
	asNobody("beside a writer", "ingesters", 1)
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	readable()
	asNobody("at rest", "tail", 1)
	asNobody("at rest", "ingesters", 1)
}
