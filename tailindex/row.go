package tailindex

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/klauspost/compress/zstd"

	"blobtail/record"
	"blobtail/storage"
)

const (
	// maxPacked is the most bytes of a row's body, in parts of storage.MaxBinary: a row is at
	// most 1 MiB, for which Azurite counts binary data in base64.
	maxPacked = 720 << 10
	// maxParts is the most parts that a reader accepts.
	maxParts = 15
	// maxRaw is the greatest length of a row's lines in bytes.
	maxRaw = MaxLines * MaxLine
)

// part is the name of a property with a part of the body.
func part(i int) string {
	if i == 0 {
		return "d"
	}
	return "d" + strconv.Itoa(i)
}

// encode returns the row of the table, and about how many bytes of memory it has. It
// omits the oldest entries if not all fit. The format, the store and the arrival are
// properties of their own: versions that read another format decide by them what to say of a row,
// and a follower lists the arrivals alone.
func (r *Row) encode(store string, z *zstd.Encoder) (row storage.Row, size int) {
	props := map[string]any{"format": int64(Format), "arrived": r.Arrived.UTC().Format(timeLayout)}
	if store != "" {
		props["store"] = store
	}
	body := r.appendBody(z)
	for len(body) > maxPacked {
		// This many would fit if all lines were alike. Each try has at least one less.
		n := min(len(r.Entries)*maxPacked/len(body), len(r.Entries)-1)
		r.Entries = r.Entries[len(r.Entries)-n:]
		body = r.appendBody(z)
	}
	size = len(body)
	for i := 0; len(body) > 0; i++ {
		n := min(len(body), storage.MaxBinary)
		props[part(i)] = body[:n:n]
		body = body[n:]
	}
	return storage.Row{Key: keyOf(kind(r.Errors), inverse(r.Last), r.Process, r.Number), Props: props}, 700 + size
}

// rowProps are the properties that decode needs.
func rowProps() []string {
	props := []string{"format", "store", "arrived"}
	for i := range maxParts {
		props = append(props, part(i))
	}
	return props
}

// decode reads a row of the service and returns it whole, or the reason why it is invalid.
// Anybody may have written it, so decode trusts no value that it can check.
func (r *Reader) decode(service string, kind byte, from storage.Row) (Row, error) {
	row, inverse, ok := parseKey(from.Key)
	f, isRow := from.Props["format"].(int64)
	switch {
	case !isRow || f < 1:
		return Row{}, errors.New("it is not of the newest records")
	case f < Format:
		return Row{}, storage.ErrOlder
	case f > Format:
		return Row{}, fmt.Errorf("it is in format %d, and this version reads format %d: use a newer one", f, Format)
	case !ok || from.Key[0] != kind:
		return Row{}, errors.New("its key is not a row's")
	}
	if row.Arrived, ok = timeOf(from, "arrived"); !ok {
		return Row{}, errors.New("property arrived is no time")
	}
	lines, reason := r.body(&row, from, inverse)
	if reason != "" {
		return Row{}, errors.New(reason)
	}
	if row.Count-row.Omitted != len(row.Entries) {
		return Row{}, fmt.Errorf("it has %d identities for %d lines", len(row.Entries), row.Count-row.Omitted)
	}
	if reason := row.fill(service, lines); reason != "" {
		return Row{}, errors.New(reason)
	}
	row.Service = service
	return row, nil
}

// check checks the times and the counts of a row that is read.
func (r *Row) check(inverted int64) (reason string) {
	switch {
	case r.First > r.Last || inverse(r.Last) != inverted:
		return "its times do not fit its key"
	case r.Count < 1 || r.Omitted < 0 || r.Omitted > r.Count || r.Count-r.Omitted > MaxLines || r.Count > 1<<40:
		return "its counts are none"
	}
	return ""
}

func timeOf(row storage.Row, name string) (time.Time, bool) {
	text, _ := row.Props[name].(string)
	t, err := time.Parse(timeLayout, text)
	return t, err == nil && len(text) == len(timeLayout)
}

// fill adds the lines to the entries, and their times.
func (r *Row) fill(service string, lines []byte) (reason string) {
	for i := range r.Entries {
		e := &r.Entries[i]
		n := bytes.IndexByte(lines, '\n') + 1
		if n == 0 {
			return "it has fewer lines than identities"
		}
		e.Line, lines = lines[:n:n], lines[n:]
		var reason string
		if e.Time, reason = r.checkLine(service, e.Line); reason != "" {
			return fmt.Sprintf("line %d %s", i+1, reason)
		}
		if i > 0 && r.Entries[i-1].Compare(e) >= 0 {
			return fmt.Sprintf("line %d is out of order", i+1)
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
