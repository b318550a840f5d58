package wal_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rs/zerolog"

	"blobtail/internal/fsys/simdisk"
	"blobtail/wal"
)

// suspected replays a log and returns the records that are suspects.
func suspected(t testing.TB, l *wal.Log) map[wal.Pos]int {
	t.Helper()
	out := map[wal.Pos]int{}
	for r, err := range l.Replay(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Suspected != 0 {
			out[r.Pos] = r.Suspected
		}
	}
	return out
}

// A record whose handling panics each time: each start finds one more, until the
// record's segment goes.
func TestSuspects(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, wal.Options{SegmentSize: 1000})
	all := fill(t, l, newRand(1), 20, 200)
	poison := all[3].pos
	for start := range 4 {
		_ = l.Close()
		l = open(t, dir, wal.Options{SegmentSize: 1000})
		func() {
			var at wal.Record
			defer func() {
				if recover() == nil {
					t.Fatal("no panic")
				}
				if at.Suspected != start {
					t.Errorf("start %d: suspected %d times", start, at.Suspected)
				}
				for range 3 { // a process counts once
					if err := l.Suspect(at.Pos); err != nil {
						t.Fatal(err)
					}
				}
			}()
			for r := range l.Replay(t.Context()) {
				if at = r; r.Pos == poison {
					panic("poison")
				}
			}
		}()
	}
	if err := l.Suspect(all[19].pos); err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	if err := l.Suspect(poison); !errors.Is(err, wal.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	l = open(t, dir, wal.Options{})
	if got := suspected(t, l); len(got) != 2 || got[poison] != 4 || got[all[19].pos] != 1 {
		t.Errorf("suspects %v", got)
	}
	if err := l.Suspect(3); err == nil {
		t.Error("3 is taken for a position")
	}
	for l.Front() < l.Active() {
		if err := l.RemoveFront(); err != nil {
			t.Fatal(err)
		}
	}
	_ = l.Close()
	open(t, dir, wal.Options{})
	if _, err := os.Stat(filepath.Join(dir, "suspects")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is left: %v", err)
	}
}

// The oldest notes go when there are more than 4096; a file that tells of a
// segment which is not there tells nothing.
func TestManySuspects(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, wal.Options{SegmentSize: 1 << 20})
	all := fill(t, l, newRand(1), 4096, 10)
	_ = l.Close()
	l = open(t, dir, wal.Options{})
	more := fill(t, l, newRand(2), 4, 10)
	notes := []byte("blobsus\n\x01\x00\x00\x00\x00\x10\x00\x00")
	for _, e := range all {
		notes = binary.LittleEndian.AppendUint64(notes, uint64(e.pos))
		notes = binary.LittleEndian.AppendUint64(notes, 2)
	}
	notes = binary.LittleEndian.AppendUint32(notes, crc32.Checksum(notes, crc32.MakeTable(crc32.Castagnoli)))
	if err := os.WriteFile(filepath.Join(dir, "suspects"), notes, 0o600); err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	l = open(t, dir, wal.Options{})
	for _, e := range more {
		if err := l.Suspect(e.pos); err != nil {
			t.Fatal(err)
		}
	}
	_ = l.Close()
	got := suspected(t, open(t, dir, wal.Options{}))
	if len(got) != 4096 || got[all[3].pos] != 0 || got[all[4].pos] != 2 || got[more[3].pos] != 1 {
		t.Errorf("%d suspects", len(got))
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "suspects"), notes, 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, other, wal.Options{})
	if _, err := os.Stat(filepath.Join(other, "suspects")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("notes of another log are left: %v", err)
	}
}

// However the notes are damaged, none is taken for what it is not, the log opens,
// and notes can be taken.
func TestDamagedSuspects(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, wal.Options{})
	all := fill(t, l, newRand(1), 3, 100)
	for _, e := range all[:2] {
		if err := l.Suspect(e.pos); err != nil {
			t.Fatal(err)
		}
	}
	_ = l.Close()
	path := filepath.Join(dir, "suspects")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	try := func(b []byte, what string, at int) {
		var told strings.Builder
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		l := open(t, dir, wal.Options{Log: zerolog.New(&told)})
		if got := suspected(t, l); len(got) != 0 || !strings.Contains(told.String(), "unreadable") {
			t.Fatalf("%s at %d: suspects %v; told: %s", what, at, got, told.String())
		}
		if at%50 == 0 {
			if err := l.Suspect(all[2].pos); err != nil {
				t.Fatal(err)
			}
		}
		_ = l.Close()
	}
	cases := 0
	for bit := range len(whole) * 8 {
		b := bytes.Clone(whole)
		b[bit/8] ^= 1 << (bit % 8)
		try(b, "bit", bit)
		cases++
	}
	for n := range whole {
		try(whole[:n], "cut", n)
		cases++
	}
	try(append(bytes.Clone(whole), make([]byte, 100<<10)...), "longer", 0)
	t.Logf("%d damaged files", cases+1)
	if got := suspected(t, open(t, dir, wal.Options{})); len(got) != 1 || got[all[2].pos] != 1 {
		t.Errorf("noted over damage: %v", got)
	}
}

