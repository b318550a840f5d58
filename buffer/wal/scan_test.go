package wal_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"blobtail/buffer/wal"
	"blobtail/internal/dev/testkit"
	"blobtail/storage/fsys/simdisk"
)

// sample is a segment of about 64 KiB in memory.
func sample(t testing.TB) ([]byte, []entry) {
	t.Helper()
	dir := t.TempDir()
	l := open(t, dir, wal.Options{})
	rng := newRand(3)
	var entries []entry
	for l.Size() < 64<<10 {
		entries = append(entries, fill(t, l, rng, 1, 8000)...)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(segmentFiles(t, dir)[0])
	if err != nil {
		t.Fatal(err)
	}
	return b, entries
}

// verdict compares a scan with the appended records. It returns the index of the missing
// record (-1: none) and the number of damaged spans.
func verdict(sc *wal.Scanner, segment []byte, entries []entry) (lacking, damaged int, err error) {
	next, lacking := 0, -1
	bad, err := sc.Scan(segment, func(off int64, typ byte, payload []byte) {
		for next < len(entries) && int64(entries[next].pos.Offset())-wal.RecordHeader < off {
			if lacking >= 0 {
				lacking = len(entries) // more than one
			} else {
				lacking = next
			}
			next++
		}
		if next == len(entries) || entries[next].typ != typ || !bytes.Equal(entries[next].payload, payload) {
			lacking = len(entries) + 1 // a record that was never appended
		}
		next++
	})
	if next == len(entries)-1 && lacking < 0 {
		lacking = next
	} else if next < len(entries) {
		lacking = len(entries)
	}
	return lacking, len(bad), err
}

// Every flipped bit is noticed, and costs only the record that contains it.
func TestEveryBit(t *testing.T) {
	original, entries := sample(t)
	stride := testkit.Share(1, 151)
	var workers sync.WaitGroup
	var cases atomic.Int64
	const parts = 4
	for part := range parts {
		workers.Go(func() {
			segment := bytes.Clone(original)
			var sc wal.Scanner
			for bit := part * stride; bit < len(segment)*8; bit += parts * stride {
				segment[bit/8] ^= 1 << (bit % 8)
				lacking, damaged, err := verdict(&sc, segment, entries)
				want := owner(entries, bit/8)
				if err != nil || lacking != want || damaged != 1 {
					t.Errorf("bit %d: record %d lacks, want %d; %d spans damaged; %v", bit, lacking, want, damaged, err)
					return
				}
				segment[bit/8] ^= 1 << (bit % 8)
				cases.Add(1)
			}
		})
	}
	workers.Wait()
	t.Logf("%d of %d bits of a segment with %d records were flipped", cases.Load(), len(original)*8, len(entries))
}

// owner is the index of the record that contains a byte; -1 for header and padding.
func owner(entries []entry, at int) int {
	for i, e := range entries {
		start := int(e.pos.Offset()) - wal.RecordHeader
		if at >= start && at < int(e.pos.Offset())+len(e.payload) {
			return i
		}
	}
	return -1
}

// At any truncation of a segment the whole records before it are found, and the loss of
// the rest is noticed.
func TestEveryTruncation(t *testing.T) {
	original, entries := sample(t)
	original = original[:16<<10]
	var sc wal.Scanner
	stride := testkit.Share(1, 97)
	for size := wal.HeaderSize; size <= len(original); size += stride {
		whole, end := 0, wal.HeaderSize
		for ; whole < len(entries); whole++ {
			next := int(entries[whole].pos.Offset()) + len(entries[whole].payload)
			if next > size {
				break
			}
			end = next
		}
		got := 0
		bad, err := sc.Scan(original[:size], func(off int64, typ byte, payload []byte) {
			if got < whole && bytes.Equal(payload, entries[got].payload) {
				got++
			} else {
				got = -1 << 20
			}
		})
		torn := size > (end+7)&^7
		if err != nil || got != whole || len(bad) > 1 || len(bad) == 1 != torn {
			t.Fatalf("cut at %d: %d records, want %d; damaged %v; %v", size, got, whole, bad, err)
		}
	}
}

// A segment of any bytes is read without panic, and with no more memory than it has
// bytes.
func FuzzSegment(f *testing.F) {
	original, _ := sample(f)
	small := original[:4096]
	f.Add(bytes.Clone(small), false)
	f.Add(bytes.Clone(small[wal.HeaderSize:]), true)
	f.Add(make([]byte, 300), true)
	f.Fuzz(func(t *testing.T, b []byte, header bool) {
		if header { // so that most inputs pass the header check
			b = append(bytes.Clone(small[:wal.HeaderSize]), b...)
		}
		var sc wal.Scanner
		covered := int64(0)
		bad, err := sc.Scan(b, func(off int64, typ byte, payload []byte) {
			covered += int64(len(payload)) + wal.RecordHeader
			if typ == 0 {
				t.Error("a record of type 0")
			}
		})
		for _, s := range bad {
			covered += s.Len
		}
		if err == nil && covered > int64(len(b)) {
			t.Errorf("%d bytes of %d", covered, len(b))
		}
		if sc.Room() > len(b) {
			t.Errorf("took %d bytes for %d", sc.Room(), len(b))
		}
	})
}

// The same through Open, and the log works afterwards.
func FuzzOpen(f *testing.F) {
	original, _ := sample(f)
	f.Add(bytes.Clone(original[:4096]), bytes.Clone(original[:2000]))
	f.Add([]byte{}, make([]byte, 200))
	f.Fuzz(func(t *testing.T, first, last []byte) {
		disk := simdisk.New(1)
		if err := disk.Mkdir("/wal", 0o700); err != nil {
			t.Fatal(err)
		}
		for n, b := range [][]byte{first, last} {
			file, err := disk.OpenFile(fmt.Sprintf("/wal/%08d.seg", n+1), os.O_RDWR|os.O_CREATE, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := file.WriteAt(b, 0); err != nil {
				t.Fatal(err)
			}
		}
		l, err := wal.Open("/wal", wal.Options{FS: disk})
		if err != nil {
			if strings.Contains(err.Error(), "format version") {
				return
			}
			t.Fatal(err)
		}
		replay(t, l)
		want := fill(t, l, newRand(1), 2, 100)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		got, _ := replay(t, open(t, "/wal", wal.Options{FS: disk}))
		if len(got) < 2 {
			t.Fatal("lost")
		}
		check(t, got[len(got)-2:], want)
	})
}
