package wal_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"blobtail/buffer/wal"
	"blobtail/storage/fsys/simdisk"
)

// Roll ends a segment early, so that it can be removed. Its records are replayed as
// usual, and an empty segment is left alone.
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

// A log without its directory reports that and accepts nothing more.
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

// swap puts a copy of a directory in its place, as `mv wal old; cp -a old wal` does.
func swap(t *testing.T, dir string) {
	t.Helper()
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(dir+".old")); err != nil {
		t.Fatal(err)
	}
}

// Each case replaces a part of the log under a running process, and has the name that the
// error contains.
var replacements = []struct {
	name, says string
	do         func(t *testing.T, dir string)
}{
	{"the directory by a copy", "wal was replaced", swap},
	{"the directory by an empty one", "wal was replaced", func(t *testing.T, dir string) {
		if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
			t.Fatal(err)
		}
	}},
	{"the directory by a file", "wal was replaced", func(t *testing.T, dir string) {
		if err := errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}},
	{"the directory by nothing", "wal was removed", func(t *testing.T, dir string) {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}},
	{"a directory above it by a file", "wal was removed", func(t *testing.T, dir string) {
		above := filepath.Dir(dir)
		if err := errors.Join(os.RemoveAll(above), os.WriteFile(above, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}},
	{"the active segment by a copy", "00000001.seg was replaced", func(t *testing.T, dir string) {
		path := filepath.Join(dir, "00000001.seg")
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path+".copy", b, 0o600)
		}
		if err == nil {
			err = os.Rename(path+".copy", path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}},
	{"the active segment by nothing", "00000001.seg was removed", func(t *testing.T, dir string) {
		if err := os.Remove(filepath.Join(dir, "00000001.seg")); err != nil {
			t.Fatal(err)
		}
	}},
}

// No record is durable if no start would find it. Then sync and roll both fail, and the
// log has failed.
func TestReplaced(t *testing.T) {
	acts := map[string]func(l *wal.Log) error{
		"sync": func(l *wal.Log) error {
			pos, err := l.Append(1, []byte("x"))
			if err != nil {
				return err
			}
			return l.Sync(pos)
		},
		"roll":  func(l *wal.Log) error { return l.Roll() },
		"check": func(l *wal.Log) error { return l.Check() },
		"close": func(l *wal.Log) error {
			if _, err := l.Append(1, []byte("x")); err != nil {
				return err
			}
			return l.Close()
		},
	}
	for _, r := range replacements {
		for act, do := range acts {
			t.Run(r.name+", "+act, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "above", "wal")
				l := open(t, dir, wal.Options{})
				fill(t, l, newRand(1), 3, 100)
				r.do(t, dir)
				if err := do(l); !errors.Is(err, wal.ErrFailed) || !strings.Contains(err.Error(), r.says) {
					t.Errorf("%v; want it to say %q", err, r.says)
				}
				select {
				case <-l.Failed():
				default:
					t.Error("the log goes on")
				}
				if _, err := l.Append(1, []byte("x")); !errors.Is(err, wal.ErrFailed) {
					t.Errorf("Append: %v", err)
				}
			})
		}
	}
}

// The same on a simulated disk, where tests of crashes run.
func TestReplacedOnSimdisk(t *testing.T) {
	disk := simdisk.New(1)
	l := open(t, "/wal", wal.Options{FS: disk})
	fill(t, l, newRand(1), 3, 100)
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(disk.Rename("/wal", "/old"), disk.Mkdir("/wal", 0o700), disk.Link("/old/00000001.seg", "/wal/00000001.seg")); err != nil {
		t.Fatal(err)
	}
	if err := l.Check(); !errors.Is(err, wal.ErrFailed) {
		t.Errorf("Check: %v", err)
	}
}

// A name that cannot be checked now proves nothing: that sync fails, and the next one
// succeeds.
func TestNameCannotBeLookedAt(t *testing.T) {
	disk := simdisk.New(1)
	l := open(t, "/wal", wal.Options{FS: disk})
	pos, err := l.Append(1, []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	disk.SetFault(func(op simdisk.Op) error {
		if op.Kind == "stat" {
			return syscall.EIO
		}
		return nil
	})
	if err := l.Sync(pos); !errors.Is(err, syscall.EIO) || errors.Is(err, wal.ErrFailed) {
		t.Errorf("Sync: %v", err)
	}
	if err := l.Check(); err != nil {
		t.Errorf("Check: %v", err)
	}
	disk.SetFault(nil)
	if err := l.Sync(pos); err != nil {
		t.Error(err)
	}
}

// Segments that are rolled and removed during other syncs do not count as replaced.
func TestRollsWhileSyncing(t *testing.T) {
	l := open(t, t.TempDir(), wal.Options{SegmentSize: 300})
	var writers, others sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		writers.Go(func() {
			for range 80 {
				pos, err := l.Append(1, make([]byte, 100))
				if err == nil {
					err = l.Sync(pos)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for _, do := range []func() error{l.Check, func() error {
		if err := l.RemoveFront(); !errors.Is(err, wal.ErrActive) {
			return err
		}
		return nil
	}} {
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := do(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	others.Wait()
}
