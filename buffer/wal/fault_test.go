package wal_test

import (
	"bytes"
	"errors"
	"strings"
	"syscall"
	"testing"

	"blobtail/buffer/wal"
	"blobtail/internal/dev/testkit"
	"blobtail/storage/fsys"
	"blobtail/storage/fsys/simdisk"
)

// unmeasured is a file system that does not know its free room. A log holds no records in
// memory then.
type unmeasured struct{ fsys.FS }

// The disk is full at any write. That append is refused and leaves nothing. The appends
// before and after it are in the log.
func TestFullDisk(t *testing.T) {
	payload := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 100+i*37%200) }
	for k := 0; k < 60; k += testkit.Share(1, 7) {
		disk := simdisk.New(1)
		l := open(t, "/wal", wal.Options{FS: unmeasured{disk}, SegmentSize: 1000})
		writes := 0
		disk.SetFault(func(op simdisk.Op) error {
			// The note on the newest segment may fail, and yet no append is refused.
			if op.Kind != "write" || !strings.HasSuffix(op.Path, ".seg") {
				return nil
			}
			writes++
			if writes == k+1 {
				return &simdisk.Partial{N: k % 40, Err: syscall.ENOSPC}
			}
			return nil
		})
		var want []entry
		refused := 0
		for i := range 40 {
			pos, err := l.Append(5, payload(i))
			switch {
			case err == nil:
				want = append(want, entry{5, pos, payload(i)})
			case errors.Is(err, syscall.ENOSPC) && !errors.Is(err, wal.ErrFailed):
				refused++
			default:
				t.Fatal(err)
			}
		}
		if hit := writes > k; (refused == 1) != hit {
			t.Fatalf("write %d: %d refused, %d writes", k, refused, writes)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		got, bad := replay(t, open(t, "/wal", wal.Options{FS: disk.PowerCut()}))
		check(t, got, want)
		if len(bad) > 0 {
			t.Fatal(bad[0])
		}
	}
}

