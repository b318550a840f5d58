package tailindex

import (
	"encoding/binary"
	"math"
	"strconv"

	"blobtail/record"
	"blobtail/storage"
)

// This file reads rows of format 1. They had a property for each field, and their lines as a
// text, or as a zstd frame without a dictionary.

// rowProps1 are the properties of such a row besides those of each format. The process and
// the number are in the key too.
func rowProps1() []string {
	props := []string{"first", "last", "count", "omitted", "ids", "lines"}
	for i := range maxParts {
		props = append(props, part1(i))
	}
	return props
}

func part1(i int) string { return "z" + strconv.Itoa(i) }

// body1 reads the fields of a row, and returns its entries without their lines, and the lines.
func (r *Reader) body1(row *Row, from storage.Row, inverted int64) (entries []identified, lines []byte, reason string) {
	for _, p := range []struct {
		name string
		ns   *int64
	}{{"first", &row.First}, {"last", &row.Last}} {
		text, _ := from.Props[p.name].(string)
		var ok bool
		if *p.ns, ok = record.ParseCanonicalTime([]byte(text)); !ok {
			return nil, nil, "property " + p.name + " is no time"
		}
	}
	count, _ := from.Props["count"].(int64)
	omitted, ok := from.Props["omitted"].(int64)
	if row.Count, row.Omitted = int(count), int(omitted); !ok {
		row.Count = 0
	}
	if reason := row.check(inverted); reason != "" {
		return nil, nil, reason
	}
	if lines, reason = r.lines1(from); reason != "" {
		return nil, nil, reason
	}
	ids, _ := from.Props["ids"].([]byte)
	if entries, ok = parseIDs1(ids); !ok {
		return nil, nil, "its identities are damaged"
	}
	return entries, lines, ""
}

// lines1 returns the lines of the row, one after the other. They share no memory with the
// row.
func (r *Reader) lines1(row storage.Row) (lines []byte, reason string) {
	if text, ok := row.Props["lines"].(string); ok {
		return []byte(text), ""
	}
	var packed []byte
	for i := range maxParts {
		part, _ := row.Props[part1(i)].([]byte)
		packed = append(packed, part...)
	}
	lines, err := r.decoder.DecodeAll(packed, nil)
	if err != nil {
		return nil, "its lines do not decompress: " + err.Error()
	}
	return lines, ""
}

// parseIDs1 returns the identities of a row as entries, without lines and times:
//
//	uvarint  number of origins
//	16 bytes each, in the order of first use
//	uvarint  number of lines
//	for each line:
//	uvarint  its origin, counted from 0, times two; odd: the line was cut
//	uvarint  its index
func parseIDs1(b []byte) ([]identified, bool) {
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
