package wal_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"blobtail/buffer/wal"
)

// scene is a closed log of four segments or more, about to be damaged.
type scene struct {
	t       *testing.T
	dir     string
	entries []entry
	lost    map[int]bool // records that may be lost
}

func newScene(t *testing.T) *scene {
	s := &scene{t: t, dir: t.TempDir(), lost: map[int]bool{}}
	l := open(t, s.dir, wal.Options{SegmentSize: 4096})
	s.entries = fill(t, l, newRand(7), 36, 1000)
	if err := l.Roll(); err != nil {
		t.Fatal(err)
	}
	s.entries = append(s.entries, fill(t, l, newRand(8), 4, 500)...)
	// The last record spans several sectors, and has no zeros.
	long := entry{typ: 7, payload: bytes.Repeat([]byte("x"), 1500)}
	var err error
	if long.pos, err = l.Append(long.typ, long.payload); err != nil {
		t.Fatal(err)
	}
	s.entries = append(s.entries, long)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if s.last() < 4 {
		t.Fatal("too few segments")
	}
	return s
}

func (s *scene) last() uint32 { return s.entries[len(s.entries)-1].pos.Segment() }

func (s *scene) path(n uint32) string { return filepath.Join(s.dir, fmt.Sprintf("%08d.seg", n)) }

// in returns the index of the k-th record of segment n. A negative k counts from the
// segment's end.
func (s *scene) in(n uint32, k int) int {
	var found []int
	for i, e := range s.entries {
		if e.pos.Segment() == n {
			found = append(found, i)
		}
	}
	if k < 0 {
		k += len(found)
	}
	return found[k]
}

