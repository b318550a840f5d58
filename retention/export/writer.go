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

	"blobtail/reading/survey"
	"blobtail/record"
)

const (
	// A group of rows ends with so many rows, for DuckDB, or bytes of lines. A file ends behind a group with so
	// many bytes: it is in memory.
	groupRows, groupBytes, fileBytes = 122_880, 24 << 20, 16 << 20
	pageBytes, dictionaryBytes       = 256 << 10, 256 << 10
	bloomBits                        = 10 // of a value: one answer of a hundred is wrong
	mostFields                       = 60 // that have columns of their own
)

// heads are the columns before those of fields. The last one, rest, is behind them, with all other fields.
var heads = []column{{"time", survey.Int}, {"level", survey.String}, {"service", survey.String}, {"message", survey.String}}

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
func columnsOf(fields []*survey.Field) []column {
	fields = slices.SortedFunc(slices.Values(fields), func(a, b *survey.Field) int {
		return cmp.Or(cmp.Compare(b.Present, a.Present), cmp.Compare(a.Name, b.Name))
	})
	all, taken := slices.Clone(heads), []string{"time", "level", "service", "message", "rest", "date"}
	for _, f := range fields {
		folded := strings.ToLower(f.Name)
		if len(all) < len(heads)+mostFields && isColumn.MatchString(f.Name) && !slices.Contains(taken, folded) {
			taken, all = append(taken, folded), append(all, column{f.Name, typeOf(f.Types &^ survey.Null)})
		}
	}
	return append(all, column{"rest", survey.Object})
}

func typeOf(t survey.Types) survey.Types {
	switch t {
	case survey.Int, survey.Float, survey.Bool:
		return t
	case survey.Int | survey.Float:
		return survey.Float
	case survey.Object, survey.Array, survey.Object | survey.Array:
		return survey.Object
	}
	return survey.String
}

// isID reports whether a column has a Bloom filter. It has no dictionary then, which would be as large as
// the column; and a filter of a dictionary does not know the values behind its end.
func (c *column) isID() bool { return c.of&(survey.Int|survey.String) != 0 && ids.MatchString(c.name) }

func (c *column) node() parquet.Node {
	n := map[survey.Types]parquet.Node{survey.Int: parquet.Int(64), survey.Float: parquet.Leaf(parquet.DoubleType),
		survey.Bool: parquet.Leaf(parquet.BooleanType), survey.Object: parquet.JSON(), survey.String: parquet.String()}[c.of]
	switch {
	case c.name == "time":
		return parquet.Encoded(parquet.Timestamp(parquet.Nanosecond), &parquet.DeltaBinaryPacked)
	case c.name == "message", c.isID(), c.of == survey.Bool, c.of == survey.Object:
		return parquet.Optional(parquet.Encoded(n, &parquet.Plain))
	}
	return parquet.Optional(parquet.Encoded(n, &parquet.RLEDictionary))
}

// ordered is a group whose columns are in an order.
type ordered struct {
	parquet.Group
	fields []parquet.Field
}

// Fields implements parquet.Node.
func (o ordered) Fields() []parquet.Field { return o.fields }

// A writer makes files of lines.
type writer struct {
	create  func(file []byte) error
	columns []column
	at      map[string]int // places of columns
	records int64

	out              *parquet.GenericWriter[any]
	file             bytes.Buffer
	rows, bytes      int         // of the group
	nulls            parquet.Row // a row without values
	row              [1]parquet.Row
	text, rest, name []byte // of the row, and of a field
}

func newWriter(codec *zstd.Codec, fields []*survey.Field, create func(file []byte) error) *writer {
	w := &writer{create: create, columns: columnsOf(fields), at: map[string]int{}}
	group := parquet.Group{}
	var filters []parquet.BloomFilterColumn
	for i, c := range w.columns {
		group[c.name], w.at[c.name], w.nulls = c.node(), i, append(w.nulls, parquet.NullValue().Level(0, 0, i))
		if c.isID() {
			filters = append(filters, parquet.SplitBlockFilter(bloomBits, c.name))
		}
	}
	order := func(a, b parquet.Field) int { return w.at[a.Name()] - w.at[b.Name()] }
	schema := parquet.NewSchema("record", ordered{group, slices.SortedFunc(slices.Values(group.Fields()), order)})
	w.out = parquet.NewGenericWriter[any](&w.file, schema, parquet.Compression(codec), parquet.CreatedBy("blobtail", "1", ""),
		parquet.DataPageVersion(1), parquet.DataPageStatistics(false), // the index of pages has them
		parquet.PageBufferSize(pageBytes), parquet.DictionaryMaxBytes(dictionaryBytes), parquet.BloomFilters(filters...),
		parquet.SortingWriterConfig(parquet.SortingColumns(parquet.Ascending("time"))))
	return w
}

// add adds whole lines.
func (w *writer) add(lines []byte) (err error) {
	for line := range bytes.Lines(lines) {
		w.row[0], w.text = append(w.row[0][:0], w.nulls...), w.text[:0]
		w.line(w.row[0], line)
		_, err = w.out.WriteRows(w.row[:])
		w.records, w.rows, w.bytes = w.records+1, w.rows+1, w.bytes+len(line)
		if err == nil && (w.rows == groupRows || w.bytes >= groupBytes) {
			w.rows, w.bytes, err = 0, 0, w.out.Flush()
			if err == nil && w.file.Len() >= fileBytes {
				err = w.close()
			}
		}
		if err != nil {
			break
		}
	}
	return err
}

// close ends a file, if it has records.
func (w *writer) close() error {
	if w.file.Len()+w.rows == 0 {
		return nil
	}
	err := w.out.Close()
	if err == nil {
		err = w.create(w.file.Bytes())
	}
	w.rows, w.bytes = 0, 0
	w.file.Reset()
	w.out.Reset(&w.file)
	return err
}

// line sets the values of a row.
func (w *writer) line(row parquet.Row, line []byte) {
	ns, _ := record.LineTime(line)
	row[0] = parquet.Int64Value(ns).Level(0, 0, 0)
	all := record.Walk(line)
	all.Member()
	for i := 1; i < len(heads); i++ { // the first fields of a line are always there
		_, value, _ := all.Member()
		row[i] = w.textOf(value).Level(0, 1, i)
	}
	last := len(row) - 1
	w.rest = w.rest[:0]
	for key, value, ok := all.Member(); ok; key, value, ok = all.Member() {
		w.name = record.AppendUnescaped(w.name[:0], key)
		v, ok := parquet.NullValue(), false
		i := w.at[string(w.name)]
		if i >= len(heads) && i < last && row[i].IsNull() {
			v, ok = w.value(&w.columns[i], value)
		}
		switch {
		case !ok:
			w.rest = append(append(append(append(w.rest, `,"`...), key...), `":`...), value...)
		case !v.IsNull():
			row[i] = v.Level(0, 1, i)
		}
	}
	if len(w.rest) > 0 {
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

// kept copies a text until the end of the row, and textOf the text of a string of JSON.
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
