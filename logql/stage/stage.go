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
// The package reads no store and evaluates no metric.
package stage

import (
	"bytes"
	"cmp"
	"slices"
	"sync"

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
	// Labels are the flattened names of fields that are labels of the stream, in records
	// that have them.
	Labels []string
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
}

// A Pipeline is a compiled log query. It may be used by several goroutines at once.
type Pipeline struct {
	head    head
	keep    []step
	full    []step
	texts   []string
	streams []*ref
	pool    sync.Pool
}

// Compile compiles a query. An error names the stage that cannot be run.
func (v View) Compile(e *logql.LogExpr) (*Pipeline, error) {
	c, err := v.compile(e)
	if err != nil {
		return nil, err
	}
	p := &Pipeline{head: c.head, texts: c.texts(), streams: c.streams}
	p.keep = c.program(&need{})
	p.full = c.program(&need{all: true, line: true, failure: true})
	p.pool.New = func() any { return newState(v, c.streams) }
	return p, nil
}

// Keep reports whether a stored line passes the whole query.
func (p *Pipeline) Keep(line []byte) bool {
	s := p.pool.Get().(*state)
	kept := p.head.set(s, line) && s.run(p.keep)
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
		s.entry(e)
	}
	s.release()
	p.pool.Put(s)
	return kept
}

// entry sets e to what the client sees after all stages.
func (s *state) entry(e *Entry) {
	e.Time, _ = record.LineTime(s.raw)
	e.Line = append(e.Line[:0], s.text()...)
	e.Stream, e.Metadata, e.Parsed = nil, nil, nil
	for _, r := range s.streams {
		if value, ok := s.unmade(r); ok {
			e.Stream = append(e.Stream, Label{r.name, string(value)})
		}
	}
	if value, ok := s.unmade(s.levelRef); ok {
		e.Metadata = append(e.Metadata, Label{nameDetected, string(value)})
	}
	if !s.lines {
		e.Metadata = s.metadata(e.Metadata)
	}
	for i := range s.made {
		if m := &s.made[i]; !m.gone {
			e.Parsed = append(e.Parsed, Label{m.name, string(m.value)})
		}
	}
	if s.failure != "" {
		e.Parsed = append(e.Parsed, Label{nameError, s.failure})
		if s.details != "" {
			e.Parsed = append(e.Parsed, Label{nameDetails, s.details})
		}
	}
	sortLabels(e.Stream)
	sortLabels(e.Metadata)
	sortLabels(e.Parsed)
}

func sortLabels(labels []Label) {
	slices.SortFunc(labels, func(a, b Label) int { return cmp.Compare(a.Name, b.Name) })
}

// trimLine is a stored line without its newline.
func trimLine(line []byte) []byte { return bytes.TrimSuffix(line, []byte("\n")) }
