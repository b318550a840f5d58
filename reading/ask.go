package reading

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"blobtail/internal/budget"
	"blobtail/internal/where"
	"blobtail/logql"
	"blobtail/logql/stage"
	"blobtail/reading/blobs"
	"blobtail/reading/search"
	"blobtail/record"
)

// An Ask is a question: which records are wanted, in which order, and how many. Flags fill it,
// parameters are parsed into it ([ParseAsk]), and a server gets its text form ([Ask.Values]).
// A new filter is a field here, a row of the table in [Ask.rows], and its part of [Ask.Matcher].
type Ask struct {
	// Services are names, or globs like those of path.Match (see [ParseServices]). A glob
	// matches a system name such as _rejected only if it begins with "_" itself.
	Services []string
	// LogQL is a query for lines. It takes the place of the services and of all filters.
	LogQL string
	Range Range
	// Levels are the wanted ones; 0: all.
	Levels LevelSet
	// NotLevels are not wanted.
	NotLevels LevelSet
	Texts     []string // each must occur
	Words     []string // each must occur, between borders of words
	Exprs     []string // RE2, each must match
	Without   []string // none may occur
	Where     string   // a condition over fields (package where); "": none
	// Parse makes fields of messages, for Where and for the receiver of the lines: the name of a form or
	// a pattern (package forms), or a list of forms by service; "": none are made. "stages" is for LogQL.
	Parse string
	Not   bool // wanted are the records that Texts, Words and Exprs do not all match
	Fold  bool // upper and lower case are equal for these, and for Without
	Live  Mode

	Edges   blobs.Edges // places next to the wanted records
	Limit   int         // only the newest so many; 0: all
	First   int         // only the oldest so many; 0: all. Not together with Limit
	Reverse bool        // newest first
	Fields  []string    // of records, as far as a source can leave out the others; none: all

	// Here is for readers in this process. Of it only the part has a text form.
	Here Here

	compiled
}

// Here are the parts of a question that only this process can ask.
type Here struct {
	// Sure says that nobody asks whether the services exist: a service without records is neither
	// an error nor absent.
	Sure bool
	// Ahead says that all of the records will be read, so that a distant store may be asked for
	// them while ingesters are.
	Ahead bool
	// Whole says that reads of the newest records list their whole range, as others do.
	Whole bool
	// MaxStored is the most bytes of blobs that a read of lines takes; 0: any number. A read that
	// needs more fails with a [*MuchError] before it begins.
	MaxStored int64
	// Absent is told of names that are no service, beside others that are, before the first record of
	// [Source.Records] and Tail; nil: it is not. The outcome has them too.
	Absent func(names []*NoServiceError)
	// Part says that the question is a part of another one; nil: it is not.
	Part *part
}

// compiled is a question that can be read.
type compiled struct {
	pipe   *stage.Pipeline
	kept   bool        // whether lines that a pipeline keeps in doubt are unjudged
	choose *selection  // of a pipeline
	where  *where.Expr // the condition
	parser *parser
	byName bool   // the read needs the names of the services
	of     string // what the notes of the condition begin with

	searched []string // lines of a search
	queries  []*search.Query
}

// selection is the choice of services by the selector of a pipeline.
type selection struct {
	names  []string // nil: any
	wanted func(service string) bool
	none   bool // no level is wanted
}

// AskError is a mistake in a field of an [Ask], by the name of its key in the text form.
type AskError struct {
	Key string
	Err error
}

// Error implements error.
func (e *AskError) Error() string { return e.Key + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *AskError) Unwrap() error { return e.Err }

// MuchError says that a read would take more bytes of blobs than [Here.MaxStored].
type MuchError struct{ Bytes, Limit int64 }

// Error implements error.
func (e *MuchError) Error() string {
	return fmt.Sprintf("this would read %d bytes of blobs, more than %d", e.Bytes, e.Limit)
}

// Select has a compiled pipeline decide which records are wanted, in place of services and
// filters. kept says that lines about which a stage cannot decide are in doubt also if the pipeline
// keeps them, with an error in their labels.
func (a *Ask) Select(pipe *stage.Pipeline, kept bool) {
	sel := pipe.Selection()
	a.pipe, a.kept = pipe, kept
	a.choose = &selection{names: sel.Names, wanted: sel.Service}
	a.Services = []string{"*", "_*"}
	if sel.Names != nil {
		a.Services = slices.DeleteFunc(slices.Clone(sel.Names), func(s string) bool { return record.ValidStored(s) && !sel.Service(s) })
	}
	a.Levels, a.choose.none = levelsOf(&sel.Levels)
	a.NotLevels = 0
	a.Texts, a.Words, a.Exprs, a.Without, a.Where, a.Not, a.Fold = sel.Texts, nil, nil, nil, "", false, false
}

// Impossible reports whether no record can match, as by a selector of no level.
func (a *Ask) Impossible() bool { return a.choose != nil && a.choose.none }

// levelsOf returns a set of levels as an Ask has it, and whether it is empty.
func levelsOf(levels *[record.NumLevels]bool) (set LevelSet, none bool) {
	n := 0
	for l, wanted := range levels {
		if wanted {
			set |= 1 << l
			n++
		}
	}
	if n == len(levels) {
		set = 0
	}
	return set, n == 0
}

