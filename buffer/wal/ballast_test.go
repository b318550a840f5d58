package wal_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/buffer/wal"
	"blobtail/storage/fsys/simdisk"
)

func checked(t testing.TB, l *wal.Log) {
	t.Helper()
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
}

// Open and Check make the ballast in steps, and its blocks are allocated on disk. It does
// not count in the log's size. The next start continues with the file.
func TestBallast(t *testing.T) {
	const mib = 1 << 20
	dir := t.TempDir()
	path := filepath.Join(dir, "ballast")
	size := func() int64 {
		info, err := os.Stat(path)
		if err != nil {
			return -1
		}
		return info.Size()
	}
	l := open(t, dir, wal.Options{Reserve: 20 * mib})
	before := l.Size()
	for i, want := range []int64{8 * mib, 16 * mib, 20 * mib, 20 * mib} {
		if got := size(); got != want {
			t.Errorf("after %d checks: %d bytes", i, got)
		}
		checked(t, l)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Blocks*512 < info.Size() {
		t.Errorf("%d blocks for %d bytes", s.Blocks, info.Size())
	}
	if l.Size() != before {
		t.Errorf("the log has %d bytes, before %d", l.Size(), before)
	}
	_ = l.Close()
	checked(t, l)
	for _, c := range []struct {
		what  string
		cut   int64
		o     wal.Options
		opens int64
		check int64
	}{
		{"half of it was lost", 10 * mib, wal.Options{Reserve: 12 * mib}, 10 * mib, 12 * mib},
		{"less is wanted", 12 * mib, wal.Options{SegmentSize: 1 * mib}, 1 * mib, 1 * mib},
		{"none is wanted", 1 * mib, wal.Options{Reserve: -1}, -1, -1},
		{"none is there", -1, wal.Options{Reserve: -1}, -1, -1},
	} {
		if c.cut >= 0 {
			if err := os.Truncate(path, c.cut); err != nil {
				t.Fatal(err)
			}
		}
		l := open(t, dir, c.o)
		if got := size(); got != c.opens {
			t.Errorf("%s: opened with %d bytes", c.what, got)
		}
		checked(t, l)
		if got := size(); got != c.check {
			t.Errorf("%s: %d bytes after a check", c.what, got)
		}
		_ = l.Close()
	}
}

// Other programs fill and empty the disk. Reserved records are always accepted. Other
// records are accepted while there is room, and again when room returns. A start succeeds
// at any time.
func TestBallastOnFullDisk(t *testing.T) {
	disk := simdisk.New(1)
	if err := disk.Mkdir("/other", 0o700); err != nil {
		t.Fatal(err)
	}
	disk.SetRoom(100_000)
	o := wal.Options{FS: disk, SegmentSize: 4000}
	s := &spell{t: t, dir: "/wal", o: o, stat: func() int64 {
		info, err := disk.Stat("/wal/ballast")
		if err != nil {
			return -1
		}
		return info.Size()
	}}
	s.others = func(full bool) {
		f, err := disk.OpenFile("/other/file", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if !full {
			return
		}
		free, err := disk.Free("/")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(make([]byte, free), 0); err != nil {
			t.Fatal(err)
		}
	}
	s.run(60, 4000, 900)
}

// The disk is full from any write on, until the ballast is removed. A start and the
// reserved records succeed, and no record is missing afterwards.
func TestFullDiskAnywhere(t *testing.T) {
	states := 0
	for k, hit := 0, true; hit; k++ {
		disk := simdisk.New(uint64(k))
		l := open(t, "/wal", wal.Options{FS: disk, SegmentSize: 1000})
		checked(t, l)
		want := fill(t, l, newRand(1), 10, 300)
		disk.SetFault(func(op simdisk.Op) error { // leaves a torn tail
			if op.Kind == "write" {
				return &simdisk.Partial{N: 10, Err: syscall.EIO}
			}
			return syscall.EIO
		})
		if _, err := l.AppendReserved(1, []byte("torn")); !errors.Is(err, wal.ErrFailed) {
			t.Fatal(err)
		}
		disk = disk.Fork(simdisk.Killed, 0)
		hit = false
		writes := 0
		disk.SetFault(func(op simdisk.Op) error {
			if op.Kind == "remove" && op.Path == "/wal/ballast" {
				writes = -1 << 20
			}
			if op.Kind == "write" || op.Kind == "mkdir" {
				writes++
			}
			if writes > k && op.Kind == "write" {
				hit = true
				return &simdisk.Partial{N: k % 40, Err: syscall.ENOSPC}
			}
			return nil
		})
		l, err := wal.Open("/wal", wal.Options{FS: disk, SegmentSize: 1000})
		if err != nil {
			t.Fatalf("write %d: %v", k, err)
		}
		for i := range 10 {
			e := entry{typ: 2, payload: make([]byte, 250)}
			if e.pos, err = l.AppendReserved(e.typ, e.payload); err != nil {
				t.Fatalf("write %d, record %d: %v", k, i, err)
			}
			want = append(want, e)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l = open(t, "/wal", wal.Options{FS: disk.PowerCut(), SegmentSize: 1000})
		got, bad := replay(t, l)
		check(t, got, want)
		if len(bad) > 0 {
			t.Fatalf("write %d: damage %v", k, bad)
		}
		states++
	}
	t.Logf("full at each of %d writes", states)
}

// If the free room is unknown, ballast is tried once a minute, and an incomplete step is
// not kept.
func TestBallastWithoutMeasure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := simdisk.New(1)
		tries := 0
		full := true
		disk.SetFault(func(op simdisk.Op) error {
			if op.Path == "/wal/ballast" && op.Kind == "open" {
				tries++
			}
			if op.Path == "/wal/ballast" && op.Kind == "write" && full {
				return &simdisk.Partial{N: 100, Err: syscall.ENOSPC}
			}
			return nil
		})
		l := open(t, "/wal", wal.Options{FS: disk, SegmentSize: 5000})
		for range 300 {
			checked(t, l)
			if info, err := disk.Stat("/wal/ballast"); err != nil || info.Size() > 0 {
				t.Fatalf("left over: %v, %v", info, err)
			}
			if _, err := l.Append(1, nil); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("without ballast: %v", err)
			}
			time.Sleep(time.Second)
		}
		if tries != 5 {
			t.Errorf("%d tries in 5 minutes", tries)
		}
		full = false
		time.Sleep(time.Minute)
		checked(t, l)
		if info, err := disk.Stat("/wal/ballast"); err != nil || info.Size() != 5000 {
			t.Errorf("not made: %v, %v", info, err)
		}
	})
}

