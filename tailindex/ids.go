package tailindex

import (
	"encoding/binary"
	"math"

	"blobtail/record"
)

// appendIDs appends the identities of entries:
//
//	uvarint  number of origins
//	16 bytes each, in the order of first use
//	uvarint  number of lines
//	for each line:
//	uvarint  its origin, counted from 0, times two
//	uvarint  its index
func appendIDs(dst []byte, entries []record.Entry) []byte {
	numbers := make(map[record.Origin]uint64, 8)
	var origins []byte
	for i := range entries {
		o := entries[i].ID.Origin
		if _, ok := numbers[o]; !ok {
			numbers[o] = uint64(len(numbers))
			origins = append(origins, o[:]...)
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(numbers)))
	dst = append(dst, origins...)
	dst = binary.AppendUvarint(dst, uint64(len(entries)))
	for i := range entries {
		id := &entries[i].ID
		dst = binary.AppendUvarint(dst, numbers[id.Origin]<<1)
		dst = binary.AppendUvarint(dst, uint64(id.Index))
	}
	return dst
}

// identified is an entry of a row. Earlier versions wrote the beginning of
// a line that was too long, and marked it by an odd origin.
type identified struct {
	record.Entry
	cut bool
}

// parseIDs is the inverse of appendIDs. Its entries have no lines and times.
func parseIDs(b []byte) ([]identified, bool) {
	next := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			b = nil
			return math.MaxUint64
		}
		b = b[n:]
		return v
	}
	n := next()
	if n > MaxLines || uint64(len(b)) < n*16 {
		return nil, false
	}
	origins := b[:n*16]
	b = b[n*16:]
	lines := next()
	if lines > MaxLines {
		return nil, false
	}
	entries := make([]identified, lines)
	for i := range entries {
		origin, index := next(), next()
		if origin>>1 >= n || index > math.MaxUint32 {
			return nil, false
		}
		e := &entries[i]
		copy(e.ID.Origin[:], origins[origin>>1*16:])
		e.ID.Index = uint32(index)
		e.cut = origin&1 == 1
	}
	return entries, len(b) == 0
}
