package tailindex

import (
	"encoding/binary"
	"math"

	"blobtail/record"
)

// appendIDs appends the identities of entries:
//
//	uvarint  number of origins
//	16 bytes each, in the order in which they are met
//	uvarint  number of lines
//	for each line:
//	uvarint  its origin, counted from 0, times two; and 1 if the line is cut
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
		e := &entries[i]
		n := numbers[e.ID.Origin] << 1
		if e.Cut {
			n++
		}
		dst = binary.AppendUvarint(dst, n)
		dst = binary.AppendUvarint(dst, uint64(e.ID.Index))
	}
	return dst
}

// parseIDs is the inverse of appendIDs. Lines and times are not in it.
func parseIDs(b []byte) ([]record.Entry, bool) {
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
	entries := make([]record.Entry, lines)
	for i := range entries {
		origin, index := next(), next()
		if origin>>1 >= n || index > math.MaxUint32 {
			return nil, false
		}
		e := &entries[i]
		copy(e.ID.Origin[:], origins[origin>>1*16:])
		e.ID.Index = uint32(index)
		e.Cut = origin&1 == 1
	}
	return entries, len(b) == 0
}