// compile compiles LogQL and conditions, once.
func (a *Ask) compile(b *budget.Budget) (err error) {
	if a.LogQL != "" && a.pipe == nil {
		tree, err := logql.Parse(a.LogQL)
		if err != nil {
			return &AskError{"logql", err}
		}
		e, ok := tree.(*logql.LogExpr)
		if !ok {
			return &AskError{"logql", errors.New(`a query of numbers is for logquery --logql, or Loki's API, /loki/api/v1/query_range; here it selects records, as {service="web"} |= "text"`)}
		}
		pipe, err := stage.View{Budget: b}.Compile(e)
		if err != nil {
			return &AskError{"logql", logql.Locate(a.LogQL, err)}
		}
		a.Select(pipe, true)
	}
	if a.Where != "" && a.where == nil {
		expr, err := where.Parse(b, a.Where, a.Fold)
		if err != nil {
			if bad, ok := errors.AsType[*where.Mistake](err); ok && !strings.Contains(bad.What, "; write ") {
				bad.Line = search.Meant(a.Where)
			}
			return &AskError{"where", err}
		}
		a.where = expr
		if a.of = "where: "; len(a.searched) > 0 {
			a.of = ""
		}
	}
	if a.Parse != "" && a.parser == nil {
		if a.parser, err = a.newParser(b); a.parser != nil && a.where != nil {
			a.where.Made = where.Made{ID: "\x00" + a.Parse, Append: a.parser.append, Field: a.parser.makes}
		}
	}
	return err
}

// filter returns the compiled filter.
func (a *Ask) filter(b *budget.Budget) (blobs.Filter, error) {
	if err := a.compile(b); err != nil {
		return blobs.Filter{}, err
	}
	f := blobs.Filter{Levels: a.Levels, Texts: a.Texts, Words: a.Words, Exprs: a.Exprs, Without: a.Without, Where: a.where, Invert: a.Not, Fold: a.Fold}
	if a.pipe != nil && !a.pipe.Selection().All {
		pipe, kept := a.pipe, a.kept
		f.Accept = pipe.Keep
		f.Unjudged = func() (int64, error) { return pipe.Unjudged(kept) }
	}
	if a.NotLevels != 0 {
		f.Levels, f.Barred = f.Levels.Without(a.NotLevels), a.NotLevels
	}
	if a.Impossible() { // a follower does not go by the range
		f.Levels = f.Levels.Without(^LevelSet(0))
	}
	return f, nil
}

// Matcher compiles the filter. It is for code that shows the matches, and finds mistakes before a
// read: an error is an [*AskError], a [*BadQueryError], or that of the budget. A nil budget has no
// bounds.
func (a *Ask) Matcher(b *budget.Budget) (*Matcher, error) {
	f, err := a.filter(b)
	if err != nil {
		return nil, err
	}
	return f.Matcher(b)
}

// ReadsLines reports whether the filter needs more of a record than its time and level.
func (a *Ask) ReadsLines() bool {
	return len(a.Texts)+len(a.Words)+len(a.Exprs)+len(a.Without) > 0 || a.Where != "" || a.LogQL != "" || a.pipe != nil && !a.pipe.Selection().All
}

// notes explain, after a read of so many records, why no record has matched.
func (a *Ask) notes(records int64) (notes []string) {
	if a.Here.Part != nil {
		return a.found()
	}
	notes = a.remarks(records == 0)
	if a.parser != nil && a.parser.note() != "" {
		return append(notes, a.parser.note())
	}
	if a.where == nil {
		return notes
	}
	meant := search.Meant
	if len(a.searched) == 0 {
		meant = func(condition string) string {
			if line := search.Meant(condition); line != "" {
				return "q=" + line
			}
			return ""
		}
	}
	for _, note := range a.where.Notes(meant) {
		if what, remedy, ok := strings.Cut(note, "; write "); ok && len(a.searched) > 0 {
			note = what + "; write where:(" + remedy + ")"
		}
		notes = append(notes, a.of+note)
	}
	return notes
}

// remarks are the notes of searches, and the hints if nothing is found.
func (a *Ask) remarks(none bool) (notes []string) {
	for _, q := range a.queries {
		if notes = append(notes, q.Notes()...); none {
			notes = append(notes, q.Hints()...)
		}
	}
	return notes
}

// query is the question for the packages below, without the services that it chooses.
func (a *Ask) query(b *budget.Budget) (q blobs.Query, err error) {
	if q.Filter, err = a.filter(b); err != nil {
		return q, err
	}
	q.Edges = a.Edges
	q.Services, q.Range, q.Limit, q.First, q.Reverse, q.Sure, q.Ahead = a.Services, a.Edges.Within(a.Range), a.Limit, a.First, a.Reverse, a.Here.Sure, a.Here.Ahead
	if q.Absent = a.Here.Absent; a.choose != nil {
		q.Absent = nil                                 // a selector asks for no name
		if q.Choose = a.choose.wanted; a.choose.none { // no record can match
			q.Range = Range{From: Newest - 1, To: Newest}
		}
	}
	if a.Edges != (blobs.Edges{}) && q.Range.From >= q.Range.To { // the edges leave nothing of it
		q.Range = Range{From: Newest - 1, To: Newest}
	}
	return q, nil
}

// levelNames are the names of a set of levels with commas between them, "" for all.
func levelNames(set LevelSet) string {
	var names []string
	for l := range record.Level(record.NumLevels) {
		if set.Has(l) {
			names = append(names, l.String())
		}
	}
	return strings.Join(names, ",")
}