// edit changes the file of segment n.
func (s *scene) edit(n uint32, change func(b []byte) []byte) {
	s.t.Helper()
	b, err := os.ReadFile(s.path(n))
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(s.path(n), change(b), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// at changes the bytes of record i from byte k of its header on.
func (s *scene) at(i, k int, change func(b []byte)) {
	s.t.Helper()
	pos := s.entries[i].pos
	s.edit(pos.Segment(), func(b []byte) []byte {
		change(b[int(pos.Offset())-wal.RecordHeader+k:])
		return b
	})
}

func (s *scene) lose(records ...int) {
	for _, i := range records {
		s.lost[i] = true
	}
}

func (s *scene) loseSegment(n uint32) {
	for i, e := range s.entries {
		if e.pos.Segment() == n {
			s.lose(i)
		}
	}
}

// remove deletes segment n as an operator would.
func (s *scene) remove(n uint32) {
	s.t.Helper()
	if err := os.Remove(s.path(n)); err != nil {
		s.t.Fatal(err)
	}
	s.loseSegment(n)
}

func flip(b []byte) { b[0] ^= 0x10 }

var damages = []struct {
	name    string
	damage  func(s *scene)
	corrupt int  // spans that Replay must report
	torn    bool // a torn tail is removed
}{
	{"none", func(s *scene) {}, 0, false},
	{"torn header", func(s *scene) {
		i := s.in(s.last(), -1)
		s.edit(s.last(), func(b []byte) []byte { return b[:s.entries[i].pos.Offset()-9] })
		s.lose(i)
	}, 0, true},
	{"torn payload", func(s *scene) {
		i := s.in(s.last(), -1)
		s.edit(s.last(), func(b []byte) []byte { return b[:s.entries[i].pos.Offset()+1] })
		s.lose(i)
	}, 0, true},
	{"tail overwritten with zeros", func(s *scene) {
		i := s.in(s.last(), -2)
		s.at(i, 0, func(b []byte) { clear(b) })
		s.lose(i, i+1)
	}, 0, true},
	{"zero tail", func(s *scene) {
		s.edit(s.last(), func(b []byte) []byte { return append(b, make([]byte, 4096)...) })
	}, 0, true},
	{"garbage tail", func(s *scene) {
		s.edit(s.last(), func(b []byte) []byte { return append(b, random(newRand(1), 3<<20)...) })
	}, 1, false},
	{"records of another segment behind the last", func(s *scene) {
		other, err := os.ReadFile(s.path(1))
		if err != nil {
			s.t.Fatal(err)
		}
		s.edit(s.last(), func(b []byte) []byte {
			for len(b)%8 != 0 {
				b = append(b, 0)
			}
			return append(b, other[wal.HeaderSize:]...)
		})
	}, 1, false},
	{"payload in the last segment", func(s *scene) {
		i := s.in(s.last(), 0)
		s.at(i, wal.RecordHeader, flip)
		s.lose(i)
	}, 1, false},
	{"header in the last segment", func(s *scene) {
		i := s.in(s.last(), 1)
		s.at(i, 4, flip)
		s.lose(i)
	}, 1, false},
	{"middle and end of the last segment", func(s *scene) {
		i := s.in(s.last(), 0)
		s.at(i, 0, flip)
		s.edit(s.last(), func(b []byte) []byte { return append(b, "0123456789abcdef"...) })
		s.lose(i)
	}, 2, false},
	{"middle of the last segment, and its end cut short", func(s *scene) {
		i, last := s.in(s.last(), 0), s.in(s.last(), -1)
		s.at(i, 0, flip)
		s.edit(s.last(), func(b []byte) []byte { return b[:s.entries[last].pos.Offset()-9] })
		s.lose(i, last)
	}, 1, true},
	{"payload of the last record", func(s *scene) {
		i := s.in(s.last(), -1)
		s.at(i, wal.RecordHeader, flip)
		s.lose(i)
	}, 1, false},
	{"header of the last record", func(s *scene) {
		i := s.in(s.last(), -1)
		s.at(i, 8, flip)
		s.lose(i)
	}, 1, false},
	{"payloads of the last two records", func(s *scene) {
		i := s.in(s.last(), -2)
		s.at(i, wal.RecordHeader, flip)
		s.at(i+1, wal.RecordHeader, flip)
		s.lose(i, i+1)
	}, 1, false},
	{"the last record but one, and the last is cut short", func(s *scene) {
		i := s.in(s.last(), -2)
		s.at(i, wal.RecordHeader, flip)
		s.edit(s.last(), func(b []byte) []byte { return b[:s.entries[i+1].pos.Offset()+1] })
		s.lose(i, i+1)
	}, 1, true},
	{"header of the last record but one, and the last is cut short", func(s *scene) {
		i := s.in(s.last(), -2)
		s.at(i, 8, flip)
		s.edit(s.last(), func(b []byte) []byte { return b[:s.entries[i+1].pos.Offset()+1] })
		s.lose(i, i+1)
	}, 1, true},
	{"a sector of the last record that was never written", func(s *scene) {
		i := s.in(s.last(), -1)
		from := int(s.entries[i].pos.Offset())
		s.edit(s.last(), func(b []byte) []byte {
			for at := (from + 511) / 512 * 512; ; at++ {
				b[at] = 0
				if at%512 == 511 {
					return b
				}
			}
		})
		s.lose(i)
	}, 0, true},
	{"the start of the last payload, up to the end of its sector, never written", func(s *scene) {
		i := s.in(s.last(), -1)
		from := int(s.entries[i].pos.Offset())
		s.edit(s.last(), func(b []byte) []byte { clear(b[from : (from+511)/512*512]); return b })
		s.lose(i)
	}, 0, true},
	{"half a sector of zeros in the last record", func(s *scene) {
		i := s.in(s.last(), -1)
		from := int(s.entries[i].pos.Offset())
		s.edit(s.last(), func(b []byte) []byte {
			at := (from + 511) / 512 * 512
			clear(b[at : at+256])
			return b
		})
		s.lose(i)
	}, 1, false},
	{"payload in an old segment", func(s *scene) {
		i := s.in(2, 1)
		s.at(i, wal.RecordHeader, flip)
		s.lose(i)
	}, 1, false},
	{"header in an old segment", func(s *scene) {
		i := s.in(2, 1)
		s.at(i, 12, flip)
		s.lose(i)
	}, 1, false},
	{"last record of an old segment", func(s *scene) {
		i := s.in(2, -1)
		s.at(i, 0, flip)
		s.lose(i)
	}, 1, false},
	{"zeros over two records", func(s *scene) {
		i := s.in(1, 1)
		n := int(s.entries[i+1].pos) + len(s.entries[i+1].payload) - int(s.entries[i].pos) + wal.RecordHeader
		s.at(i, 0, func(b []byte) { clear(b[:n]) })
		s.lose(i, i+1)
	}, 1, false},
	{"two places", func(s *scene) {
		s.at(s.in(1, 0), 0, flip)
		s.at(s.in(1, 2), wal.RecordHeader, flip)
		s.lose(s.in(1, 0), s.in(1, 2))
	}, 2, false},
	{"old segment cut short", func(s *scene) {
		i := s.in(2, -1)
		s.edit(2, func(b []byte) []byte { return b[:s.entries[i].pos.Offset()+1] })
		s.lose(i)
	}, 1, false},
	{"old segment of no bytes", func(s *scene) {
		s.edit(2, func(b []byte) []byte { return nil })
		s.loseSegment(2)
	}, 1, false},
	{"bytes behind an old segment", func(s *scene) {
		s.edit(2, func(b []byte) []byte { return append(b, "0123456789abcdef"...) })
	}, 1, false},
	{"first copy of the header", func(s *scene) {
		s.edit(2, func(b []byte) []byte { flip(b[20:]); return b })
	}, 1, false},
	{"second copy of the header, last segment", func(s *scene) {
		s.edit(s.last(), func(b []byte) []byte { flip(b[64+20:]); return b })
	}, 1, false},
	{"header of an old segment", func(s *scene) {
		s.edit(2, func(b []byte) []byte { clear(b[:wal.HeaderSize]); return b })
		s.loseSegment(2)
	}, 1, false},
	{"header of the last segment", func(s *scene) {
		s.edit(s.last(), func(b []byte) []byte { clear(b[:wal.HeaderSize]); return b })
		s.loseSegment(s.last())
	}, 1, false},
	{"a segment under another's name", func(s *scene) {
		b, err := os.ReadFile(s.path(1))
		if err != nil {
			s.t.Fatal(err)
		}
		s.edit(2, func([]byte) []byte { return b })
		s.loseSegment(2)
	}, 1, false},
	{"a segment gone", func(s *scene) { s.remove(2) }, 1, false},
	{"the front gone, as after RemoveFront", func(s *scene) {
		for n := uint32(1); n <= 2; n++ {
			s.remove(n)
		}
	}, 0, false},
	{"the newest segment gone", func(s *scene) { s.remove(s.last()) }, 1, false},
	{"the newest two segments gone", func(s *scene) {
		s.remove(s.last() - 1)
		s.remove(s.last())
	}, 1, false},
	{"the newest segment and an old one gone", func(s *scene) {
		s.remove(2)
		s.remove(s.last())
	}, 2, false},
	{"all segments gone", func(s *scene) {
		for n := uint32(1); n <= s.last(); n++ {
			s.remove(n)
		}
	}, 1, false},
	{"the note on the newest segment is damaged", func(s *scene) {
		if err := os.WriteFile(filepath.Join(s.dir, "newest"), []byte("no number"), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}, 0, false},
	{"no note on the newest segment", func(s *scene) {
		if err := os.Remove(filepath.Join(s.dir, "newest")); err != nil {
			s.t.Fatal(err)
		}
	}, 0, false},
	{"the newest segment has no bytes left", func(s *scene) {
		s.edit(s.last(), func([]byte) []byte { return nil })
		s.loseSegment(s.last())
	}, 1, false},
	{"the newest segment has half a header left", func(s *scene) {
		s.edit(s.last(), func(b []byte) []byte { return b[:64] })
		s.loseSegment(s.last())
	}, 1, false},
	{"newest segment torn when it was made", func(s *scene) {
		if err := os.WriteFile(s.path(s.last()+1), make([]byte, 57), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}, 0, true},
	{"a copy that was not finished", func(s *scene) {
		temp := strings.TrimSuffix(s.path(s.last()), ".seg") + ".tmp"
		if err := os.WriteFile(temp, []byte("half"), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}, 0, false},
}

// tornKept is in the message about a torn tail that was removed.
const tornKept = `"kept":`

func TestDamage(t *testing.T) {
	for _, c := range damages {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			c.damage(s)
			before := len(segmentFiles(t, s.dir))
			var want []entry
			for i, e := range s.entries {
				if !s.lost[i] {
					want = append(want, e)
				}
			}
			// A second start must find the records of the first start, and those that it
			// added.
			for round := range 3 {
				var told strings.Builder
				l := open(t, s.dir, wal.Options{SegmentSize: 4096, Log: zerolog.New(&told)})
				got, bad := replay(t, l)
				check(t, got, want)
				if len(bad) != c.corrupt {
					t.Fatalf("round %d: %d damaged spans, want %d: %v", round, len(bad), c.corrupt, bad)
				}
				if torn := strings.Contains(told.String(), tornKept); torn != (c.torn && round == 0) {
					t.Errorf("round %d: torn %v; logged %s", round, torn, told.String())
				}
				if l.Active() <= s.last() {
					t.Errorf("segment %d is used again", l.Active())
				}
				want = append(want, fill(t, l, newRand(uint64(round)), 3, 100)...)
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
			}
			s.checkKept(c.corrupt, c.torn)
			if after := len(segmentFiles(t, s.dir)); after < before {
				t.Errorf("%d segment files before, %d after", before, after)
			}
		})
	}
}

// checkKept checks the copies of damaged files.
func (s *scene) checkKept(corrupt int, torn bool) {
	kept, err := filepath.Glob(filepath.Join(s.dir, "quarantine", "*.seg"))
	missing := strings.HasSuffix(s.t.Name(), "gone")
	if err != nil || len(kept) != min(corrupt, 1) && !missing {
		s.t.Errorf("quarantine holds %v", kept)
	}
	tails, err := filepath.Glob(filepath.Join(s.dir, "*.torn"))
	if err != nil || len(tails) > 0 != torn {
		s.t.Errorf("torn tails kept: %v", tails)
	}
	for _, name := range tails {
		if info, err := os.Stat(name); err != nil || info.Size() > 1<<20 || info.Size() == 0 {
			s.t.Errorf("torn tail: %v, %v", info, err)
		}
	}
	if temps, _ := filepath.Glob(filepath.Join(s.dir, "*.tmp")); len(temps) > 0 {
		s.t.Errorf("left: %v", temps)
	}
}

// A file in quarantine outlives its segment.
func TestQuarantineOutlivesItsSegment(t *testing.T) {
	s := newScene(t)
	s.at(s.in(1, 0), 0, flip)
	damaged, err := os.ReadFile(s.path(1))
	if err != nil {
		t.Fatal(err)
	}
	l := open(t, s.dir, wal.Options{})
	replay(t, l)
	if err := l.RemoveFront(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(s.dir, "quarantine", "00000001.seg"))
	if err != nil || !bytes.Equal(b, damaged) {
		t.Errorf("quarantine: %d bytes, %v", len(b), err)
	}
}

// A log of a newer version is refused and left unchanged.
func TestNewerVersion(t *testing.T) {
	s := newScene(t)
	s.edit(2, func(b []byte) []byte {
		for _, c := range [][]byte{b[:64], b[64:128]} {
			binary.LittleEndian.PutUint32(c[8:], 2)
			binary.LittleEndian.PutUint32(c[60:], crc32.Checksum(c[:60], crc32.MakeTable(crc32.Castagnoli)))
		}
		return b
	})
	_, err := wal.Open(s.dir, wal.Options{})
	if err == nil || !strings.Contains(err.Error(), "00000002.seg: format version 2, this program reads version 1") {
		t.Errorf("open: %v", err)
	}
}

// The same through Open and Replay, for some bits.
func TestSomeBitsOnDisk(t *testing.T) {
	rng := newRand(5)
	for range 60 {
		s := newScene(t)
		n := uint32(1 + rng.IntN(int(s.last())))
		s.edit(n, func(b []byte) []byte {
			at := rng.IntN(len(b))
			b[at] ^= 1 << rng.IntN(8)
			var in []entry
			first := -1
			for i, e := range s.entries {
				if e.pos.Segment() == n {
					if first < 0 {
						first = i
					}
					in = append(in, e)
				}
			}
			if i := owner(in, at); i >= 0 {
				s.lose(first + i)
			}
			return b
		})
		var want []entry
		for i, e := range s.entries {
			if !s.lost[i] {
				want = append(want, e)
			}
		}
		var told strings.Builder
		l := open(t, s.dir, wal.Options{Log: zerolog.New(&told)})
		got, bad := replay(t, l)
		check(t, got, want)
		if len(bad) == 0 && !strings.Contains(told.String(), tornKept) {
			t.Fatal("a flipped bit went unnoticed")
		}
		_ = l.Close()
	}
}
