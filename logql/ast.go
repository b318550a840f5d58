// Package logql knows the query language LogQL: its texts and its trees.
//
// [Parse] makes a tree of a text. String of a tree is a text in one line with the same tree,
// and [Format] is one in several lines. The package knows no records and runs nothing: package
// stage runs a pipeline over a record, package metric evaluates metric queries.
//
// [Parse] also checks the parts that later packages rely on: expressions compile and are not
// too large, patterns and paths have their form ([Parts], [Path], [IPRange] split them), and
// aggregations have the unwrap, parameter and grouping that they need. Only templates are left
// to package stage. Texts are at most [MaxText] bytes, and of bounded depth: a tree may be
// walked by recursion.
//
// Errors are [*Error]. Positions are of runes, from 1. Anything that the language has and
// blobtail does not is an error that names it.
//
// # How a query is run
//
// The tree says how a query is run, and the caller of each part decides whether an index or a
// scan answers:
//
//   - The selector and the first filters become a filter of package blobs: services, levels, and
//     texts that every match surely has. Package stage compiles the rest into one function over
//     a stored line. The decoders of blocks call it, in parallel and before limits. It looks up
//     only names that the query has.
//   - Only lines that are put out are taken apart into labels, several batches at once.
//   - Package metric gathers samples, or counts of an index, in cells between the borders of
//     windows. It reads no store. Package loki gives it the counts of a histogram if services
//     and levels alone decide, and the buckets fit. A test draws queries and answers each both
//     ways.
//   - A second evaluator in the tests, with no code in common, judges both packages.
package logql

import "time"

// An Expr is a query: a [*LogExpr], or a [Metric].
type Expr interface {
	// String is the query in one line, as [Parse] takes it.
	String() string
	expr()
}

// A Metric is a query with numbers as its result: [*RangeAgg], [*VectorAgg], [*Binary],
// [*Number] or [*Vector].
type Metric interface {
	Expr
	metric()
}

// A LogExpr selects records, and passes each through stages.
type LogExpr struct {
	Selector []Matcher // all must match; none: all services
	Stages   []Stage
}

// A MatchOp compares a label with a text.
type MatchOp string

// The operators of matchers. Expressions must match the whole label.
const (
	Equal      MatchOp = "="
	NotEqual   MatchOp = "!="
	Matches    MatchOp = "=~"
	NotMatches MatchOp = "!~"
)

// A Matcher is a condition on a label. A label that is missing is "".
type Matcher struct {
	Name  string
	Op    MatchOp
	Value string
}

// A Stage is a step of the pipeline of a [LogExpr]: [*LineFilter], [*JSON], [*Logfmt],
// [*Regexp], [*Pattern], [*Unpack], [*LineFormat], [*LabelFormat], [*Decolorize], [*Drop],
// [*Keep] or [*LabelFilter].
type Stage interface {
	String() string
	stage()
}

// A LineOp says how a line filter looks for its texts.
type LineOp string

// The operators of line filters. An expression may match anywhere in a line, a pattern must
// match all of it.
const (
	Contains    LineOp = "|="
	ContainsNot LineOp = "!="
	Like        LineOp = "|~"
	NotLike     LineOp = "!~"
	Fits        LineOp = "|>"
	FitsNot     LineOp = "!>"
)

// Negative reports whether a line is kept if none of the texts is found.
func (o LineOp) Negative() bool { return o[0] == '!' }

type (
	// A LineFilter keeps the lines that have one of some texts, or none of them.
	LineFilter struct {
		Op  LineOp
		Any []LineArg // one or more
	}
	// A LineArg is a text, an expression or a pattern, as the operator says; or an address,
	// a network or a range of addresses.
	LineArg struct {
		Text string
		IP   bool
	}
	// JSON makes labels of the members of a line that is a JSON object: of all, or some.
	JSON struct{ Extract []Extract }
	// Logfmt makes labels of the pairs of a line: of all, or some.
	Logfmt struct {
		Strict, KeepEmpty bool
		Extract           []Extract
	}
	// An Extract names the label for a member by its path, or for a pair by its key.
	Extract struct{ Name, Path string }
	// Regexp makes labels of the named groups of an expression.
	Regexp struct{ Expr string }
	// Pattern makes labels of the named parts of a pattern.
	Pattern struct{ Text string }
	// Unpack undoes the packing of labels into a line by senders.
	Unpack struct{}
	// LineFormat makes a line of labels by a template.
	LineFormat struct{ Template string }
	// LabelFormat renames labels, or makes them by templates.
	LabelFormat struct{ Set []Rename }
	// A Rename sets a label: to that of the name From, or if that is "" by a template.
	Rename struct{ Name, From, Template string }
	// Decolorize takes the colours of terminals from a line.
	Decolorize struct{}
	// Drop removes labels.
	Drop struct{ Labels []NameMatch }
	// Keep removes all other labels.
	Keep struct{ Labels []NameMatch }
	// A NameMatch is a label by its name, or if Op is not "" only with some values.
	NameMatch struct {
		Name  string
		Op    MatchOp
		Value string
	}
	// LabelFilter keeps the lines with labels for which a condition is true.
	LabelFilter struct{ Cond Cond }
)

