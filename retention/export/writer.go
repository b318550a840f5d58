package export

import (
	"bytes"
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"blobtail/internal/spill"
	"blobtail/reading/survey"
	"blobtail/record"
)

const (
	// A group of rows ends with so many rows, for DuckDB, or bytes of lines. A file ends behind a group or an
	// hour, with so many bytes: it is in memory while it is stored.
	groupRows, groupBytes, fileBytes, hourBytes = 122_880, 64 << 20, 64 << 20, 32 << 20
	batchRows, batchBytes                       = 1024, 1 << 20 // of values that are handed on
	pageBytes, dictionaryBytes                  = 256 << 10, 256 << 10
	bloomBits                                   = 10 // of a value: one answer of a hundred is wrong
)

// mostFields is how many fields have columns of their own.
const mostFields = 60

// heads are the columns before those of fields, and rest is the one behind them, of all other fields.
var heads = []string{"time", "level", "service", "message"}

const rest = "rest"

// isColumn tells names that all engines take, of which Spark is the strictest.
var isColumn = regexp.MustCompile(`^[^ ,;{}()="\x60\pC\pZ]{1,128}$`)

// ids are names of fields with ids.
var ids = regexp.MustCompile(`(?i:^(.*[._-])?(uu|gu)?id$)|[a-z](Id|ID|Uuid|UUID)$`)

// A column has the values of a field. Its type is Int, Float, Bool, Object for JSON, or String for all else.
type column struct {
	name string
	of   survey.Types
}

// columnsOf chooses the fields that most records have. Engines take upper and lower case for equal, and the
// name of a directory for that of a column: a field whose name is taken has none.
func columnsOf(fields []*survey.Field) (all []column) {
	fields = slices.SortedFunc(slices.Values(fields), func(a, b *survey.Field) int {
		return cmp.Or(cmp.Compare(b.Present, a.Present), cmp.Compare(a.Name, b.Name))
	})
	taken := append([]string{rest, "date"}, heads...)
	for _, f := range fields {
		if folded := strings.ToLower(f.Name); len(all) < mostFields && isColumn.MatchString(f.Name) && !slices.Contains(taken, folded) {
			taken, all = append(taken, folded), append(all, column{f.Name, typeOf(f.Types &^ survey.Null)})
		}
	}
	return all
}

func typeOf(t survey.Types) survey.Types {
	switch {
	case t == survey.Int, t == survey.Bool:
		return t
	case t != 0 && t&^(survey.Int|survey.Float) == 0:
		return survey.Float
	case t != 0 && t&^(survey.Object|survey.Array) == 0:
		return survey.Object
	}
	return survey.String
}

// isID reports whether a column has a Bloom filter. It has no dictionary then, which would be as large as
// the column; and a filter of a dictionary does not know the values behind its end.
func (c *column) isID() bool { return c.of&(survey.Int|survey.String) != 0 && ids.MatchString(c.name) }

func dict(n parquet.Node) parquet.Node  { return parquet.Encoded(n, &parquet.RLEDictionary) }
func plain(n parquet.Node) parquet.Node { return parquet.Encoded(n, &parquet.Plain) }

func (c *column) node() parquet.Node {
	n := map[survey.Types]parquet.Node{survey.Int: parquet.Int(64), survey.Float: parquet.Leaf(parquet.DoubleType),
		survey.Bool: parquet.Leaf(parquet.BooleanType), survey.Object: parquet.JSON(), survey.String: parquet.String()}[c.of]
	if c.isID() || c.of == survey.Bool || c.of == survey.Object {
		return parquet.Optional(plain(n))
	}
	return parquet.Optional(dict(n))
}

// ordered is a group whose columns have places.
type ordered struct {
	parquet.Group
	at map[string]int
}

// Fields implements parquet.Node.
func (o ordered) Fields() []parquet.Field {
	all := o.Group.Fields()
	slices.SortFunc(all, func(a, b parquet.Field) int { return cmp.Compare(o.at[a.Name()], o.at[b.Name()]) })
	return all
}

// schema has the columns of a day, and says where they are.
func schema(columns []column) (*parquet.Schema, map[string]int) {
	o := ordered{parquet.Group{
		"time": parquet.Encoded(parquet.Timestamp(parquet.Nanosecond), &parquet.DeltaBinaryPacked), "level": dict(parquet.String()),
		"service": dict(parquet.String()), "message": plain(parquet.String()), rest: parquet.Optional(plain(parquet.JSON())),
	}, map[string]int{rest: len(heads) + len(columns)}}
	for i, name := range heads {
		o.at[name] = i
	}
	for i, c := range columns {
		o.Group[c.name], o.at[c.name] = c.node(), len(heads)+i
	}
	return parquet.NewSchema("record", o), o.at
}

// A writer makes files of lines.
type writer struct {
	space   *spill.Space
	columns []column
	at      map[string]int // places of columns
	options []parquet.WriterOption
	records int64
	ends    []int64 // of files in the space

	out         *parquet.GenericWriter[any] // nil: no file is open
	written     int64                       // to the space
	hour        int64
	rows, bytes int           // of the group
	batch       []parquet.Row // its first n have values
	n           int
	nulls       parquet.Row // a row without values
	text, rest  []byte      // of the batch, and of a line
}

