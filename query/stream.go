package query

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"blobtail/blobfmt"
	"blobtail/record"
)

// looseBlock is the approximate number of bytes of lines in a block of unflushed
// records.
const looseBlock = 1 << 20

// idSize is the bytes of an identity in the temporary file.
const idSize = 16 + 4

// maxSame bounds how many records may share time and identity. Copies do not count.
const maxSame = 1000

// A stream is the unflushed records of one service: blocks in the order of records,
// without copies. Once sealed it never changes.
type stream struct {
	loose   *Loose
	service string
	records int
	blocks  []lines
	index   blobfmt.Index // of the blocks: times and levels
	hours   []hourPart    // of the same, ascending

	// Until it is sealed, cur is being filled. Its records from number same, at
	// sameAt, share key.
	cur    lines
	key    record.Key
	same   int
	sameAt int
}

// lines are some lines with their identities, in memory or in the file.
type lines struct {
	raw []byte
	ids []record.ID

	spilled  bool
	at       int64 // in the file: first the lines, then the identities
	len, num int
}

// memory is the size of the lines and identities in bytes.
func (b *lines) memory() int64 { return int64(len(b.raw) + len(b.ids)*idSize) }

// add adds a copy of a record, unless it has one. Records of one key are in the order
// of their bytes.
func (s *stream) add(e *record.Entry) error {
	key := record.Key{Time: e.Time, Origin: e.ID.Origin, Index: e.ID.Index}
	order := 1
	if s.records > 0 {
		order = key.Compare(&s.key)
	}
	at := len(s.cur.raw)
	switch {
	case order < 0:
		return errors.New("records are not in their order")
	case order > 0:
		if at+len(e.Line) > looseBlock {
			s.turn()
			at = 0
		}
		s.key, s.same, s.sameAt = key, len(s.cur.ids), at
	default:
		var known bool
		if at, known = s.place(e.Line); known {
			return nil
		}
		if len(s.cur.ids)-s.same == maxSame {
			return errors.New("too many records of one time and identity")
		}
	}
	s.cur.raw = slices.Insert(s.cur.raw, at, e.Line...)
	s.cur.ids = append(s.cur.ids, e.ID)
	s.records++
	s.loose.size += int64(len(e.Line) + idSize)
	return nil
}

// place is the offset in cur for a line with that key, and known says that it is
// there already.
func (s *stream) place(line []byte) (at int, known bool) {
	for at = s.sameAt; at < len(s.cur.raw); {
		other := s.cur.raw[at:]
		other = other[:bytes.IndexByte(other, '\n')+1]
		if c := bytes.Compare(line, other); c <= 0 {
			return at, c == 0
		}
		at += len(other)
	}
	return at, false
}

// turn ends a block.
func (s *stream) turn() {
	n := len(s.cur.raw)
	if n == 0 {
		return
	}
	s.describe(&s.cur)
	s.blocks = append(s.blocks, s.cur)
	s.cur = lines{}
	if n > looseBlock/2 {
		s.cur.raw = make([]byte, 0, looseBlock)
	}
}

// spill moves the records in memory to the file, except those of the last key, since
// copies of them may still come.
func (s *stream) spill() error {
	rest := lines{raw: bytes.Clone(s.cur.raw[s.sameAt:]), ids: slices.Clone(s.cur.ids[s.same:])}
	s.cur.raw, s.cur.ids = s.cur.raw[:s.sameAt], s.cur.ids[:s.same]
	s.turn()
	s.cur, s.same, s.sameAt = rest, 0, 0
	for i := range s.blocks {
		b := &s.blocks[i]
		if b.spilled {
			continue
		}
		s.loose.size -= b.memory()
		if err := b.store(s.loose); err != nil {
			return fmt.Errorf("put records aside: %w", err)
		}
	}
	return nil
}

// describe adds a complete block to the index.
func (s *stream) describe(b *lines) {
	d := blobfmt.Block{Raw: int64(len(b.raw)), Records: len(b.ids)}
	// Add has checked that all lines have their times.
	d.First, _ = record.LineTime(b.raw)
	d.Last, _ = record.LineTime(lastLine(b.raw))
	for at := 0; at < len(b.raw); {
		line := b.raw[at:]
		s.noteHour(line)
		d.Levels[record.LineLevel(line)]++
		at += bytes.IndexByte(line, '\n') + 1
	}
	s.index.Blocks = append(s.index.Blocks, d)
}

// store writes the block to the file and releases its memory.
func (b *lines) store(l *Loose) error {
	ids := make([]byte, 0, len(b.ids)*idSize)
	for i := range b.ids {
		ids = append(ids, b.ids[i].Origin[:]...)
		ids = binary.LittleEndian.AppendUint32(ids, b.ids[i].Index)
	}
	for _, part := range [][]byte{b.raw, ids} {
		if _, err := l.file.WriteAt(part, l.end+int64(b.len)); err != nil {
			return err
		}
		b.len += len(part)
	}
	*b = lines{spilled: true, at: l.end, len: len(b.raw), num: len(b.ids)}
	l.end += int64(b.len + len(ids))
	return nil
}

// load returns the lines of a block and their identities. own says that the bytes are
// the caller's, in buf if it is large enough; otherwise they must not be changed.
func (b *lines) load(l *Loose, buf []byte) (raw []byte, ids []record.ID, own bool, err error) {
	if !b.spilled {
		return b.raw, b.ids, false, nil
	}
	size := b.len + b.num*idSize
	all := slices.Grow(buf[:0], size)[:size]
	if _, err := l.file.ReadAt(all, b.at); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, nil, false, fmt.Errorf("read what was put aside: %w", err)
	}
	ids = make([]record.ID, b.num)
	for i := range ids {
		from := all[b.len+i*idSize:]
		copy(ids[i].Origin[:], from)
		ids[i].Index = binary.LittleEndian.Uint32(from[16:])
	}
	return all[:b.len], ids, true, nil
}

// seal makes the stream ready to be read.
func (s *stream) seal() {
	s.turn()
	s.cur = lines{}
}