// A Cond is a condition on labels: [*And], [*Or], [*MatchCond], [*CompareCond] or [*IPCond].
type Cond interface {
	String() string
	cond()
}

// A CompareOp compares numbers.
type CompareOp string

// The operators of comparisons. "=" is parsed as "==".
const (
	EQ CompareOp = "=="
	NE CompareOp = "!="
	GT CompareOp = ">"
	GE CompareOp = ">="
	LT CompareOp = "<"
	LE CompareOp = "<="
)

// A Unit says how the text of a label is read as a number.
type Unit int

// The units of comparisons.
const (
	Plain    Unit = iota // a number
	Duration             // as of Go's time.ParseDuration, in seconds
	Bytes                // a size such as 5KB or 3MiB, in bytes
)

type (
	// And is true if both conditions are.
	And struct{ Left, Right Cond }
	// Or is true if one of the conditions is.
	Or struct{ Left, Right Cond }
	// MatchCond compares a label with a text.
	MatchCond struct{ Matcher }
	// CompareCond compares a label with a number.
	CompareCond struct {
		Name  string
		Op    CompareOp
		Value float64
		Unit  Unit
		Text  string // of the value, as it was written
	}
	// IPCond compares a label with an address, a network or a range of addresses.
	IPCond struct {
		Name string
		Op   MatchOp // Equal or NotEqual
		Text string
	}
)

// A RangeOp makes one number of the samples of a series in a window.
type RangeOp string

// A VectorOp makes one series of several.
type VectorOp string

type (
	// RangeAgg is an aggregation over time.
	RangeAgg struct {
		Op       RangeOp // such as "count_over_time"
		Param    float64 // of quantile_over_time
		Range    LogRange
		Grouping *Grouping // nil: by all labels
	}
	// LogRange are the lines, or their unwrapped values, of a window before each point.
	LogRange struct {
		Log    *LogExpr
		Unwrap *Unwrap // nil: each line is a sample of 1
		Window time.Duration
		Offset time.Duration // how much earlier the window is; may be negative
	}
	// Unwrap takes samples from a label.
	Unwrap struct {
		Label   string
		Convert string // "", "bytes", "duration" or "duration_seconds"
		Filters []Cond // on the labels that are left
	}
	// Grouping names the labels of the results.
	Grouping struct {
		Without bool
		Labels  []string
	}
	// VectorAgg is an aggregation over series.
	VectorAgg struct {
		Op       VectorOp
		Param    float64   // of topk, bottomk and approx_topk
		Grouping *Grouping // nil: one result without labels
		Of       Metric
	}
	// Binary joins two results by an operator.
	Binary struct {
		Op          string // or and unless == != > >= < <= + - * / % ^
		Bool        bool   // a comparison has the result 0 or 1
		Matching    *Matching
		Left, Right Metric
	}
	// Matching names the labels by which series of both sides are joined.
	Matching struct {
		On     bool // else all labels but these
		Labels []string
	}
	// Number is a number.
	Number struct{ Value float64 }
	// Vector is a series without labels that has one value.
	Vector struct{ Value float64 }
)

func (*LogExpr) expr()   {}
func (*RangeAgg) expr()  {}
func (*VectorAgg) expr() {}
func (*Binary) expr()    {}
func (*Number) expr()    {}
func (*Vector) expr()    {}

func (*RangeAgg) metric()  {}
func (*VectorAgg) metric() {}
func (*Binary) metric()    {}
func (*Number) metric()    {}
func (*Vector) metric()    {}

func (*LineFilter) stage()  {}
func (*JSON) stage()        {}
func (*Logfmt) stage()      {}
func (*Regexp) stage()      {}
func (*Pattern) stage()     {}
func (*Unpack) stage()      {}
func (*LineFormat) stage()  {}
func (*LabelFormat) stage() {}
func (*Decolorize) stage()  {}
func (*Drop) stage()        {}
func (*Keep) stage()        {}
func (*LabelFilter) stage() {}

func (*And) cond()         {}
func (*Or) cond()          {}
func (*MatchCond) cond()   {}
func (*CompareCond) cond() {}
func (*IPCond) cond()      {}