func newWriter(space *spill.Space, codec *zstd.Codec, fields []*survey.Field) *writer {
	w := &writer{space: space, columns: columnsOf(fields)}
	schema, at := schema(w.columns)
	w.at, w.nulls, w.batch = at, make(parquet.Row, len(at)), make([]parquet.Row, batchRows)
	for i := range w.nulls {
		w.nulls[i] = parquet.NullValue().Level(0, 0, i)
	}
	var filters []parquet.BloomFilterColumn
	for _, c := range w.columns {
		if c.isID() {
			filters = append(filters, parquet.SplitBlockFilter(bloomBits, c.name))
		}
	}
	w.options = []parquet.WriterOption{schema, parquet.Compression(codec), parquet.CreatedBy("blobtail", strconv.Itoa(form), ""),
		parquet.DataPageVersion(1), parquet.DataPageStatistics(false), // the index of pages has them
		parquet.PageBufferSize(pageBytes), parquet.DictionaryMaxBytes(dictionaryBytes), parquet.BloomFilters(filters...),
		parquet.SortingWriterConfig(parquet.SortingColumns(parquet.Ascending("time")))}
	return w
}

// Write implements io.Writer for the open file.
func (w *writer) Write(p []byte) (int, error) {
	_, err := w.space.Write(p)
	w.written += int64(len(p))
	return len(p), err
}

// add adds whole lines.
func (w *writer) add(lines []byte) (err error) {
	for line := range bytes.Lines(lines) {
		ns, _ := record.LineTime(line)
		if err = w.cut(ns / 3600e9); err != nil {
			break
		}
		w.batch[w.n] = append(w.batch[w.n][:0], w.nulls...)
		w.line(w.batch[w.n], line, ns)
		w.n, w.records, w.rows, w.bytes = w.n+1, w.records+1, w.rows+1, w.bytes+len(line)
		if w.n == batchRows || len(w.text) >= batchBytes {
			err = w.flush()
		}
	}
	return err
}

// cut begins and ends files and groups of rows, before a record of an hour.
func (w *writer) cut(hour int64) (err error) {
	full, next := w.rows >= groupRows || w.bytes >= groupBytes, hour != w.hour
	if w.hour = hour; w.out != nil && full {
		err = w.group()
	}
	if w.out != nil && err == nil && (full && w.out.Size() >= fileBytes || next && w.out.Size() >= hourBytes) {
		err = w.close()
	}
	if w.out == nil {
		w.out = parquet.NewGenericWriter[any](w, w.options...)
	}
	return err
}

// group ends a group of rows.
func (w *writer) group() error {
	w.rows, w.bytes = 0, 0
	if err := w.flush(); err != nil {
		return err
	}
	return w.out.Flush()
}

// close ends a file, if one is open.
func (w *writer) close() error {
	if w.out == nil {
		return nil
	}
	err := w.group()
	if err == nil {
		err = w.out.Close()
	}
	w.ends, w.out = append(w.ends, w.written), nil
	return err
}

// flush hands the batch on.
func (w *writer) flush() error {
	_, err := w.out.WriteRows(w.batch[:w.n])
	w.n, w.text = 0, w.text[:0]
	return err
}

// line sets the values of a row.
func (w *writer) line(row parquet.Row, line []byte, ns int64) {
	row[0] = parquet.Int64Value(ns).Level(0, 0, 0)
	all := record.Walk(line)
	all.Member()
	for i := range heads[1:] { // the first fields of a line are always there
		_, value, _ := all.Member()
		row[i+1] = w.textOf(value).Level(0, 0, i+1)
	}
	w.rest = w.rest[:0]
	for key, value, ok := all.Member(); ok; key, value, ok = all.Member() {
		name := key
		if bytes.IndexByte(key, '\\') >= 0 {
			name = record.AppendUnescaped(nil, key)
		}
		v, ok := parquet.NullValue(), false
		i := w.at[string(name)]
		if at := i - len(heads); at >= 0 && at < len(w.columns) && row[i].IsNull() {
			v, ok = w.value(&w.columns[at], value)
		}
		switch {
		case !ok:
			w.rest = append(append(append(append(w.rest, `,"`...), key...), `":`...), value...)
		case !v.IsNull():
			row[i] = v.Level(0, 1, i)
		}
	}
	if last := len(row) - 1; len(w.rest) > 0 {
		w.rest[0] = '{'
		row[last] = w.kept(append(w.rest, '}')).Level(0, 1, last)
	}
}

// value is a value for the column of its field; false: it cannot be there.
func (w *writer) value(c *column, value []byte) (parquet.Value, bool) {
	switch {
	case value[0] == 'n':
		return parquet.NullValue(), true
	case c.of == survey.Int:
		n, err := strconv.ParseInt(string(value), 10, 64)
		return parquet.Int64Value(n), err == nil
	case c.of == survey.Float:
		f, err := strconv.ParseFloat(string(value), 64) // an integer of more bits stays exact in the last column
		return parquet.DoubleValue(f), err == nil && (math.Abs(f) < 1<<53 || bytes.ContainsAny(value, ".eE"))
	case c.of == survey.Bool:
		return parquet.BooleanValue(value[0] == 't'), true
	case value[0] == '"':
		return w.textOf(value), true
	}
	return w.kept(value), true
}

// kept copies a text until the end of the batch, and textOf the text of a string of JSON.
func (w *writer) kept(text []byte) parquet.Value {
	from := len(w.text)
	w.text = append(w.text, text...)
	return parquet.ByteArrayValue(w.text[from:])
}

func (w *writer) textOf(value []byte) parquet.Value {
	from := len(w.text)
	w.text = record.AppendUnescaped(w.text, value[1:len(value)-1])
	return parquet.ByteArrayValue(w.text[from:])
}
