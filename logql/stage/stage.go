// Package stage runs the pipeline of a log query over stored records.
//
// Make a [View] and compile a query with it: [View.Compile] for the records themselves,
// [View.Sampler] for numbers. [Pipeline.Selection] says how much of the query services, levels
// and texts decide, so that a reader opens little. [Pipeline.Keep] decides on one stored line,
// and [Pipeline.Entry] makes the line and the labels that a client sees.
//
//	tree -> Compile -> Selection -> services, levels, texts of a query
//	                -> Keep         each record that is read
//	                -> Entry        each record that is put out
//
// A record has these labels: its stream labels, its level, its fields under flattened names, and
// the labels that stages made. A name is looked up in those of stages first, then in this order.
// A pipeline keeps for its answer only the stages that the answer needs: Keep runs no parser
// that no filter reads.
//
// A pipeline takes the memory of its results and of its expressions from the budget of its query.
// Once the budget has ended, no record passes: the caller that answers the query asks
// [budget.Budget.Err] before.
//
// The package reads no store and evaluates no metric.
package stage

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"blobtail/internal/budget"
	"blobtail/logql"
	"blobtail/record"
)

// The names that each record has. A query may call the second by the first too.
const (
	nameService     = "service"
	nameServiceName = "service_name"
	nameLevel       = "level"
	nameDetected    = "detected_level"
	nameError       = "__error__"
	nameDetails     = "__error_details__"
)

// A View is a way to see records.
type View struct {
	// Lines says that the line is the stored line. Otherwise it is the message, and if that
	// is empty the other fields as a JSON object.
	Lines bool
	// Labels are the flattened names of fields that are labels of the stream, in records that have
	// them. Names that all records have, such as level and msg, do not count.
	Labels []string
	// Budget is that of the compiled query; nil: it has no bounds.
	Budget *budget.Budget `json:"-"`
}

// A Label is a name with its value.
type Label struct{ Name, Value string }

// An Entry is a record as clients of Loki see it. Labels are sorted by name.
type Entry struct {
	Time     int64 // Unix nanoseconds
	Line     []byte
	Stream   []Label
	Metadata []Label // the level, and in the view of messages the fields
	Parsed   []Label // made by stages
	Size     int     // bytes of the line and of all labels
}

// A Pipeline is a compiled log query. It may be used by several goroutines at once.
type Pipeline struct {
	head    head
	keep    []step
	full    []step
	texts   []string
	streams []*ref
	changes bool // the line
	pool    sync.Pool

	unjudged unjudged // by keep
}

// Compile compiles a query. An error names the stage that cannot be run.
func (v View) Compile(e *logql.LogExpr) (*Pipeline, error) {
	c, err := v.compile(e)
	if err != nil {
		return nil, err
	}
	p := &Pipeline{head: c.head, texts: c.texts(), streams: c.streams, changes: c.changedLine()}
	p.keep = c.program(&need{})
	p.full = c.program(&need{all: true, line: true, failure: true})
	p.pool.New = func() any { return newState(v, c.streams) }
	return p, nil
}

// ChangesLine reports whether a stage may change the line.
func (p *Pipeline) ChangesLine() bool { return p.changes }

// Keep reports whether a stored line passes the whole query.
func (p *Pipeline) Keep(line []byte) bool {
	s := p.pool.Get().(*state)
	kept := p.head.set(s, line) && s.run(p.keep)
	if s.limit != nil {
		p.unjudged.add(s.limit, kept)
	}
	s.release()
	p.pool.Put(s)
	return kept
}

// Entry is Keep for a stored line that is put out, and if it passes sets e. The memory of
// e.Line is used again.
func (p *Pipeline) Entry(line []byte, e *Entry) (keep bool) {
	s := p.pool.Get().(*state)
	kept := p.head.set(s, line) && s.run(p.full)
	if kept {
		kept = s.entry(e)
	}
	s.release()
	p.pool.Put(s)
	return kept
}

// entry sets e to the entry that the client sees after all stages. Its labels share one array and
// one text. It reports false if the budget ends.
func (s *state) entry(e *Entry) bool {
	line := s.text()
	if !s.takes(len(line)) {
		return false
	}
	e.Time, _ = record.LineTime(s.raw)
	e.Line = append(e.Line[:0], line...)
	s.all = s.all[:0]
	for _, r := range s.streams {
		s.addUnmade(r)
	}
	stream := len(s.all)
	s.addUnmade(s.levelRef)
	if !s.lines {
		s.addFields()
	}
	metadata := len(s.all)
	for i := range s.made {
		if m := &s.made[i]; !m.gone {
			s.all = append(s.all, pair{m.name, m.value})
		}
	}
	if s.failure != "" {
		s.all = append(s.all, pair{nameError, []byte(s.failure)})
		if s.details != "" {
			s.all = append(s.all, pair{nameDetails, []byte(s.details)})
		}
	}
	sortPairs(s.all[:stream])
	sortPairs(s.all[stream:metadata])
	sortPairs(s.all[metadata:])
	labels, n := s.labels()
	e.Stream, e.Metadata, e.Parsed = labels[:stream:stream], labels[stream:metadata:metadata], labels[metadata:]
	e.Size = len(line) + n
	return !s.over()
}

// A pair is a label with a value in the memory of the state.
type pair struct {
	name  string
	value []byte
}

func sortPairs(pairs []pair) {
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Compare(a.name, b.name) })
}

// addUnmade adds a label of the record, unless a stage has made or removed one of its name.
func (s *state) addUnmade(r *ref) {
	if value, ok := s.unmade(r); ok {
		s.all = append(s.all, pair{r.name, value})
	}
}

// labels makes labels of the gathered pairs, and returns their bytes. It makes none if the budget
// ends.
func (s *state) labels() ([]Label, int) {
	n, size := 0, 0
	for i := range s.all {
		n += len(s.all[i].value)
		size += len(s.all[i].name) + len(s.all[i].value)
	}
	if !s.takes(n + labelBytes*len(s.all)) {
		return make([]Label, len(s.all)), 0
	}
	var text strings.Builder
	text.Grow(n)
	labels := make([]Label, len(s.all))
	for i := range s.all {
		at := text.Len()
		text.Write(s.all[i].value)
		labels[i] = Label{s.all[i].name, text.String()[at:]}
	}
	return labels, size
}

// trimLine is a stored line without its newline.
func trimLine(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\n' {
		return line[:n-1]
	}
	return line
}
