package export

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
	"math"
	"strconv"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"blobtail/catalog/closed"
	"blobtail/internal/spill"
	"blobtail/record"
)

const (
	// A group of rows ends with so many rows, or bytes of lines. Less than 122,880 rows are slower in DuckDB.
	groupRows, groupBytes = 122_880, 64 << 20
	// A file ends behind a group or an hour if it has so many bytes. A file is in memory while it is stored.
	fileBytes, hourBytes = 64 << 20, 32 << 20
	// Values are handed on in batches of so many rows, or bytes.
	batchRows, batchBytes = 1024, 1 << 20

	pageBytes, dictionaryBytes = 256 << 10, 256 << 10
	bloomBits                  = 10 // of each value: one answer of a hundred is wrong
)

// A file is Parquet in a space.
type file struct {
	at, size int64
	sum      closed.Hash
}

// A writer makes files of lines.
type writer struct {
	space   *spill.Space
	columns []column
	at      map[string]int // the number of a field's column
	schema  *parquet.Schema
	options []parquet.WriterOption
	records int64
	files   []file

	out    *parquet.Writer // nil: there is no file that is not closed
	hash   hash.Hash
	hour   int64
	rows   int // of the group
	bytes  int
	values [][]parquet.Value // of the batch, by column
	text   []byte            // of them
	rest   []byte
}

func newWriter(space *spill.Space, columns []column) *writer {
	w := &writer{space: space, columns: columns, at: map[string]int{}, schema: schema(columns), hash: sha256.New()}
	w.values = make([][]parquet.Value, len(heads)+len(columns)+1)
	w.options = []parquet.WriterOption{w.schema, parquet.Compression(&zstd.Codec{}), parquet.CreatedBy("blobtail", strconv.Itoa(form), ""),
		parquet.DataPageVersion(1), parquet.PageBufferSize(pageBytes), parquet.DictionaryMaxBytes(dictionaryBytes), parquet.DataPageStatistics(false),
		parquet.SortingWriterConfig(parquet.SortingColumns(parquet.Ascending("time")))}
	var filters []parquet.BloomFilterColumn
	for i, c := range columns {
		w.at[c.name] = len(heads) + i
		if c.isID() {
			filters = append(filters, parquet.SplitBlockFilter(bloomBits, c.name))
		}
	}
	w.options = append(w.options, parquet.BloomFilters(filters...))
	return w
}

// Write implements io.Writer for the file in work.
func (w *writer) Write(p []byte) (int, error) {
	f := &w.files[len(w.files)-1]
	at, err := w.space.Write(p)
	if f.size == 0 {
		f.at = at
	}
	f.size += int64(len(p))
	w.hash.Write(p)
	return len(p), err
}

