package wal_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"

	"blobtail/buffer/wal"
	"blobtail/internal/dev/testkit"
	"blobtail/storage/fsys/simdisk"
)

// states opens the log in every state that a crash may leave.
type states struct {
	t      *testing.T
	h      *history // the known records
	first  map[string]int
	second int
	every  int            // one in this many states crashes a second time
	kinds  map[string]int // by crash and operation
}

// tries is the number of random states per way to crash.
func tries(c simdisk.Crash) uint64 {
	switch c {
	case simdisk.None, simdisk.All, simdisk.Killed:
		return 1
	}
	if testkit.Torture() {
		return 12
	}
	return 4
}

// at examines all states that a crash just before op may leave.
func (s *states) at(op simdisk.Op) {
	what := op.Kind + " of " + strings.TrimLeft(path.Base(op.Path), "0123456789")
	for crash := range simdisk.Crashes {
		for seed := range tries(crash) {
			s.first[crash.String()]++
			s.kinds[fmt.Sprintf("%v before %s", crash, what)]++
			deep := (op.N+int(crash)+int(seed))%s.every == 0
			if err := s.examine(op.Fork(crash, seed), deep, seed); err != nil {
				s.t.Fatalf("operation %d, %s, crash %v, seed %d: %v", op.N, what, crash, seed, err)
			}
		}
	}
}

// examine opens the log on a disk and compares it with the known records, then again
// after one more crash. deep also tests crashes at each operation of the start.
func (s *states) examine(d *simdisk.Disk, deep bool, seed uint64) error {
	h := *s.h
	h.known, h.durable = maps.Clone(h.known), maps.Clone(h.durable)
	if deep {
		inner := &states{t: s.t, h: s.h}
		d.SetFault(func(op simdisk.Op) error {
			if op.Kind == "read" || op.Kind == "stat" {
				return nil
			}
			for crash := range simdisk.Crashes {
				s.second++
				if err := inner.examine(op.Fork(crash, seed), false, seed); err != nil {
					s.t.Fatalf("then %d, %s of %s, crash %v, seed %d: %v", op.N, op.Kind, op.Path, crash, seed, err)
				}
			}
			return nil
		})
	}
	for _, crash := range []simdisk.Crash{simdisk.None, simdisk.Any} {
		l, err := wal.Open("/var/wal", wal.Options{FS: d, SegmentSize: 2000})
		if errors.Is(err, syscall.ENOSPC) {
			d.SetRoom(0)
			l, err = wal.Open("/var/wal", wal.Options{FS: d, SegmentSize: 2000})
		}
		d.SetFault(nil)
		if err != nil {
			return err
		}
		if err := h.examine(l); err != nil {
			return err
		}
		d = d.Fork(crash, seed)
		h.flight = nil
	}
	return nil
}

// append appends n records and syncs the last.
func (s *states) append(l *wal.Log, reserved bool, n int) {
	do := l.Append
	if reserved {
		do = l.AppendReserved
	}
	for range n {
		e := entry{typ: 1, payload: random(s.h.rng, s.h.rng.IntN(800))}
		s.h.flight = &e
		pos, err := do(e.typ, e.payload)
		s.h.flight = nil
		if err != nil {
			s.t.Fatal(err)
		}
		e.pos, s.h.newest = pos, pos
		s.h.known[pos] = e
	}
	if err := l.Sync(s.h.newest); err != nil {
		s.t.Fatal(err)
	}
	for pos := range s.h.known {
		s.h.durable[pos] = true
	}
}

// life opens the log and uses most of its operations.
func (s *states) life() {
	t, h := s.t, s.h
	l := open(t, "/var/wal", wal.Options{FS: h.disk, SegmentSize: 2000})
	if err := h.examine(l); err != nil {
		t.Fatal(err)
	}
	s.append(l, false, 6)
	checked(t, l)
	if err := l.Quarantine(l.Front()); err != nil {
		t.Fatal(err)
	}
	if err := l.Roll(); err != nil {
		t.Fatal(err)
	}
	s.append(l, false, 3)
	for l.Active()-l.Front() > 2 {
		h.asked = l.Front()
		if err := l.RemoveFront(); err != nil {
			t.Fatal(err)
		}
		h.removed = h.asked
	}
	h.disk.SetRoom(1 << 30)
	free, err := h.disk.Free("/")
	if err != nil {
		t.Fatal(err)
	}
	h.disk.SetRoom(1<<30 - free) // full but for the ballast
	if _, err := l.Append(1, make([]byte, 500)); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("full: %v", err)
	}
	s.append(l, true, 2)
	if info, err := h.disk.Stat("/var/wal/ballast"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the ballast is there: %v, %v", info, err)
	}
	h.disk.SetRoom(1 << 30)
	checked(t, l)
	h.disk.SetRoom(0)
	s.append(l, false, 1)
}

// The power is cut and the process is killed before every operation, in every way. A
// synced record is in the log. An unsynced record is there whole or not at all. A removed
// record stays away, and the next start shows the same records. That also holds for a
// crash during the start.
func TestEveryCrash(t *testing.T) {
	s := &states{
		t: t, first: map[string]int{}, kinds: map[string]int{},
		h: &history{rng: newRand(1), disk: simdisk.New(1), known: map[wal.Pos]entry{}, durable: map[wal.Pos]bool{}},
	}
	if err := s.h.disk.Mkdir("/var", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := s.h.disk.SyncDir("/"); err != nil {
		t.Fatal(err)
	}
	if s.every = testkit.Share(29, 293); testkit.Torture() {
		s.every = 9
	}
	ops := 0
	for life := range 3 {
		s.h.disk.SetFault(func(op simdisk.Op) error {
			if op.Kind != "read" && op.Kind != "stat" { // these operations change nothing
				ops++
				s.at(op)
			}
			return nil
		})
		s.life()
		s.h.disk.SetFault(nil)
		if life == 0 { // leaves a torn tail
			f, err := s.h.disk.OpenFile("/var/wal/"+lastSegment(t, s.h.disk), 2, 0)
			if err != nil {
				t.Fatal(err)
			}
			info, err := f.Stat()
			if err == nil {
				_, err = f.WriteAt([]byte("torn off here"), info.Size()+600) // a sector of zeros, then that
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		s.h.disk = s.h.disk.Kill()
	}
	for _, kind := range slices.Sorted(maps.Keys(s.kinds)) {
		if strings.HasPrefix(kind, "none ") {
			t.Logf("%4d operations: %s", s.kinds[kind], strings.TrimPrefix(kind, "none before "))
		}
	}
	t.Logf("%d operations; states by crash: %v; %d after a second crash during the start", ops, s.first, s.second)
}

func lastSegment(t *testing.T, d *simdisk.Disk) string {
	t.Helper()
	entries, err := d.ReadDir("/var/wal")
	if err != nil {
		t.Fatal(err)
	}
	last := ""
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".seg") {
			last = e.Name()
		}
	}
	return last
}