// Ballast that cannot be removed does not help, and does no harm. A log that fails during
// the removal has failed.
func TestBallastStays(t *testing.T) {
	for kind, want := range map[string]error{"remove": syscall.ENOSPC, "syncdir": wal.ErrFailed} {
		disk := simdisk.New(1)
		l := open(t, "/wal", wal.Options{FS: disk, SegmentSize: 5000})
		checked(t, l)
		disk.SetFault(func(op simdisk.Op) error {
			switch {
			case op.Kind == kind && strings.HasPrefix("/wal/ballast", op.Path):
				return syscall.EIO
			case op.Kind == "write":
				return syscall.ENOSPC
			}
			return nil
		})
		_, err := l.AppendReserved(1, []byte("x"))
		if err == nil {
			t.Fatalf("%s: appended", kind)
		}
		if _, err = l.AppendReserved(1, []byte("x")); !errors.Is(err, want) {
			t.Errorf("%s: %v", kind, err)
		}
		if kind == "remove" {
			disk.SetFault(nil)
			fill(t, l, newRand(1), 3, 100)
		}
	}
}

// A start does not know of ballast that was removed before: it makes new ballast of half
// the remaining room. The log's own records always find room. Other records are accepted
// only while there is ballast, and again when the disk has room.
func TestBallastAcrossStarts(t *testing.T) {
	for _, crash := range []simdisk.Crash{simdisk.Killed, simdisk.None} {
		disk := simdisk.New(1)
		room := int64(20_000)
		disk.SetRoom(room)
		o := wal.Options{FS: disk, SegmentSize: 4000}
		l := open(t, "/wal", o)
		want := fill(t, l, newRand(1), 4, 300)
		add := func(do func(byte, []byte) (wal.Pos, error)) error {
			e := entry{typ: 1, payload: []byte("x")}
			var err error
			if e.pos, err = do(e.typ, e.payload); err == nil {
				want = append(want, e)
				err = l.Sync(e.pos)
			}
			return err
		}
		starts := 0
		for taken := true; taken; starts++ {
			free, err := disk.Free("/")
			if err != nil {
				t.Fatal(err)
			}
			room -= free // other programs use it
			disk.SetRoom(room)
			if err := l.Roll(); err != nil {
				t.Fatalf("%v %d: roll: %v", crash, starts, err)
			}
			disk = disk.Fork(crash, 1)
			o.FS = disk
			l = open(t, "/wal", o)
			info, err := disk.Stat("/wal/ballast")
			if taken = err == nil && info.Size() >= 4000/16; taken {
				err = add(l.Append)
			} else if err = add(l.Append); errors.Is(err, syscall.ENOSPC) {
				err = nil
			}
			if err = errors.Join(err, add(l.AppendReserved), add(l.AppendReserved)); err != nil {
				t.Fatalf("%v %d, taken %v: %v", crash, starts, taken, err)
			}
		}
		if starts < 3 {
			t.Errorf("%v: refused at start %d", crash, starts)
		}
		disk.SetRoom(40_000)
		l = open(t, "/wal", wal.Options{FS: disk.Fork(crash, 1), SegmentSize: 4000})
		got, bad := replay(t, l)
		check(t, got, want)
		if len(bad) > 0 {
			t.Error(bad[0])
		}
		if err := add(l.Append); err != nil {
			t.Errorf("%v: with room: %v", crash, err)
		}
	}
}

