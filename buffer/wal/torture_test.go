package wal_test

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"blobtail/buffer/wal"
	"blobtail/internal/dev/testkit"
	"blobtail/storage/fsys"
)

// spell is a log on a disk that is full now and then.
type spell struct {
	t      *testing.T
	dir    string
	o      wal.Options
	others func(full bool) // uses all free room, or frees it
	stat   func() int64    // the length of the ballast

	l     *wal.Log
	rng   *rand.Rand
	want  []entry
	spent int // how often the ballast was removed
}

// run fills the disk the given number of times. most is the length of the longest record.
func (s *spell) run(times int, reserve int64, most int) {
	t := s.t
	s.l, s.rng = open(t, s.dir, s.o), newRand(7)
	for i := range times {
		checked(t, s.l)
		if got := s.stat(); got != reserve {
			t.Fatalf("time %d: %d bytes of ballast", i, got)
		}
		for range 5 {
			if err := s.add(s.l.Append, most); err != nil {
				t.Fatalf("time %d, with room: %v", i, err)
			}
		}
		s.full(i, int(reserve), most)
		s.others(false)
		if err := s.l.Roll(); err != nil {
			t.Fatal(err)
		}
		for s.l.Front() < s.l.Active() && i%5 == 3 {
			if err := s.l.RemoveFront(); err != nil {
				t.Fatal(err)
			}
		}
		for len(s.want) > 0 && s.want[0].pos.Segment() < s.l.Front() {
			s.want = s.want[1:]
		}
	}
	if err := s.l.Close(); err != nil {
		t.Fatal(err)
	}
	got, bad := replay(t, open(t, s.dir, s.o))
	check(t, got, s.want)
	if len(bad) > 0 {
		t.Error(bad[0])
	}
	if s.spent < times/2 {
		t.Errorf("the ballast went %d times only", s.spent)
	}
	t.Logf("%d times full, the ballast went %d times; %d records at the end", times, s.spent, len(got))
}

// full fills the disk for the i-th time, and appends records that may use the reserve.
func (s *spell) full(i, reserve, most int) {
	t := s.t
	s.others(true)
	for n := 0; s.add(s.l.Append, most) == nil; n++ {
		if n > 100_000 {
			t.Fatalf("time %d: the disk is not full", i)
		}
	}
	if i%3 == 0 { // a start on a full disk
		if err := s.l.Close(); err != nil {
			t.Fatal(err)
		}
		s.l = open(t, s.dir, s.o)
	}
	for range reserve / most / 2 {
		if err := s.add(s.l.AppendReserved, most); err != nil {
			t.Fatalf("time %d, reserved: %v", i, err)
		}
	}
	if s.stat() >= 0 {
		return
	}
	s.spent++
	if err := s.add(s.l.Append, most); !errors.Is(err, syscall.ENOSPC) || errors.Is(err, wal.ErrFailed) {
		t.Fatalf("time %d: what is reserved is given to anybody: %v", i, err)
	}
}

func (s *spell) add(do func(byte, []byte) (wal.Pos, error), most int) (err error) {
	e := entry{typ: 1, payload: random(s.rng, s.rng.IntN(most))}
	if e.pos, err = do(e.typ, e.payload); err != nil {
		return err
	}
	s.want = append(s.want, e)
	return s.l.Sync(e.pos)
}

// The same on a real file system of 16 MiB.
func TestFullFileSystem(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=16m"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("mount: %v", err)
		}
		t.Skipf("mount: %v", err)
	}
	// Before the log is closed, as it is open then: nothing else can be done about it.
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	other, err := os.Create(filepath.Join(dir, "other"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	s := &spell{t: t, dir: filepath.Join(dir, "wal"), o: wal.Options{SegmentSize: 1 << 20}}
	s.stat = func() int64 {
		info, err := os.Stat(filepath.Join(s.dir, "ballast"))
		if err != nil {
			return -1
		}
		return info.Size()
	}
	noise := make([]byte, 256<<10)
	s.others = func(full bool) {
		if err := other.Truncate(0); err != nil {
			t.Fatal(err)
		}
		for off := int64(0); full; {
			n, err := other.WriteAt(noise, off)
			if off += int64(n); errors.Is(err, syscall.ENOSPC) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	times := 20
	if testkit.Torture() {
		times = 500
	}
	s.run(times, 1<<20, 60<<10)
}

// hollow is a file system that leaves holes for zeros and syncs nothing: a log of many
// gigabytes needs only seconds and no room.
type hollow struct{ fsys.FS }

type hollowFile struct {
	fsys.File
	zeros []byte
}

func (h hollow) OpenFile(name string, flag int, perm fs.FileMode) (fsys.File, error) {
	f, err := h.FS.OpenFile(name, flag, perm)
	return hollowFile{f, nil}, err
}

func (hollow) SyncDir(string) error { return nil }

func (hollowFile) Sync() error { return nil }

func (f hollowFile) WriteAt(p []byte, off int64) (int, error) {
	if len(p) != zeroPart {
		return f.File.WriteAt(p, off)
	}
	return len(p), f.File.Truncate(off + int64(len(p)))
}

const zeroPart = 1<<20 + 1 // only a part of this length is all zeros here

// Open and Replay read a log that is far larger than their memory bound.
func TestReplayOfHugeLog(t *testing.T) {
	dir := t.TempDir()
	size := int64(testkit.Share(1<<30, 512<<20))
	o := wal.Options{FS: hollow{fsys.OS()}}
	if testkit.Torture() { // all of it on a real file system
		size, o.FS = 10<<30, nil
	}
	part := make([]byte, zeroPart)
	l := open(t, dir, o)
	rng := newRand(1)
	appended := 0
	var last wal.Pos
	for ; l.Size() < size; appended++ {
		if testkit.Torture() {
			part = random(rng, zeroPart)
		}
		var err error
		if last, err = l.Append(1, part); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Sync(last); err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	part = nil
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	l = open(t, dir, o)
	opened := time.Since(start)
	n := 0
	for r, err := range l.Replay(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; len(r.Payload) != zeroPart {
			t.Fatalf("record %d has %d bytes", n, len(r.Payload))
		}
	}
	runtime.ReadMemStats(&after)
	if n != appended {
		t.Errorf("%d records of %d", n, appended)
	}
	// Open allocates windows for the last segment, Replay one, which grows once.
	if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
		t.Errorf("allocated %d bytes", used)
	}
	t.Logf("%d MiB, %d records: open %v, replay %v, %d KiB allocated", size>>20, n,
		opened.Round(time.Millisecond), (time.Since(start) - opened).Round(time.Millisecond), (after.TotalAlloc-before.TotalAlloc)>>10)
}
