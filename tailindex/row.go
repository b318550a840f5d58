package tailindex

import (
	"bytes"
	"fmt"
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

// content is the contents of one row.
type content struct {
	kind        byte
	process     string
	number      uint64
	store       string
	arrived     time.Time
	first, last int64
	count       int
	entries     []record.Entry // in order
}

// row makes the row and returns its number of lines: it omits the oldest lines if not all
// fit.
func (c *content) row(p *packer) (storage.Row, int, error) {
	props := map[string]any{
		"format": int64(Format), "store": c.store, "process": c.process, "number": int64(c.number),
		"arrived": c.arrived.UTC().Format(timeLayout),
		"first":   string(record.AppendTime(nil, c.first)), "last": string(record.AppendTime(nil, c.last)),
		"count": int64(c.count),
	}
	kept := c.entries
	lines := join(kept)
	if units(lines) <= maxText && utf8.Valid(lines) {
		props["lines"] = string(lines)
	} else {
		z, err := p.encoder()
		if err != nil {
			return storage.Row{}, 0, err
		}
		var packed []byte
		kept, packed = pack(z, kept, lines)
		for i := 0; len(packed) > 0; i++ {
			n := min(len(packed), storage.MaxBinary)
			props["z"+strconv.Itoa(i)] = packed[:n:n]
			packed = packed[n:]
		}
	}
	props["omitted"] = int64(c.count - len(kept))
	props["ids"] = appendIDs(nil, kept)
	return storage.Row{Key: rowKey(c.kind, c.last, c.process, c.number), Props: props}, len(kept), nil
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

func join(entries []record.Entry) []byte {
	n := 0
	for i := range entries {
		n += len(entries[i].Line)
	}
	lines := make([]byte, 0, n)
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

// decoder reads rows, and anybody may have written them. Only one goroutine may use it;
// the zero decoder is ready.
type decoder struct{ z *zstd.Decoder }

func (d *decoder) unpack(packed []byte) ([]byte, error) {
	if d.z == nil {
		z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxMemory(maxRaw), zstd.WithDecoderMaxWindow(8<<20))
		if err != nil {
			return nil, err
		}
		d.z = z
	}
	return d.z.DecodeAll(packed, nil)
}

func (d *decoder) close() {
	if d.z != nil {
		d.z.Close()
	}
}

// row reads a row of the service and returns it whole, or the reason why it is invalid.
// It trusts no value that it can check.
func (d *decoder) row(service string, kind byte, row storage.Row) (Row, string) {
	if reason := checkFormat(row); reason != "" {
		return Row{}, reason
	}
	key, ok := parseKey(row.Key)
	if !ok || key.kind != kind {
		return Row{}, "its key is not a row's"
	}
	r := Row{Key: row.Key, Process: key.process, Number: key.number, Errors: kind == kindErrors}
	if reason := r.head(row, key); reason != "" {
		return Row{}, reason
	}
	lines, reason := d.lines(row)
	if reason != "" {
		return Row{}, reason
	}
	ids, _ := row.Props["ids"].([]byte)
	entries, ok := parseIDs(ids)
	if !ok {
		return Row{}, "its identities are damaged"
	}
	if r.Count-r.Omitted != len(entries) {
		return Row{}, fmt.Sprintf("it has %d identities for %d lines", len(entries), r.Count-r.Omitted)
	}
	if reason := r.fill(service, entries, lines); reason != "" {
		return Row{}, reason
	}
	r.Omitted = r.Count - len(r.Entries)
	return r, ""
}

func checkFormat(row storage.Row) (reason string) {
	f, ok := row.Props["format"].(int64)
	switch {
	case !ok || f < Format:
		return "it is not of the newest records"
	case f > Format:
		return fmt.Sprintf("it is in format %d, and this version reads format %d: use a newer one", f, Format)
	}
	return ""
}

// head reads the properties other than the lines.
func (r *Row) head(row storage.Row, key parsedKey) (reason string) {
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
	if r.First > r.Last || inverse(r.Last) != key.inverse {
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
func (d *decoder) lines(row storage.Row) (lines []byte, reason string) {
	if text, ok := row.Props["lines"].(string); ok {
		return []byte(text), ""
	}
	var packed []byte
	for i := range maxParts {
		part, _ := row.Props["z"+strconv.Itoa(i)].([]byte)
		packed = append(packed, part...)
	}
	lines, err := d.unpack(packed)
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
