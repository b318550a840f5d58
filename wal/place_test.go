package wal_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"blobtail/wal"
)

// Roll ends a segment early, so that it can go; what was in it is replayed as
// ever, and an empty segment is left alone.
func TestRollEarly(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, wal.Options{})
	if err := l.Roll(); err != nil || l.Front() != l.Active() {
		t.Fatalf("an empty segment is rolled: %v, front %d, active %d", err, l.Front(), l.Active())
	}
	want := fill(t, l, newRand(1), 10, 100)
	if err := l.Roll(); err != nil || l.Front() == l.Active() {
		t.Fatalf("not rolled: %v", err)
	}
	want = append(want, fill(t, l, newRand(2), 10, 100)...)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Roll(); !errors.Is(err, wal.ErrClosed) {
		t.Errorf("Roll after Close: %v", err)
	}
	l = open(t, dir, wal.Options{})
	got, damage := replay(t, l)
	if len(got) != len(want) || len(damage) != 0 {
		t.Errorf("%d records of %d, damage %v", len(got), len(want), damage)
	}
	front := l.Front()
	if err := l.RemoveFront(); err != nil || l.Front() == front {
		t.Errorf("the rolled segment stays: %v", err)
	}
}

// A log whose directory is gone says so and takes nothing more.
func TestCheck(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wal")
	l := open(t, dir, wal.Options{})
	fill(t, l, newRand(1), 3, 100)
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := l.Check(); !errors.Is(err, wal.ErrFailed) {
		t.Errorf("Check: %v", err)
	}
	if _, err := l.Append(1, []byte("x")); !errors.Is(err, wal.ErrFailed) {
		t.Errorf("Append: %v", err)
	}
}
