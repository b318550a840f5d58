package wal_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"blobtail/buffer/wal"
	"blobtail/storage/fsys/simdisk"
)

// written counts the writes to segments that do causes.
func written(disk *simdisk.Disk, do func()) (n int) {
	disk.SetFault(func(op simdisk.Op) error {
		if op.Kind == "write" && strings.HasSuffix(op.Path, ".seg") {
			n++
		}
		return nil
	})
	do()
	disk.SetFault(nil)
	return n
}

// add appends records of a length.
func add(t *testing.T, l *wal.Log, n, length int) (all []entry) {
	t.Helper()
	for i := range n {
		e := entry{typ: 1, payload: random(newRand(uint64(i)), length)}
		var err error
		if e.pos, err = l.Append(e.typ, e.payload); err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// Short records are written together, at the latest when they are needed: by an fsync, a
// read, a check, a longer record, a reserved one, or when they are many.
func TestHeldRecords(t *testing.T) {
	for _, c := range []struct {
		what   string
		do     func(l *wal.Log, last entry) error
		writes int
	}{
		{"nothing", func(*wal.Log, entry) error { return nil }, 0},
		{"sync", func(l *wal.Log, last entry) error { return l.Sync(last.pos) }, 1},
		{"read", func(l *wal.Log, last entry) error {
			got := make([]byte, len(last.payload))
			err := l.ReadAt(got, last.pos)
			if err == nil && string(got) != string(last.payload) {
				err = errors.New("other bytes are read")
			}
			return err
		}, 1},
		{"check", func(l *wal.Log, _ entry) error { return l.Check() }, 1},
		{"roll", func(l *wal.Log, _ entry) error { return l.Roll() }, 2}, // and a header
		{"close", func(l *wal.Log, _ entry) error { return l.Close() }, 1},
		{"long", func(l *wal.Log, _ entry) error { _, err := l.Append(1, make([]byte, 100_000)); return err }, 3},
		{"reserved", func(l *wal.Log, _ entry) error { _, err := l.AppendReserved(1, make([]byte, 100)); return err }, 2},
		{"many", func(l *wal.Log, _ entry) error { add(t, l, 20, 50_000); return nil }, 1}, // the rest is held
	} {
		disk := simdisk.New(1)
		l := open(t, "/wal", wal.Options{FS: disk})
		checked(t, l)
		var err error
		if n := written(disk, func() { err = c.do(l, add(t, l, 7, 1001)[6]) }); n != c.writes || err != nil {
			t.Errorf("%s: %d writes, want %d; %v", c.what, n, c.writes, err)
		}
	}
}

// Other programs fill the disk while records are held. The ballast makes room for them,
// and later records are refused. Without ballast the log fails, and its start finds every
// record that was synced.
func TestHeldOnFullDisk(t *testing.T) {
	for _, ballast := range []bool{true, false} {
		disk := simdisk.New(1)
		o := wal.Options{FS: disk, SegmentSize: 100_000}
		if !ballast {
			o.Reserve = -1
		}
		l := open(t, "/wal", o)
		checked(t, l)
		want := add(t, l, 3, 1000)
		if err := l.Sync(want[2].pos); err != nil {
			t.Fatal(err)
		}
		disk.SetRoom(1 << 30)
		more := add(t, l, 5, 1000)
		free, err := disk.Free("/")
		if err != nil {
			t.Fatal(err)
		}
		disk.SetRoom(1<<30 - free)
		switch err := l.Sync(more[4].pos); {
		case ballast && err != nil:
			t.Errorf("with ballast: %v", err)
		case !ballast && (!errors.Is(err, wal.ErrFailed) || !errors.Is(err, syscall.ENOSPC)):
			t.Errorf("without ballast: %v", err)
		}
		if _, err := l.Append(1, make([]byte, 1000)); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("one more record: %v", err)
		}
		if ballast {
			want = append(want, more...)
		}
		_ = l.Close()
		disk = disk.PowerCut()
		disk.SetRoom(0)
		got, bad := replay(t, open(t, "/wal", wal.Options{FS: disk}))
		if check(t, got[:min(len(got), len(want))], want); len(bad) > 0 {
			t.Error(bad[0])
		}
	}
}
