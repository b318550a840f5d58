package tailindex

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"

	"github.com/klauspost/compress/zstd"

	"blobtail/record"
	"blobtail/storage"
)

// dictionary is the zstd dictionary of rows. It is part of the format: a change
// is a new dictionary with another id, and readers keep the old one. It has the beginnings of
// canonical lines, and the names and texts that many loggers write.
//
//go:embed dictionary.bin
var dictionary []byte

// apart is the flag of a body with numbers that are kept apart from the lines.
const apart = 1

// appendBody returns the body of the row, and sets Omitted:
//
//	1 byte   flags
//	uvarint  Count, and uvarint Omitted
//	1 byte   Last in ns, modulo 100: the key has the rest
//	uvarint  Last less First
//	         the identities, see appendIDs
//	uvarint  length of the numbers, and these
//	         the text of the lines, as one zstd frame
//	4 bytes  CRC-32C of all of that, little-endian
func (r *Row) appendBody(z *zstd.Encoder) []byte {
	var text []byte
	for i := range r.Entries {
		text = append(text, r.Entries[i].Line...)
	}
	flags, numbers := byte(0), []byte(nil)
	if separable(text) {
		flags = apart
		text, numbers = separate(text)
	}
	r.Omitted = r.Count - len(r.Entries)
	b := make([]byte, 1, 256+20*len(r.Entries)+len(numbers)+len(text)/2)
	b[0] = flags
	b = binary.AppendUvarint(b, uint64(r.Count))
	b = binary.AppendUvarint(b, uint64(r.Omitted))
	b = append(b, byte(belowTick(r.Last)))
	b = binary.AppendUvarint(b, uint64(r.Last-r.First))
	b = appendIDs(b, r.Entries)
	b = binary.AppendUvarint(b, uint64(len(numbers)))
	b = append(b, numbers...)
	b = z.EncodeAll(text, b)
	return binary.LittleEndian.AppendUint32(b, checksum(b))
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// tick is the unit of times in keys, in ns.
const tick = 100

// belowTick is the part of a time that a key has not.
func belowTick(ns int64) int64 { return (ns%tick + tick) % tick }

// body reads the body of a row, with its entries but for their lines, and returns the lines.
func (r *Reader) body(row *Row, from storage.Row, inverted int64) (lines []byte, reason string) {
	var all []byte
	for i := range maxParts {
		part, _ := from.Props[part(i)].([]byte)
		all = append(all, part...)
	}
	if len(all) < 5 || checksum(all[:len(all)-4]) != binary.LittleEndian.Uint32(all[len(all)-4:]) {
		return nil, "its checksum is wrong"
	}
	b := scanner{rest: all[:len(all)-4], ok: true}
	flags := b.byte()
	if flags&^apart != 0 {
		return nil, "it has flags that this version does not know: use a newer one"
	}
	count, omitted, below, span := b.uvarint(), b.uvarint(), b.byte(), b.uvarint()
	if !b.ok || count > math.MaxInt64 || omitted > math.MaxInt64 || below >= tick || span > math.MaxInt64 {
		return nil, "its head is damaged"
	}
	row.Count, row.Omitted = int(count), int(omitted)
	row.Last = (maxTicks-unixTicks-inverted)*tick + int64(below)
	row.First = row.Last - int64(span)
	if reason := row.check(inverted); reason != "" {
		return nil, reason
	}
	if row.Entries = b.ids(); !b.ok {
		return nil, "its identities are damaged"
	}
	numbers := b.take(b.uvarint())
	if !b.ok {
		return nil, "its numbers are damaged"
	}
	text, err := r.decoder.DecodeAll(b.rest, nil)
	switch {
	case errors.Is(err, zstd.ErrUnknownDictionary):
		return nil, "its lines need a dictionary that this version does not have: use a newer one"
	case err != nil:
		return nil, "its lines do not decompress: " + err.Error()
	case flags&apart == 0:
		return text, ""
	}
	if lines, err = together(text, numbers, maxRaw); err != nil {
		return nil, err.Error()
	}
	return lines, ""
}

// scanner reads values from a body. After one that is not there, ok is false.
type scanner struct {
	rest []byte
	ok   bool
}

func (s *scanner) take(n uint64) []byte {
	if n > uint64(len(s.rest)) {
		s.rest, s.ok = nil, false
		return nil
	}
	head := s.rest[:n:n]
	s.rest = s.rest[n:]
	return head
}

func (s *scanner) byte() byte {
	b := s.take(1)
	if b == nil {
		return 0
	}
	return b[0]
}

func (s *scanner) uvarint() uint64 {
	v, n := binary.Uvarint(s.rest)
	if n <= 0 {
		s.rest, s.ok = nil, false
		return 0
	}
	s.rest = s.rest[n:]
	return v
}

// appendIDs appends the identities of entries:
//
//	uvarint  number of origins
//	for each, in the order of first use: 1 byte, how many bytes it begins with that the one
//	         before has too; the rest of its 16 bytes
//	uvarint  number of lines
//	for each line:
//	uvarint  how much its index is greater than that of the line before that has its origin,
//	         in zigzag, times two; odd: the line before has another origin
//	uvarint  its origin, counted from 0, if that is another
func appendIDs(dst []byte, entries []record.Entry) []byte {
	numbers := make(map[record.Origin]int, 8)
	var origins []record.Origin
	for i := range entries {
		o := entries[i].ID.Origin
		if _, ok := numbers[o]; !ok {
			numbers[o] = len(origins)
			origins = append(origins, o)
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(origins)))
	var before record.Origin
	for _, o := range origins {
		n := 0
		for n < len(o) && o[n] == before[n] {
			n++
		}
		dst = append(append(dst, byte(n)), o[n:]...)
		before = o
	}
	dst = binary.AppendUvarint(dst, uint64(len(entries)))
	last := make([]int64, len(origins)) // index of the last line of each
	origin := 0
	for i := range entries {
		id := &entries[i].ID
		n := numbers[id.Origin]
		d := int64(id.Index) - last[n]
		v := uint64(d<<1^d>>63) << 1
		last[n] = int64(id.Index)
		if n == origin {
			dst = binary.AppendUvarint(dst, v)
			continue
		}
		dst = binary.AppendUvarint(dst, v|1)
		dst = binary.AppendUvarint(dst, uint64(n))
		origin = n
	}
	return dst
}

// ids is the inverse of appendIDs. The entries have no lines and times.
func (s *scanner) ids() []record.Entry {
	n := s.uvarint()
	if n > MaxLines {
		s.ok = false
		return nil
	}
	origins := make([]record.Origin, n)
	var before record.Origin
	for i := range origins {
		same := int(s.byte())
		if same > len(before) {
			s.ok = false
			return nil
		}
		copy(before[same:], s.take(uint64(len(before)-same)))
		origins[i] = before
	}
	lines := s.uvarint()
	if lines > MaxLines {
		s.ok = false
		return nil
	}
	entries := make([]record.Entry, lines)
	last := make([]int64, n)
	origin := uint64(0)
	for i := range entries {
		v := s.uvarint()
		if v&1 == 1 {
			origin = s.uvarint()
		}
		if !s.ok || origin >= n {
			s.ok = false
			return nil
		}
		v >>= 1
		last[origin] += int64(v>>1) ^ -int64(v&1)
		if last[origin] < 0 || last[origin] > math.MaxUint32 {
			s.ok = false
			return nil
		}
		entries[i].ID = record.ID{Origin: origins[origin], Index: uint32(last[origin])}
	}
	return entries
}