// The disk stays full for a while, also while a segment is due to be rolled.
func TestFullDiskForLong(t *testing.T) {
	disk := simdisk.New(1)
	l := open(t, "/wal", wal.Options{FS: disk, SegmentSize: 1000})
	want := fill(t, l, newRand(1), 3, 300)
	disk.SetFault(func(op simdisk.Op) error {
		if op.Kind == "write" || op.Kind == "open" {
			return syscall.ENOSPC
		}
		return nil
	})
	for range 20 {
		if _, err := l.Append(1, make([]byte, 600)); !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	disk.SetFault(nil)
	want = append(want, fill(t, l, newRand(2), 9, 300)...)
	_ = l.Close()
	got, bad := replay(t, open(t, "/wal", wal.Options{FS: disk.PowerCut()}))
	check(t, got, want)
	if len(bad) > 0 {
		t.Fatal(bad[0])
	}
}

var failures = []struct {
	name string
	kind string // the operation that fails
	do   func(l *wal.Log) error
}{
	{"sync", "sync", func(l *wal.Log) error {
		pos, err := l.Append(1, []byte("x"))
		if err != nil {
			return nil
		}
		return l.Sync(pos)
	}},
	{"roll", "sync", func(l *wal.Log) error {
		_, err := l.Append(1, make([]byte, 900))
		return err
	}},
	{"new name", "syncdir", func(l *wal.Log) error {
		_, err := l.Append(1, make([]byte, 900))
		return err
	}},
	{"remove", "syncdir", func(l *wal.Log) error { return l.RemoveFront() }},
	{"close", "sync", func(l *wal.Log) error {
		if _, err := l.Append(1, []byte("x")); err != nil {
			return nil
		}
		return l.Close()
	}},
	{"truncate", "", func(l *wal.Log) error {
		_, err := l.Append(1, []byte("x"))
		return err
	}},
}

// After a failed fsync the log does nothing more, and reports that.
func TestFailedFsyncIsFinal(t *testing.T) {
	for _, c := range failures {
		t.Run(c.name, func(t *testing.T) {
			disk := simdisk.New(1)
			l := open(t, "/wal", wal.Options{FS: unmeasured{disk}, SegmentSize: 1000})
			before := fill(t, l, newRand(1), 8, 300)
			failed := false
			disk.SetFault(func(op simdisk.Op) error {
				if failed && (strings.HasPrefix(op.Kind, "sync") || op.Kind == "write") {
					t.Errorf("%s of %s after the failure", op.Kind, op.Path)
				}
				if op.Kind == c.kind || c.kind == "" && op.Kind == "truncate" {
					failed = true
					return syscall.EIO
				}
				if c.kind == "" && op.Kind == "write" {
					return syscall.ENOSPC
				}
				return nil
			})
			select {
			case <-l.Failed():
				t.Fatal("failed before it did")
			default:
			}
			if err := c.do(l); !errors.Is(err, wal.ErrFailed) || !errors.Is(err, syscall.EIO) {
				t.Fatalf("%v", err)
			}
			<-l.Failed()
			_, aerr := l.Append(1, []byte("y"))
			for _, err := range []error{l.Err(), aerr, l.Sync(before[0].pos), l.RemoveFront()} {
				if !errors.Is(err, wal.ErrFailed) {
					t.Errorf("later: %v", err)
				}
			}
			// Existing records can still be read.
			if err := l.ReadAt(make([]byte, len(before[7].payload)), before[7].pos); err != nil && c.name != "close" {
				t.Error(err)
			}
			_ = l.Close()
			got, _ := replay(t, open(t, "/wal", wal.Options{FS: disk.PowerCut()}))
			kept := 0
			for _, e := range got {
				for _, b := range before {
					if same(e, b) {
						kept++
					}
				}
			}
			if kept != len(before) && c.name != "remove" {
				t.Errorf("%d of %d records that were synced are there", kept, len(before))
			}
		})
	}
}

// An unreadable page costs the records that it touches. The original file is kept: it may
// be readable later.
func TestUnreadablePage(t *testing.T) {
	for _, old := range []bool{true, false} {
		disk := simdisk.New(1)
		l := open(t, "/wal", wal.Options{FS: disk, SegmentSize: 1 << 20})
		var want []entry
		for _, e := range fill(t, l, newRand(1), 200, 1000) {
			start, end := e.pos.Offset()-wal.RecordHeader, int(e.pos.Offset())+len(e.payload)
			if end <= 8192 || start >= 12288 {
				want = append(want, e)
			}
		}
		_ = l.Close()
		if old {
			l = open(t, "/wal", wal.Options{FS: disk})
			fill(t, l, newRand(2), 1, 10)
			_ = l.Close()
		}
		disk.SetFault(func(op simdisk.Op) error {
			if op.Kind == "read" && op.Path == "/wal/00000001.seg" && op.Off < 12288 && op.Off+int64(op.Len) > 8192 {
				return syscall.EIO
			}
			return nil
		})
		l = open(t, "/wal", wal.Options{FS: disk})
		got, bad := replay(t, l)
		if old {
			got = got[:len(got)-1]
			if len(bad) == 1 && !strings.Contains(bad[0].Reason, syscall.EIO.Error()) {
				t.Errorf("reason: %s", bad[0].Reason)
			}
		}
		check(t, got, want)
		if len(bad) != 1 {
			t.Errorf("damaged: %v", bad)
		}
		if info, err := disk.Stat("/wal/quarantine/00000001.seg"); err != nil || info.Size() < 50_000 {
			t.Errorf("quarantine: %v, %v", info, err)
		}
		_ = l.Close()
	}
}

// Open may fail at any operation. The next Open finds every record.
func TestOpenFailsAnywhere(t *testing.T) {
	for k := 0; ; k += testkit.Share(1, 7) {
		disk := simdisk.New(uint64(k))
		l := open(t, "/wal", wal.Options{FS: disk, SegmentSize: 4000})
		want := fill(t, l, newRand(1), 10, 1000)
		disk = disk.Kill()
		hit := false
		disk.SetFault(func(op simdisk.Op) error {
			hit = op.N >= k // and everything after it: the process is dying
			if hit && op.Kind != "read" {
				return syscall.EIO
			}
			return nil
		})
		l, err := wal.Open("/wal", wal.Options{FS: disk})
		if err == nil {
			_ = l.Close()
		} else if !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
		got, bad := replay(t, open(t, "/wal", wal.Options{FS: disk.PowerCut()}))
		check(t, got, want)
		if len(bad) > 0 {
			t.Fatal(bad[0])
		}
		if !hit {
			return
		}
	}
}
