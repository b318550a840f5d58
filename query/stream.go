package query

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"blobtail/blobfmt"
	"blobtail/record"
)

// looseBlock is about how many bytes of lines a block of loose records has.
const looseBlock = 1 << 20

// idSize is what an identity takes in the temporary file.
const idSize = 16 + 4

// A stream is what is loose of one service. Once sealed it is a row of blocks in
// the order of records, without copies, and never changes.
type stream struct {
	loose   *Loose
	service string
	records int
	blocks  []lines
	index   blobfmt.Index // of the sealed blocks: times and levels
	hours   []hourPart    // of the same, ascending

	// Until it is sealed. cur is being filled; the records in it from groupLine,
	// at groupAt, share time and identity, and what of them is a copy is found when
	// the next one comes. Out of order, there are no groups.
	cur       lines
	newest    looseLine // time and identity of the last one
	unordered bool
	groupLine int
	groupAt   int
}

// lines are some lines with their identities, in memory or in the file.
type lines struct {
	raw []byte
	ids []record.ID

	spilled  bool
	at       int64 // in the file: first the lines, then the identities
	len, num int
}

// looseLine is one line on its way. Its bytes may be those of a block.
type looseLine struct {
	time int64
	id   record.ID
	line []byte
}

func (a *looseLine) compare(b *looseLine) int {
	return cmp.Or(cmp.Compare(a.time, b.time), a.id.Origin.Compare(&b.id.Origin), cmp.Compare(a.id.Index, b.id.Index))
}

// memory is what the lines take.
func (b *lines) memory() int64 { return int64(len(b.raw) + len(b.ids)*idSize) }

func (s *stream) add(e looseLine) error {
	if s.records > 0 && !s.unordered {
		switch c := e.compare(&s.newest); {
		case c > 0:
			s.closeGroup()
		case c < 0 && len(s.blocks) > 0 && s.blocks[0].spilled:
			return errors.New("more records than memory is for, and not in their order")
		case c < 0:
			s.unordered = true
		}
	}
	if len(s.cur.raw)+len(e.line) > looseBlock && (s.unordered || s.groupLine == len(s.cur.ids)) {
		s.turn()
	}
	s.put(e)
	s.newest = looseLine{time: e.time, id: e.id}
	return nil
}

// put appends a line to the block being filled.
func (s *stream) put(e looseLine) {
	s.cur.raw = append(s.cur.raw, e.line...)
	s.cur.ids = append(s.cur.ids, e.id)
	s.records++
	s.loose.size += int64(len(e.line) + idSize)
}

// turn ends a block.
func (s *stream) turn() {
	if n := len(s.cur.raw); n > 0 {
		s.blocks = append(s.blocks, s.cur)
		s.cur = lines{}
		if n > looseBlock/2 {
			s.cur.raw = make([]byte, 0, looseBlock)
		}
	}
	s.groupLine, s.groupAt = 0, 0
}

// closeGroup drops the copies among the last lines, which share time and
// identity.
func (s *stream) closeGroup() {
	if len(s.cur.ids)-s.groupLine > 1 {
		group := s.cur.each(s.groupLine, s.groupAt)
		for i := range group {
			group[i].line = bytes.Clone(group[i].line)
		}
		s.loose.size -= int64(len(s.cur.raw) - s.groupAt + len(group)*idSize)
		s.records -= len(group)
		s.cur.raw, s.cur.ids = s.cur.raw[:s.groupAt], s.cur.ids[:s.groupLine]
		for _, e := range distinct(group) {
			s.put(e)
		}
	}
	s.groupLine, s.groupAt = len(s.cur.ids), len(s.cur.raw)
}

// distinct gives lines of one time and identity that are records of their own, in
// the order of their bytes.
func distinct(group []looseLine) []looseLine {
	slices.SortFunc(group, func(a, b looseLine) int { return bytes.Compare(a.line, b.line) })
	return slices.CompactFunc(group, func(a, b looseLine) bool { return bytes.Equal(a.line, b.line) })
}

// each gives the lines of a block from line first, at offset at, on.
func (b *lines) each(first, at int) []looseLine {
	out := make([]looseLine, 0, len(b.ids)-first)
	for i := first; i < len(b.ids); i++ {
		n := bytes.IndexByte(b.raw[at:], '\n') + 1
		e := looseLine{id: b.ids[i], line: b.raw[at : at+n]}
		e.time, _ = record.LineTime(e.line)
		out = append(out, e)
		at += n
	}
	return out
}

// sort puts what came out of order in order. All of it is in memory.
func (s *stream) sort() error {
	if !s.unordered {
		return nil
	}
	s.turn()
	var all []looseLine
	for i := range s.blocks {
		all = append(all, s.blocks[i].each(0, 0)...)
		s.loose.size -= s.blocks[i].memory()
	}
	slices.SortFunc(all, func(a, b looseLine) int { return a.compare(&b) })
	s.blocks, s.cur, s.records, s.unordered = nil, lines{}, 0, false
	for i := range all {
		if err := s.add(all[i]); err != nil {
			return err
		}
	}
	return nil
}

// spill moves to the file what is in memory, but for the last group, to which
// copies may yet come.
func (s *stream) spill() error {
	if err := s.sort(); err != nil {
		return err
	}
	rest := s.cur.each(s.groupLine, s.groupAt)
	for i := range rest {
		rest[i].line = bytes.Clone(rest[i].line)
		s.loose.size -= int64(len(rest[i].line) + idSize)
	}
	s.records -= len(rest)
	s.cur.raw, s.cur.ids = s.cur.raw[:s.groupAt], s.cur.ids[:s.groupLine]
	s.turn()
	for i := range s.blocks {
		b := &s.blocks[i]
		if b.spilled {
			continue
		}
		if err := s.index1(b); err != nil {
			return err
		}
		s.loose.size -= b.memory()
		if err := b.store(s.loose); err != nil {
			return fmt.Errorf("put records aside: %w", err)
		}
	}
	for i := range rest {
		s.put(rest[i])
	}
	return nil
}

// index1 describes the next block, which is complete.
func (s *stream) index1(b *lines) error {
	d := blobfmt.Block{Raw: int64(len(b.raw)), Records: len(b.ids)}
	first, ok1 := record.LineTime(b.raw)
	last, ok2 := record.LineTime(lastLine(b.raw))
	if !ok1 || !ok2 {
		return errLine
	}
	d.First, d.Last = first, last
	for at := 0; at < len(b.raw); {
		line := b.raw[at:]
		s.noteHour(line)
		d.Levels[record.LineLevel(line)]++
		at += bytes.IndexByte(line, '\n') + 1
	}
	s.index.Blocks = append(s.index.Blocks, d)
	return nil
}

// store writes the block to the file and lets go of its memory.
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

// load gives the lines of a block and their identities. own says that the bytes
// are the caller's, in buf if it is large enough; else they must not be changed.
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
func (s *stream) seal() error {
	if err := s.sort(); err != nil {
		return err
	}
	s.closeGroup()
	s.turn()
	s.cur = lines{}
	for i := range s.blocks {
		if s.blocks[i].spilled {
			continue
		}
		if err := s.index1(&s.blocks[i]); err != nil {
			return err
		}
	}
	return nil
}
