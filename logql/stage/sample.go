package stage

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"

	"blobtail/internal/budget"
	"blobtail/logql"
	"blobtail/record"
)

// Wanted selects the labels of the series of a [Sampler], and the kind of its samples.
type Wanted struct {
	// Only are the only labels of the series, or with Without set those that they lack. nil:
	// series have the labels of the stream and those that stages made.
	Only *logql.Grouping
	// Fields are names in the query around the range, such as in "sum by". Fields of the
	// record are labels of series only if they are named here, in Only, or by keep.
	Fields []string
	// Bytes makes each sample the length of its line.
	Bytes bool
}

// A Series is a set of labels.
type Series struct {
	Key    string // the same for equal labels, and for no others
	Labels []Label
}

// A FailedError says that a sample has a label __error__, which no stage removed.
type FailedError struct {
	Name    string // of the error, such as "JSONParserErr"
	Details string
	Labels  []Label // of the series
}

// Error names the error, the series, and a way out.
func (e *FailedError) Error() string {
	var b strings.Builder
	for i, l := range e.Labels {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s=%q", l.Name, l.Value)
	}
	return fmt.Sprintf("pipeline error: '%s' for series: '{%s}': %s; to leave such lines out, add | __error__=\"\"", e.Name, b.String(), e.Details)
}

// A Sampler makes samples of records. It may be used by several goroutines at once. It makes none
// once the budget of its query has ended.
type Sampler struct {
	head   head
	steps  []step
	texts  []string
	unwrap *unwrap // nil: each line is a sample
	bytes  bool
	by     []*ref   // the labels of the series; nil: of stream and stages, and those in also
	also   []*ref   // named fields
	lacks  []string // names that the series lack
	pool   sync.Pool
}

// Sampler compiles the range of a metric query. An error names the stage that cannot be run.
func (v View) Sampler(r *logql.LogRange, w Wanted) (*Sampler, error) {
	c, err := v.compile(r.Log)
	if err != nil {
		return nil, err
	}
	p := &Sampler{head: c.head, texts: c.texts(), bytes: w.Bytes}
	n := &need{failure: true, line: w.Bytes}
	for _, name := range w.Fields {
		p.also = append(p.also, newRef(name))
	}
	if w.Only != nil && !w.Only.Without {
		p.by, p.also = []*ref{}, nil
		for _, name := range w.Only.Labels {
			p.by = append(p.by, newRef(name))
		}
	} else if w.Only != nil {
		p.lacks = w.Only.Labels
	}
	n.all = p.by == nil
	n.add(p.by...)
	n.add(p.also...)
	if p.unwrap, err = newUnwrap(v.Budget, r.Unwrap); err != nil {
		return nil, fmt.Errorf("unwrap: %w", err)
	}
	if p.unwrap != nil {
		p.unwrap.needs(n)
		if p.by == nil {
			p.lacks = append(slices.Clone(p.lacks), r.Unwrap.Label)
		}
	}
	p.steps = c.program(n)
	p.pool.New = func() any { return &sampling{state: newState(v, c.streams), series: map[string]*Series{}} }
	return p, nil
}

// Selection returns the part of the query that services, levels and texts decide. All is set only
// if the samples are counts, and the labels of their series those of service and level: then
// [Sampler.Series] has the series of each, and no record must be read.
func (p *Sampler) Selection() Selection {
	s := Selection{Service: p.head.service, Names: p.head.names(), Levels: p.head.levels, Texts: slices.Clone(p.texts)}
	st := p.pool.Get().(*sampling)
	defer p.pool.Put(st)
	s.All = len(p.steps) == 0 && p.unwrap == nil && !p.bytes
	if p.by == nil {
		s.All = s.All && len(st.streams) == 1
	}
	for _, r := range slices.Concat(p.by, p.also) {
		s.All = s.All && (r.kind == refService || r.kind == refLevel)
	}
	return s
}

// Series returns the series of the records of a service and a level, if Selection has All.
func (p *Sampler) Series(service string, l record.Level) *Series {
	st := p.pool.Get().(*sampling)
	defer p.put(st)
	st.set(nil)
	st.service, st.level = []byte(service), l
	return st.of(p)
}

func (p *Sampler) put(st *sampling) {
	st.release()
	if clear(st.labels); cap(st.key) > keepArena {
		st.key = nil
	}
	p.pool.Put(st)
}

