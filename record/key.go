package record

import (
	"cmp"
	"encoding/binary"
)

// Key is the place of a record in the only order of records: by time, then origin,
// then index. Two records with one key have the same identity.
type Key struct {
	Time   int64 // effective time, Unix nanoseconds
	Origin Origin
	Index  uint32
}

// Compare is negative when k comes before other, 0 for the same key, else positive.
func (k *Key) Compare(other *Key) int {
	if k.Time != other.Time {
		return cmp.Compare(k.Time, other.Time)
	}
	if n := k.Origin.Compare(&other.Origin); n != 0 {
		return n
	}
	return cmp.Compare(k.Index, other.Index)
}

// Compare orders origins like their bytes. Loading two integers is faster than
// bytes.Compare.
func (o *Origin) Compare(other *Origin) int {
	if a, b := binary.BigEndian.Uint64(o[:8]), binary.BigEndian.Uint64(other[:8]); a != b {
		return cmp.Compare(a, b)
	}
	return cmp.Compare(binary.BigEndian.Uint64(o[8:]), binary.BigEndian.Uint64(other[8:]))
}
