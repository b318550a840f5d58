package tailindex

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"blobtail/record"
	"blobtail/storage"
)

const (
	// maxText is the most UTF-16 units of lines that are stored as a string, which any
	// table browser shows. The store's own limit is a little higher.
	maxText = 32000
	// maxPacked is the most compressed bytes of a row, in parts of storage.MaxBinary: a
	// row is at most 1 MiB, for which Azurite counts binary data in base64.
	maxPacked = 720 << 10
	// maxParts is the most parts that a reader accepts.
	maxParts = 15
	// maxRaw is the greatest length of a row's lines in bytes.
	maxRaw = MaxLines * MaxLine
)

// encode returns the row of the table, and about how many bytes of memory it has. It
// omits the oldest entries if not all fit.
func (r *Row) encode(store string, z *zstd.Encoder) (row storage.Row, size int) {
	props := map[string]any{
		"format": int64(Format), "store": store, "process": r.Process, "number": int64(r.Number),
		"arrived": r.Arrived.UTC().Format(timeLayout),
		"first":   string(record.AppendTime(nil, r.First)), "last": string(record.AppendTime(nil, r.Last)),
		"count": int64(r.Count),
	}
	lines := join(r.Entries)
	if units(lines) <= maxText && utf8.Valid(lines) {
		props["lines"] = string(lines)
	} else {
		var packed []byte
		r.Entries, packed = pack(z, r.Entries, lines)
		lines = packed
		for i := 0; len(packed) > 0; i++ {
			n := min(len(packed), storage.MaxBinary)
			props["z"+strconv.Itoa(i)] = packed[:n:n]
			packed = packed[n:]
		}
	}
	r.Omitted = r.Count - len(r.Entries)
	props["omitted"] = int64(r.Omitted)
	ids := appendIDs(nil, r.Entries)
	props["ids"] = ids
	return storage.Row{Key: keyOf(kind(r.Errors), inverse(r.Last), r.Process, r.Number), Props: props}, 1200 + len(lines) + len(ids)
}

// pack compresses the lines. It leaves out the oldest if not all fit.
func pack(z *zstd.Encoder, entries []record.Entry, lines []byte) ([]record.Entry, []byte) {
	for {
		packed := z.EncodeAll(lines, nil)
		if len(packed) <= maxPacked {
			return entries, packed
		}
		// This many would fit if all lines were alike. Each try has at least one less.
		n := min(len(entries)*maxPacked/len(packed), len(entries)-1)
		entries = entries[len(entries)-n:]
		lines = join(entries)
	}
}

func join(entries []record.Entry) (lines []byte) {
	for i := range entries {
		lines = append(lines, entries[i].Line...)
	}
	return lines
}

// units is the length of UTF-8 text in UTF-16, as Azure counts it.
func units(text []byte) int {
	n := 0
	for _, c := range text {
		if c&0xc0 != 0x80 {
			n++
		}
		if c >= 0xf0 {
			n++
		}
	}
	return n
}

// rowProps are the properties that decode needs. The process and the number are in the
// key too.
func rowProps() []string {
	props := []string{"format", "store", "arrived", "first", "last", "count", "omitted", "ids", "lines"}
	for i := range maxParts {
		props = append(props, "z"+strconv.Itoa(i))
	}
	return props
}

// decode reads a row of the service and returns it whole, or the reason why it is invalid.
// Anybody may have written it, so decode trusts no value that it can check.
func (r *Reader) decode(service string, kind byte, from storage.Row) (Row, string) {
	row, inverse, ok := parseKey(from.Key)
	f, isRow := from.Props["format"].(int64)
	switch {
	case !isRow || f < Format:
		return Row{}, "it is not of the newest records"
	case f > Format:
		return Row{}, fmt.Sprintf("it is in format %d, and this version reads format %d: use a newer one", f, Format)
	case !ok || from.Key[0] != kind:
		return Row{}, "its key is not a row's"
	}
	if reason := row.head(from, inverse); reason != "" {
		return Row{}, reason
	}
	lines, reason := r.lines(from)
	if reason != "" {
		return Row{}, reason
	}
	ids, _ := from.Props["ids"].([]byte)
	entries, ok := parseIDs(ids)
	if !ok {
		return Row{}, "its identities are damaged"
	}
	if row.Count-row.Omitted != len(entries) {
		return Row{}, fmt.Sprintf("it has %d identities for %d lines", len(entries), row.Count-row.Omitted)
	}
	if reason := row.fill(service, entries, lines); reason != "" {
		return Row{}, reason
	}
	row.Service, row.Omitted = service, row.Count-len(row.Entries)
	return row, ""
}