// Wherever the process or the power ends while a note is taken, it is there or
// not, the one before is not lost, and after Suspect has returned it is there.
func TestSuspectIsAtomic(t *testing.T) {
	disk := simdisk.New(1)
	l := open(t, "/wal", wal.Options{FS: disk, SegmentSize: 1000})
	all := fill(t, l, newRand(1), 6, 300)
	if err := l.Suspect(all[0].pos); err != nil {
		t.Fatal(err)
	}
	var found []*simdisk.Disk
	disk.SetFault(func(op simdisk.Op) error {
		for crash := range simdisk.Crashes {
			for seed := range uint64(8) {
				found = append(found, op.Fork(crash, seed))
			}
		}
		return nil
	})
	if err := l.Suspect(all[1].pos); err != nil {
		t.Fatal(err)
	}
	disk.SetFault(nil)
	outcomes := map[int]int{}
	for _, d := range found {
		got := suspected(t, open(t, "/wal", wal.Options{FS: d}))
		if got[all[0].pos] != 1 || len(got) > 2 || got[all[1].pos] > 1 {
			t.Fatalf("suspects %v", got)
		}
		outcomes[len(got)]++
	}
	if outcomes[1] == 0 || outcomes[2] == 0 {
		t.Errorf("outcomes %v", outcomes)
	}
	t.Logf("%d states: %v", len(found), outcomes)
	for crash := range simdisk.Crashes {
		if got := suspected(t, open(t, "/wal", wal.Options{FS: disk.Fork(crash, 1)})); len(got) != 2 {
			t.Errorf("%v after Suspect: %v", crash, got)
		}
	}
}

// Quarantine keeps a segment beyond its removal, once.
func TestQuarantine(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, wal.Options{SegmentSize: 1000})
	fill(t, l, newRand(1), 20, 300)
	front := l.Front()
	for range 2 {
		if err := l.Quarantine(front); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.RemoveFront(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "quarantine", "00000001.seg")); err != nil || info.Size() < 500 {
		t.Errorf("quarantine: %v, %v", info, err)
	}
	if err := l.Quarantine(rand.Uint32N(1000) + 1000); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a segment that never was: %v", err)
	}
}

// Notes made of anything are read without panic, and can be written over.
func FuzzSuspects(f *testing.F) {
	f.Add([]byte("blobsus\n\x01\x00\x00\x00\x00\x00\x00\x00"), true)
	f.Add([]byte("blobsus\n\x01\x00\x00\x00\x01\x00\x00\x00\x90\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00"), true)
	f.Add([]byte("blobsus\n\x02\x00\x00\x00\x00\x00\x00\x00"), true)
	f.Add([]byte{}, false)
	disk := simdisk.New(1)
	l := open(f, "/wal", wal.Options{FS: disk})
	pos := fill(f, l, newRand(1), 1, 10)[0].pos
	f.Fuzz(func(t *testing.T, b []byte, sum bool) {
		if sum {
			b = binary.LittleEndian.AppendUint32(bytes.Clone(b), crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
		}
		d := disk.Fork(simdisk.All, 0)
		file, err := d.OpenFile("/wal/suspects", os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteAt(b, 0); err != nil {
			t.Fatal(err)
		}
		l := open(t, "/wal", wal.Options{FS: d})
		before := suspected(t, l)[pos]
		if err := l.Suspect(pos); err != nil && before < math.MaxInt32 {
			t.Fatal(err)
		}
		_ = l.Close()
		if got := suspected(t, open(t, "/wal", wal.Options{FS: d}))[pos]; got != before+1 && before < math.MaxInt32 {
			t.Fatalf("suspected %d times, before %d", got, before)
		}
	})
}

// A disk that fails while notes are written: the one before stays, and a failed
// fsync ends the log as it does elsewhere.
func TestSuspectFails(t *testing.T) {
	for kind, want := range map[string]error{"open": syscall.EIO, "write": syscall.EIO, "rename": syscall.EIO, "sync": wal.ErrFailed, "syncdir": wal.ErrFailed} {
		disk := simdisk.New(1)
		l := open(t, "/wal", wal.Options{FS: disk, SegmentSize: 1000})
		all := fill(t, l, newRand(1), 4, 300)
		if err := l.Suspect(all[0].pos); err != nil {
			t.Fatal(err)
		}
		disk.SetFault(func(op simdisk.Op) error {
			if op.Kind == kind {
				return syscall.EIO
			}
			return nil
		})
		if err := l.Suspect(all[1].pos); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", kind, err, want)
		}
		disk.SetFault(nil)
		if err := l.Suspect(all[2].pos); (err == nil) != (want == syscall.EIO) {
			t.Errorf("%s, later: %v", kind, err)
		}
		l = open(t, "/wal", wal.Options{FS: disk.Kill()})
		if got := suspected(t, l); got[all[0].pos] != 1 {
			t.Errorf("%s: suspects %v", kind, got)
		}
	}
}

// Notes that cannot be read, or of which some are to be forgotten and that cannot
// be written, keep no log from opening, unless it has failed.
func TestOpenWithBadSuspects(t *testing.T) {
	for kind, opens := range map[string]bool{"read": true, "write": true, "sync": false} {
		disk := simdisk.New(1)
		l := open(t, "/wal", wal.Options{FS: disk, SegmentSize: 1000})
		all := fill(t, l, newRand(1), 10, 300)
		for _, e := range []entry{all[0], all[9]} {
			if err := l.Suspect(e.pos); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.RemoveFront(); err != nil {
			t.Fatal(err)
		}
		disk = disk.Kill()
		disk.SetFault(func(op simdisk.Op) error {
			if op.Kind == kind && strings.HasPrefix(op.Path, "/wal/suspects") {
				return syscall.EIO
			}
			return nil
		})
		l, err := wal.Open("/wal", wal.Options{FS: disk})
		if (err == nil) != opens {
			t.Fatalf("%s: open: %v", kind, err)
		}
		if err == nil && len(suspected(t, l)) > 1 {
			t.Errorf("%s: suspects %v", kind, suspected(t, l))
		}
	}
}