// Sample returns the sample of a stored line; ok is false if it has none. The error is a
// [*FailedError]. Series are shared and must not be changed.
func (p *Sampler) Sample(line []byte) (v float64, series *Series, ok bool, err error) {
	st := p.pool.Get().(*sampling)
	defer p.put(st)
	if !p.head.set(st.state, line) || !st.run(p.steps) {
		return 0, nil, false, nil
	}
	v = 1
	switch {
	case p.unwrap != nil:
		if v, ok = p.unwrap.value(st.state); !ok {
			return 0, nil, false, nil
		}
	case p.bytes:
		v = float64(len(st.text()))
	}
	series = st.of(p)
	if st.over() {
		return 0, nil, false, nil
	}
	if st.failure != "" {
		return 0, nil, false, &FailedError{Name: st.failure, Details: st.details, Labels: series.Labels}
	}
	return v, series, true, nil
}

// A sampling is the state of a record with the series that were seen.
type sampling struct {
	*state
	series map[string]*Series
	size   int64 // bytes of the series, which are taken from the budget
	labels []pair
	key    []byte
}

const (
	keepSeries  = 10_000  // remembered series
	seriesBytes = 4 << 20 // of their keys and labels
)

// of returns the series of the record.
func (st *sampling) of(p *Sampler) *Series {
	st.labels = st.labels[:0]
	if p.by != nil {
		for _, r := range p.by {
			value, _ := st.get(r)
			st.label(p, r.name, value)
		}
	} else {
		st.all(p)
	}
	sortPairs(st.labels)
	st.key = st.key[:0]
	for _, l := range st.labels {
		if !st.takes(len(l.name) + len(l.value)) {
			return &Series{}
		}
		st.key = append(append(st.key, l.name...), '=')
		st.key = binary.AppendUvarint(st.key, uint64(len(l.value)))
		st.key = append(st.key, l.value...)
	}
	if one, ok := st.series[string(st.key)]; ok {
		return one
	}
	size := int64(2*len(st.key) + labelBytes*(2+len(st.labels)))
	if st.size+size > seriesBytes || len(st.series) >= keepSeries {
		clear(st.series)
		st.budget.Give(st.size)
		st.size = 0
	}
	if st.budget.Take(size) != nil {
		return &Series{}
	}
	one := &Series{Key: string(st.key), Labels: make([]Label, 0, len(st.labels))}
	for _, l := range st.labels {
		one.Labels = append(one.Labels, Label{l.name, string(l.value)})
	}
	st.series[one.Key] = one
	st.size += size
	return one
}

// all adds the labels of stream and stages, and named fields.
func (st *sampling) all(p *Sampler) {
	for _, r := range st.streams {
		value, _ := st.unmade(r)
		st.label(p, r.name, value)
	}
	for i := range st.made {
		if m := &st.made[i]; !m.gone {
			st.label(p, m.name, m.value)
		}
	}
	for _, r := range p.also {
		value, _ := st.get(r)
		st.label(p, r.name, value)
	}
	for _, k := range st.kept {
		for i := range k.names {
			value, _ := st.get(k.names[i].of)
			st.label(p, k.names[i].of.name, value)
		}
	}
}

// label adds a label of the series once. One without a value is none.
func (st *sampling) label(p *Sampler, name string, value []byte) {
	if len(value) == 0 || slices.Contains(p.lacks, name) || name == nameError || name == nameDetails {
		return
	}
	for _, l := range st.labels {
		if l.name == name {
			return
		}
	}
	st.labels = append(st.labels, pair{name, value})
}

// An unwrap takes the value of a sample from a label.
type unwrap struct {
	of      *ref
	read    func([]byte) (float64, error)
	filters []cond
}

func newUnwrap(b *budget.Budget, tree *logql.Unwrap) (*unwrap, error) {
	if tree == nil {
		return nil, nil
	}
	u := &unwrap{of: newRef(tree.Label)}
	switch tree.Convert {
	case "":
		u.read = number
	case "bytes":
		u.read = size
	case "duration", "duration_seconds":
		u.read = seconds
	default:
		return nil, fmt.Errorf("blobtail does not have the conversion %s; it has bytes, duration and duration_seconds", tree.Convert)
	}
	for _, filter := range tree.Filters {
		one, err := compileCond(b, filter)
		if err != nil {
			return nil, err
		}
		u.filters = append(u.filters, one)
	}
	return u, nil
}

func (u *unwrap) needs(n *need) {
	n.add(u.of)
	for _, f := range u.filters {
		f.needs(n)
	}
}

// value returns the sample; ok is false if there is none.
func (u *unwrap) value(s *state) (v float64, ok bool) {
	text, _ := s.get(u.of)
	if len(text) == 0 {
		return 0, false
	}
	v, err := u.read(text)
	if err != nil {
		v = 0
		s.fail("SampleExtractionErr", err.Error())
	}
	for _, f := range u.filters {
		if !f.holds(s) {
			return 0, false
		}
	}
	return v, true
}