// head reads the properties other than the lines.
func (r *Row) head(row storage.Row, inverted int64) (reason string) {
	var ok bool
	if r.Arrived, ok = timeOf(row, "arrived"); !ok {
		return "property arrived is no time"
	}
	for _, p := range []struct {
		name string
		ns   *int64
	}{{"first", &r.First}, {"last", &r.Last}} {
		text, _ := row.Props[p.name].(string)
		if *p.ns, ok = record.ParseCanonicalTime([]byte(text)); !ok {
			return "property " + p.name + " is no time"
		}
	}
	if r.First > r.Last || inverse(r.Last) != inverted {
		return "its times do not fit its key"
	}
	count, _ := row.Props["count"].(int64)
	omitted, ok := row.Props["omitted"].(int64)
	if !ok || count < 1 || omitted < 0 || omitted > count || count-omitted > MaxLines || count > 1<<40 {
		return "its counts are none"
	}
	r.Count, r.Omitted = int(count), int(omitted)
	return ""
}

func timeOf(row storage.Row, name string) (time.Time, bool) {
	text, _ := row.Props[name].(string)
	t, err := time.Parse(timeLayout, text)
	return t, err == nil && len(text) == len(timeLayout)
}

// lines returns the lines of the row, one after the other. They share no memory with the
// row.
func (r *Reader) lines(row storage.Row) (lines []byte, reason string) {
	if text, ok := row.Props["lines"].(string); ok {
		return []byte(text), ""
	}
	var packed []byte
	for i := range maxParts {
		part, _ := row.Props["z"+strconv.Itoa(i)].([]byte)
		packed = append(packed, part...)
	}
	lines, err := r.decoder.DecodeAll(packed, nil)
	if err != nil {
		return nil, "its lines do not decompress: " + err.Error()
	}
	return lines, ""
}

// fill adds the entries that have whole lines. Their identities are given.
func (r *Row) fill(service string, entries []identified, lines []byte) (reason string) {
	for i := range entries {
		e := &entries[i]
		n := bytes.IndexByte(lines, '\n') + 1
		if n == 0 {
			return "it has fewer lines than identities"
		}
		e.Line, lines = lines[:n:n], lines[n:]
		var reason string
		if e.Time, reason = r.checkLine(service, e.Line); reason != "" {
			return fmt.Sprintf("line %d %s", i+1, reason)
		}
		if i > 0 && entries[i-1].Compare(&e.Entry) >= 0 {
			return fmt.Sprintf("line %d is out of order", i+1)
		}
		if !e.cut {
			r.Entries = append(r.Entries, e.Entry)
		}
	}
	if len(lines) > 0 {
		return "it has more lines than identities"
	}
	return ""
}

// checkLine returns the time of a line, or the reason why it cannot belong to the row.
func (r *Row) checkLine(service string, line []byte) (ns int64, reason string) {
	ns, ok := record.LineTime(line)
	msg, isLine := record.LineMsg(line)
	switch {
	case !ok || !isLine || !bytes.HasSuffix(line, []byte("}\n")) || len(line) > MaxLine:
		return 0, "is not canonical"
	case !bytes.HasSuffix(line[:msg], []byte(`","service":"`+service+`","msg":"`)):
		return 0, "is not of this service"
	case ns < r.First || ns > r.Last:
		return 0, "is not of the row's times"
	case r.Errors && !isError(record.LineLevel(line)):
		return 0, "is no error"
	}
	return ns, ""
}

// isError reports whether records of a level have rows of their own.
func isError(l record.Level) bool { return l == record.Error || l == record.Critical }

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
