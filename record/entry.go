package record

import (
	"cmp"
	"encoding/binary"
)

// ID distinguishes a record from all others: its origin, and its place there, which
// is [Request.Index].
type ID struct {
	Origin Origin
	Index  uint32
}

// Entry is a record outside of a blob: from the log, or from the table of the newest
// records.
type Entry struct {
	Time int64 // effective time, Unix nanoseconds
	ID   ID
	Line []byte // canonical, with its newline
}

// Compare orders entries in the order of records everywhere: by time, origin and
// index.
func (e *Entry) Compare(other *Entry) int {
	a, b := e.key(), other.key()
	return a.Compare(&b)
}

func (e *Entry) key() Key { return Key{e.Time, e.ID.Origin, e.ID.Index} }

// Run is the lines of a request for one service and one period, in the order of time.
// It is a view of the request, and valid only as long as that.
type Run struct {
	Service string
	Origin  Origin // that of the request, or of its place in the log
	Request *Request
	Order   []uint32 // the numbers of the request's lines, in order
}

// Len is the number of lines.
func (r *Run) Len() int { return len(r.Order) }

// Entry is line i. Its bytes are the request's.
func (r *Run) Entry(i int) Entry {
	n := r.Order[i]
	l := &r.Request.Lines[n]
	return Entry{
		Time: l.Time, ID: ID{r.Origin, r.Request.Index(n)},
		Line: r.Request.Data[l.Off : l.Off+l.Len],
	}
}

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