// Concurrent appends, checks and removals lose nothing on a disk that is sometimes full.
func TestBallastInUse(t *testing.T) {
	disk := simdisk.New(1)
	disk.SetRoom(26_000) // from the start: a disk that shrinks is not full but broken
	l := open(t, "/wal", wal.Options{FS: disk, SegmentSize: 4000})
	checked(t, l)
	var workers sync.WaitGroup
	var last [3]wal.Pos
	for w := range last {
		rng := newRand(uint64(w))
		workers.Go(func() {
			for i := range 300 {
				do := l.AppendReserved
				if w == 0 {
					do = l.Append
				}
				pos, err := do(byte(w+1), random(rng, rng.IntN(200)))
				if err == nil {
					last[w] = pos
				}
				if err == nil && i%10 == 0 {
					err = l.Sync(pos)
				}
				if err != nil && !errors.Is(err, syscall.ENOSPC) {
					t.Error(err)
					return
				}
			}
		})
	}
	workers.Go(func() {
		for i := range 60 {
			disk.SetRoom(int64(6000 + 20_000*(i%2)))
			if err := errors.Join(l.Check(), l.Check()); err != nil {
				t.Error(err)
			}
			for l.Active()-l.Front() > 1 {
				if err := l.RemoveFront(); err != nil {
					t.Error(err)
				}
			}
		}
		disk.SetRoom(0)
	})
	workers.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	got, bad := replay(t, open(t, "/wal", wal.Options{FS: disk.PowerCut(), SegmentSize: 4000}))
	if len(bad) > 0 || len(got) == 0 || got[len(got)-1].pos != max(last[0], last[1], last[2]) {
		t.Errorf("%d records, damage %v", len(got), bad)
	}
}
