package export

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"

	"blobtail/reading/survey"
)

// mostFields is how many fields have columns of their own, and longestName the length of their names.
const mostFields, longestName = 60, 128

// A kind is the type of a column.
type kind uint8

const (
	text    kind = iota // also of fields with values of several types: these are as in JSON
	integer             // of 64 bits
	decimal             // a double
	boolean
	nested // JSON
)

// A column has the values of a field.
type column struct {
	name string
	kind kind
}

// heads are the columns before those of fields. The last one of all has the other fields.
var heads = []string{"time", "level", "service", "message"}

const rest = "rest"

// columnsOf chooses the fields that most records have. Engines take upper and lower case for equal, and
// the name of a directory for that of a column: a field whose name is taken has no column.
func columnsOf(fields []*survey.Field) (all []column) {
	fields = slices.SortedFunc(slices.Values(fields), func(a, b *survey.Field) int {
		return cmp.Or(cmp.Compare(b.Present, a.Present), cmp.Compare(a.Name, b.Name))
	})
	taken := map[string]bool{rest: true, "date": true}
	for _, name := range heads {
		taken[name] = true
	}
	for _, f := range fields {
		folded := strings.ToLower(f.Name)
		if len(all) < mostFields && !taken[folded] && isColumn(f.Name) {
			taken[folded] = true
			all = append(all, column{f.Name, kindOf(f.Types)})
		}
	}
	return all
}

// isColumn reports whether all engines take a name for one of a column. Spark is the strictest.
func isColumn(name string) bool {
	return name != "" && len(name) <= longestName && utf8.ValidString(name) &&
		!strings.ContainsFunc(name, func(r rune) bool { return strings.ContainsRune(" ,;{}()=\"`", r) || !unicode.IsPrint(r) })
}

func kindOf(types survey.Types) kind {
	switch types &^= survey.Null; types {
	case survey.Int:
		return integer
	case survey.Float, survey.Int | survey.Float:
		return decimal
	case survey.Bool:
		return boolean
	case survey.Object, survey.Array, survey.Object | survey.Array:
		return nested
	}
	return text
}

// ids are names of fields with ids.
var ids = regexp.MustCompile(`(?i:^(.*[._-])?(uu|gu)?id$)|[a-z](Id|ID|Uuid|UUID)$`)

// isID reports whether the column has a Bloom filter. It has no dictionary then: that of an id is as large as
// the column, and values behind the end of a dictionary would be in no filter.
func (c *column) isID() bool { return (c.kind == text || c.kind == integer) && ids.MatchString(c.name) }

func dict(n parquet.Node) parquet.Node  { return parquet.Encoded(n, &parquet.RLEDictionary) }
func plain(n parquet.Node) parquet.Node { return parquet.Encoded(n, &parquet.Plain) }

// node is the column in a schema. A dictionary that grows too large ends, and plain values go on.
func (c *column) node() parquet.Node {
	switch {
	case c.kind == integer && c.isID():
		return parquet.Optional(plain(parquet.Int(64)))
	case c.kind == integer:
		return parquet.Optional(dict(parquet.Int(64)))
	case c.kind == decimal:
		return parquet.Optional(dict(parquet.Leaf(parquet.DoubleType)))
	case c.kind == boolean:
		return parquet.Optional(parquet.Leaf(parquet.BooleanType))
	case c.kind == nested:
		return parquet.Optional(plain(parquet.JSON()))
	case c.isID():
		return parquet.Optional(plain(parquet.String()))
	}
	return parquet.Optional(dict(parquet.String()))
}

// ordered is a group with its columns in an order of their own.
type ordered struct {
	parquet.Group
	names []string
}

// Fields implements [parquet.Node].
func (o ordered) Fields() []parquet.Field {
	at := map[string]int{}
	for i, name := range o.names {
		at[name] = i
	}
	return slices.SortedFunc(slices.Values(o.Group.Fields()), func(a, b parquet.Field) int { return cmp.Compare(at[a.Name()], at[b.Name()]) })
}

// schema has the columns of a day.
func schema(columns []column) *parquet.Schema {
	o := ordered{parquet.Group{
		"time":  parquet.Encoded(parquet.Timestamp(parquet.Nanosecond), &parquet.DeltaBinaryPacked),
		"level": dict(parquet.String()), "service": dict(parquet.String()),
		"message": plain(parquet.String()), rest: parquet.Optional(plain(parquet.JSON())),
	}, slices.Clone(heads)}
	for i := range columns {
		o.Group[columns[i].name] = columns[i].node()
		o.names = append(o.names, columns[i].name)
	}
	o.names = append(o.names, rest)
	return parquet.NewSchema("record", o)
}
