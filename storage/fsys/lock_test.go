package fsys_test

import (
	"errors"
	"testing"

	"blobtail/storage/fsys"
)

// A lock of the host belongs to one caller, also within a process.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	l, err := fsys.OS().Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fsys.OS().Lock(dir); !errors.Is(err, fsys.ErrLocked) {
		t.Errorf("second Lock: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err = fsys.OS().Lock(dir); err != nil {
		t.Fatalf("Lock after Close: %v", err)
	}
	l.Close()
}