// add adds whole lines.
func (w *writer) add(lines []byte) error {
	for line := range bytes.Lines(lines) {
		ns, ok := record.LineTime(line)
		msg, has := record.LineMsg(line)
		if !ok || !has {
			return errors.New("a stored line has no time or no message")
		}
		if err := w.cut(ns / 3600e9); err != nil {
			return err
		}
		w.line(line, ns, msg)
		w.records++
		w.rows++
		w.bytes += len(line)
		if len(w.values[0]) == batchRows || len(w.text) >= batchBytes {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// cut begins and ends files and groups of rows, before a record of an hour.
func (w *writer) cut(hour int64) error {
	full, other := w.rows >= groupRows || w.bytes >= groupBytes, hour != w.hour
	w.hour = hour
	if w.out != nil && (full || other) {
		if full {
			if err := w.group(); err != nil {
				return err
			}
		}
		if size := w.out.Size(); size >= fileBytes || other && size >= hourBytes {
			if err := w.close(); err != nil {
				return err
			}
		}
	}
	if w.out == nil {
		w.files = append(w.files, file{})
		w.out = parquet.NewWriter(w, w.options...)
		w.hash.Reset()
	}
	return nil
}

// group ends a group of rows.
func (w *writer) group() error {
	w.rows, w.bytes = 0, 0
	if err := w.flush(); err != nil {
		return err
	}
	return w.out.Flush()
}

// close ends a file, if there is one.
func (w *writer) close() error {
	if w.out == nil {
		return nil
	}
	err := w.group()
	if err == nil {
		err = w.out.Close()
	}
	w.hash.Sum(w.files[len(w.files)-1].sum[:0])
	w.out = nil
	return err
}

// flush hands the values of the batch on.
func (w *writer) flush() error {
	for i, c := range w.out.ColumnWriters() {
		if _, err := c.WriteRowValues(w.values[i]); err != nil {
			return err
		}
		w.values[i] = w.values[i][:0]
	}
	w.text = w.text[:0]
	return nil
}

// line adds the values of a line, whose message begins at msg.
func (w *writer) line(line []byte, ns int64, msg int) {
	row := len(w.values[0])
	w.values[0] = append(w.values[0], parquet.Int64Value(ns).Level(0, 0, 0))
	service, _ := record.LineService(line)
	level := line[len(`{"ts":"2026-11-20T15:04:05.000000000Z","level":"`):]
	end := record.StringEnd(line, msg)
	for i, inner := range [][]byte{level[:record.StringEnd(level, 0)-1], service, line[msg : end-1]} {
		w.values[i+1] = append(w.values[i+1], parquet.ByteArrayValue(w.plain(inner)).Level(0, 0, i+1))
	}
	w.rest = w.rest[:0]
	for fields := record.Walk(line[end:]); ; {
		key, value, ok := fields.Member()
		if !ok {
			break
		}
		name := key
		if bytes.IndexByte(key, '\\') >= 0 {
			name = record.AppendUnescaped(nil, key)
		}
		if i, ok := w.at[string(name)]; !ok || len(w.values[i]) > row || !w.value(i, value) {
			w.rest = append(append(append(append(w.rest, `,"`...), key...), `":`...), value...)
		}
	}
	last := len(w.values) - 1
	if len(w.rest) > 0 {
		w.rest[0] = '{'
		w.values[last] = append(w.values[last], parquet.ByteArrayValue(w.keep(append(w.rest, '}'))).Level(0, 1, last))
	}
	for i := range w.values {
		if len(w.values[i]) == row {
			w.values[i] = append(w.values[i], parquet.NullValue().Level(0, 0, i))
		}
	}
}

// value adds a value to the column of its field; false: it cannot be there.
func (w *writer) value(i int, value []byte) bool {
	var v parquet.Value
	switch c := w.columns[i-len(heads)]; {
	case value[0] == 'n':
		w.values[i] = append(w.values[i], parquet.NullValue().Level(0, 0, i))
		return true
	case c.kind == integer:
		n, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil {
			return false
		}
		v = parquet.Int64Value(n)
	case c.kind == decimal:
		f, err := strconv.ParseFloat(string(value), 64)
		if err != nil || math.Abs(f) >= 1<<53 && bytes.IndexAny(value, ".eE") < 0 { // an integer that a double has not
			return false
		}
		v = parquet.DoubleValue(f)
	case c.kind == boolean:
		v = parquet.BooleanValue(value[0] == 't')
	case c.kind == text && value[0] == '"':
		v = parquet.ByteArrayValue(w.plain(value[1 : len(value)-1]))
	default:
		v = parquet.ByteArrayValue(w.keep(value))
	}
	w.values[i] = append(w.values[i], v.Level(0, 1, i))
	return true
}

// keep copies a text that is valid until the end of the batch.
func (w *writer) keep(text []byte) []byte {
	from := len(w.text)
	w.text = append(w.text, text...)
	return w.text[from:len(w.text):len(w.text)]
}

// plain is keep for the inside of a string of JSON.
func (w *writer) plain(inner []byte) []byte {
	from := len(w.text)
	w.text = record.AppendUnescaped(w.text, inner)
	return w.text[from:len(w.text):len(w.text)]
}
