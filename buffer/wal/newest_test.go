package wal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"blobtail/buffer/wal"
	"blobtail/storage/fsys/simdisk"
)

// Every start reports the segments that an operator deleted, until the segments behind
// them are deleted. The start that detects them first may end before it can report them.
// A segment that is put back is used.
func TestSegmentsRemovedByHand(t *testing.T) {
	s := newScene(t)
	last := s.last()
	s.remove(last - 1)
	kept := filepath.Join(t.TempDir(), "kept")
	if err := os.Rename(s.path(last), kept); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := open(t, s.dir, wal.Options{}).Close(); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		l := open(t, s.dir, wal.Options{})
		_, bad := replay(t, l)
		if len(bad) != 1 || bad[0].Length != 0 || bad[0].Path != s.path(last) || bad[0].From != wal.Pos(last-1)<<32 || bad[0].To != wal.Pos(last+1)<<32 ||
			!strings.Contains(bad[0].Reason, fmt.Sprintf("segments from %d to %d are missing", last-1, last)) {
			t.Fatalf("found %+v", bad)
		}
		fill(t, l, newRand(1), 1, 10)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(kept, s.path(last)); err != nil {
		t.Fatal(err)
	}
	l := open(t, s.dir, wal.Options{})
	got, _ := replay(t, l)
	found := false
	for _, e := range got {
		found = found || same(e, s.entries[len(s.entries)-1])
	}
	if !found {
		t.Error("the segment that was put back is not used")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s.remove(last)
	l = open(t, s.dir, wal.Options{})
	for l.Front() <= last+1 {
		if err := l.RemoveFront(); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, bad := replay(t, open(t, s.dir, wal.Options{})); len(bad) > 0 {
		t.Errorf("after all of it is gone: %v", bad[0])
	}
}

// Without room the note lags, and everything else works.
func TestNewestWithoutRoom(t *testing.T) {
	disk := simdisk.New(1)
	l := open(t, "/wal", wal.Options{FS: disk, SegmentSize: 1000})
	note := func() byte {
		f, err := disk.OpenFile("/wal/newest", os.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 20)
		if _, err := f.ReadAt(b, 0); err != nil {
			t.Fatal(err)
		}
		return b[12]
	}
	disk.SetFault(func(op simdisk.Op) error {
		if op.Kind == "write" && strings.HasSuffix(op.Path, "newest.tmp") {
			return &simdisk.Partial{N: 7, Err: syscall.ENOSPC}
		}
		return nil
	})
	want := fill(t, l, newRand(1), 20, 400)
	if err := l.Check(); err != nil || note() != 1 || l.Active() < 4 {
		t.Fatalf("noted %d of %d, %v", note(), l.Active(), err)
	}
	disk = disk.PowerCut() // no fault any more: the next start notes its segment
	l = open(t, "/wal", wal.Options{FS: disk, SegmentSize: 1000})
	got, bad := replay(t, l)
	check(t, got, want)
	if len(bad) > 0 || uint32(note()) != l.Active() {
		t.Errorf("damaged: %v; noted %d of %d", bad, note(), l.Active())
	}
}

// The note catches up when the disk has room again.
func TestNewestMadeUpFor(t *testing.T) {
	disk := simdisk.New(1)
	l := open(t, "/wal", wal.Options{FS: disk})
	disk.SetFault(func(op simdisk.Op) error {
		if op.Kind == "rename" {
			return syscall.ENOSPC
		}
		return nil
	})
	fill(t, l, newRand(1), 3, 400)
	if err := l.Roll(); err != nil {
		t.Fatal(err)
	}
	disk.SetFault(nil)
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
	if err := disk.Remove("/wal/00000002.seg"); err != nil {
		t.Fatal(err)
	}
	_, bad := replay(t, open(t, "/wal", wal.Options{FS: disk.Kill()}))
	if len(bad) != 1 || !strings.Contains(bad[0].Reason, "missing") {
		t.Errorf("damaged: %v", bad)
	}
}

// An fsync that fails is final here too.
func TestNewestSyncFails(t *testing.T) {
	disk := simdisk.New(1)
	l := open(t, "/wal", wal.Options{FS: disk})
	fill(t, l, newRand(1), 3, 400)
	disk.SetFault(func(op simdisk.Op) error {
		if op.Kind == "sync" && strings.HasSuffix(op.Path, "newest.tmp") {
			return syscall.EIO
		}
		return nil
	})
	if err := l.Roll(); !errors.Is(err, wal.ErrFailed) || !errors.Is(err, syscall.EIO) {
		t.Errorf("Roll: %v", err)
	}
}
