package record

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
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
	a, b := e.Key(), other.Key()
	return a.Compare(&b)
}

// Key is the place of the entry in the order of records.
func (e *Entry) Key() Key { return Key{e.Time, e.ID.Origin, e.ID.Index} }

// AppendMarked appends the line of an entry with the id of its record behind it.
func (e *Entry) AppendMarked(dst []byte) []byte {
	at := e.Key()
	return append(at.Append(append(append(dst, bytes.TrimSuffix(e.Line, []byte("\n"))...), '\t')), '\n')
}

// Unmark sets an entry to that of a line of AppendMarked. It appends the line to dst.
func (e *Entry) Unmark(dst, marked []byte) ([]byte, error) {
	var at Key
	line, id, _ := bytes.Cut(bytes.TrimSuffix(marked, []byte("\n")), []byte("\t"))
	if err := at.UnmarshalText(id); err != nil {
		return dst, err
	}
	from := len(dst)
	dst = append(append(dst, line...), '\n')
	*e = Entry{at.Time, ID{at.Origin, at.Index}, dst[from:]}
	return dst, nil
}

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

// Append appends the id by which people and programs name a record, which stays the same when blobs
// are compacted: <ns>-<origin, 32 hex digits>-<index>.
func (k *Key) Append(dst []byte) []byte {
	dst = append(strconv.AppendInt(dst, k.Time, 10), '-')
	dst = append(hex.AppendEncode(dst, k.Origin[:]), '-')
	return strconv.AppendUint(dst, uint64(k.Index), 10)
}

// UnmarshalText reads the id of a record.
func (k *Key) UnmarshalText(text []byte) error {
	read, ok := parseKey(text)
	if !ok {
		return fmt.Errorf("%.100q is no id of a record; form=events has them, such as 1795323600500000000-019e7d0f5a7c00000000000000000000-3", text)
	}
	*k = read
	return nil
}

func parseKey(text []byte) (k Key, ok bool) {
	index := bytes.LastIndexByte(text, '-')
	origin := index - 2*len(k.Origin)
	if origin < 1 || text[origin-1] != '-' {
		return k, false
	}
	n, err := strconv.ParseUint(string(text[index+1:]), 10, 32)
	_, bad := hex.Decode(k.Origin[:], text[origin:index])
	ns, worse := strconv.ParseInt(string(text[:origin-1]), 10, 64)
	k.Time, k.Index = ns, uint32(n)
	var own [64]byte
	return k, cmp.Or(err, bad, worse) == nil && bytes.Equal(k.Append(own[:0]), text) // it has one form
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
