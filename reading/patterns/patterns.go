// Package patterns finds the templates of messages: the text that messages have in common, with <*>
// for each value, as in "GET <*> took <*> ms".
//
// A [Miner] takes records, of one window of time or of two, and [Miner.Patterns] has the templates
// with their numbers. First each message is masked: numbers, identifiers, times, addresses, paths
// and sizes become wildcards, and so do the quoted texts that are long. Messages that are equal then
// are counted as one. The different ones, which are few, are sorted and clustered by their words:
// those that differ at one place in at least five words have a value there. So templates, and their
// identities, do not depend on the order of the records.
//
// The idea is that of Drain (He et al., ICWS 2017): messages of as many words, compared word by word
// below a tree. Drain decides about each message as it comes; this package decides about all.
//
// Memory is bounded by [Options]. If there are more different masked messages than that, those that
// were seen so far are clustered before the others, and messages that have no room after that are
// counted in [Result.Others]. Only then do the templates depend on the order.
package patterns

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	"blobtail/internal/budget"
	"blobtail/record"
)

const (
	// mostMessages and mostBytes bound a miner, unless its options do.
	mostMessages, mostBytes = 20_000, 64 << 20
	// mostFolds is how often the messages so far are clustered to make room.
	mostFolds = 100
	// overhead is the memory of a masked message beside its text, and windowBytes that of all its
	// buckets and of a short example in a window. Longer examples and services come on top.
	overhead, windowBytes = 700, 1024 + shortBytes
	// exampleBytes is the longest example, and shortBytes the longest one without memory.
	exampleBytes, shortBytes = 1024, 64
	// mostServices is how many services of a template are told apart. serviceBytes is the memory of
	// each beside its name: a list of them grows by doubling.
	mostServices, serviceBytes = 100, 64
	// windows is how many there are at most.
	windows = 2
)

// Options bound the memory of a miner. The zero value has bounds of its own.
type Options struct {
	// Messages is how many different masked messages are held; 0: 20,000.
	Messages int
	// Bytes is the memory that they take; 0: 64 MiB.
	Bytes int64
	// Windows is how many windows have records; 0: two.
	Windows int
	// Budget is that of the query; nil: none.
	Budget *budget.Budget
}

// Miner finds templates. One goroutine may use it.
type Miner struct {
	// Groups, and so on, are for [Miner.Join] of one that was written by gob.
	Groups  []*group
	Folds   int
	By      [windows]step
	Records [windows]int64
	Others  [windows]int64

	o      Options
	masker masker
	at     map[string]int // of a masked message in groups
	bytes  int64
	full   bool // no group is added any more
	buf    []byte
}

// A group is the records of one masked message, or of a template of some.
type group struct {
	Masked string
	Form   form
	In     [windows]Stats
}

// New returns a miner without records.
func New(o Options) *Miner {
	o.Messages, o.Bytes, o.Windows = cmp.Or(o.Messages, mostMessages), cmp.Or(o.Bytes, mostBytes), cmp.Or(o.Windows, windows)
	return &Miner{o: o, at: map[string]int{}}
}

// Add takes a record of a service in a window, 0 or 1.
func (m *Miner) Add(window int, e *record.Entry) error {
	if err := m.o.Budget.Err(); err != nil {
		return err
	}
	m.Records[window]++
	m.By[window].see(e.Time, func() { m.coarser(window) })
	msg := m.message(e.Line)
	masked, f := m.masker.mask(msg)
	at, ok := m.at[string(masked)]
	if !ok {
		if at = m.add(masked); at < 0 {
			m.Others[window]++
			return nil
		}
	}
	g := m.Groups[at]
	g.Form |= f
	g.In[window].add(e, msg, m.By[window].Length, m.room)
	return nil
}

// message is the text of a record's message, valid until the next call.
func (m *Miner) message(line []byte) []byte {
	value, ok := record.Lookup(line, "msg")
	if !ok {
		return nil
	}
	if record.IsString(value) {
		if value = value[1 : len(value)-1]; slices.Contains(value, '\\') {
			m.buf = record.AppendUnescaped(m.buf[:0], value)
			value = m.buf
		}
	}
	return value
}

// add adds a group; -1: there is no room.
func (m *Miner) add(masked []byte) int {
	if m.full {
		return -1
	}
	g := &group{Masked: string(masked)}
	if len(m.Groups) >= m.o.Messages || !m.room(m.size(g)) {
		m.fold()
		if at, ok := m.at[g.Masked]; ok {
			return at
		}
		if m.full || !m.room(m.size(g)) {
			m.full = true
			return -1
		}
	}
	m.Groups = append(m.Groups, g)
	m.at[g.Masked] = len(m.Groups) - 1
	return len(m.Groups) - 1
}

// room takes memory. If the budget does not have it, there is no more than that from now on.
func (m *Miner) room(n int64) bool {
	if m.bytes+n > m.o.Bytes {
		return false
	}
	if !m.o.Budget.Try(n) {
		m.o.Bytes = m.bytes
		return false
	}
	m.bytes += n
	return true
}

// size is the memory of a group.
func (m *Miner) size(g *group) int64 {
	n := int64(len(g.Masked)) + overhead + windowBytes*int64(m.o.Windows)
	for w := range g.In {
		n += g.In[w].size()
	}
	return n
}

// fold puts the templates of the groups in their place. If that makes too little room, no group is
// added any more.
func (m *Miner) fold() {
	before := m.bytes
	shapes := cluster(m.texts())
	groups := make([]*group, 0, len(shapes))
	m.bytes = 0
	for i := range shapes {
		g := m.joined(&shapes[i])
		groups = append(groups, g)
		m.bytes += m.size(g)
	}
	m.Groups = groups
	clear(m.at)
	for i, g := range groups {
		m.at[g.Masked] = i
	}
	m.o.Budget.Give(before - m.bytes)
	m.Folds++
	m.full = m.Folds >= mostFolds || len(groups) > m.o.Messages/4*3 || m.bytes > m.o.Bytes/4*3
}

func (m *Miner) texts() []string {
	texts := make([]string, len(m.Groups))
	for i, g := range m.Groups {
		texts[i] = g.Masked
	}
	return texts
}

// joined is the group of a template.
func (m *Miner) joined(s *shape) *group {
	first := m.Groups[s.of[0]]
	if len(s.of) == 1 {
		return first
	}
	g := &group{Masked: string(bytes.Join(s.words, []byte{between}))}
	for _, i := range s.of {
		g.Form |= m.Groups[i].Form
		for w := range windows {
			g.In[w].join(&m.Groups[i].In[w], func(int64) bool { return true }) // which the other one has
		}
	}
	return g
}

// coarser gives the buckets of a window a greater length.
func (m *Miner) coarser(window int) {
	for _, g := range m.Groups {
		g.In[window].cut(m.By[window].Length)
	}
}

// Join adds the records of another miner, which is of no use after that. An error is that of the budget.
func (m *Miner) Join(o *Miner) error {
	m.Folds += o.Folds
	for w := range windows {
		m.Records[w] += o.Records[w]
		m.Others[w] += o.Others[w]
		if by := o.By[w]; by.Any {
			m.By[w].see(by.First, func() { m.coarser(w) })
			m.By[w].see(by.Last, func() { m.coarser(w) })
		}
	}
	for _, of := range o.Groups {
		if err := m.o.Budget.Err(); err != nil {
			return err
		}
		at, ok := m.at[of.Masked]
		if !ok {
			at = m.add([]byte(of.Masked))
		}
		for w := range windows {
			in := &of.In[w]
			if at < 0 {
				m.Others[w] += in.Count
				continue
			}
			m.Groups[at].Form |= of.Form
			in.cut(m.By[w].Length)
			m.Groups[at].In[w].join(in, m.room)
		}
	}
	return nil
}

// Pattern is a template with its records.
type Pattern struct {
	// ID is a hash of the template.
	ID string
	// Template is its text, with <*> for each value.
	Template string
	// Where is a condition that is true for the records of the template.
	Where string
	// In has the numbers of each window.
	In [windows]Stats

	expr, sample string
}

// Result is what a miner has found.
type Result struct {
	// Patterns are the templates, those with the most records in the first window first.
	Patterns []*Pattern
	// Records are those of each window, and Others those of them that are in no template.
	Records, Others [windows]int64
	// By is the length of the buckets of each window.
	By [windows]time.Duration
	// Folded says that there were more different messages than the miner holds, so that templates
	// depend on the order of the records.
	Folded bool

	budget *budget.Budget
}

// Patterns ends the miner and returns its templates. Conditions come by [Result.Describe].
func (m *Miner) Patterns() *Result {
	r := &Result{Records: m.Records, Others: m.Others, Folded: m.Folds > 0, budget: m.o.Budget}
	for w := range windows {
		r.By[w] = m.By[w].Length
	}
	shapes := cluster(m.texts())
	for i := range shapes {
		s := &shapes[i]
		g := m.joined(s)
		p := &Pattern{ID: idOf(s.words), Template: text(s.words, g.Form), In: g.In, expr: expression(s.words, g.Form)}
		for w := range windows {
			if in := &p.In[w]; in.Count > 0 {
				in.Example = strings.ToValidUTF8(string(in.Text), "\ufffd")
				in.Text = nil
				Sort(in.Services)
				p.sample = cmp.Or(p.sample, in.Example)
			}
		}
		r.Patterns = append(r.Patterns, p)
	}
	slices.SortFunc(r.Patterns, func(a, b *Pattern) int {
		return cmp.Or(cmp.Compare(b.In[0].Count, a.In[0].Count), cmp.Compare(b.In[1].Count, a.In[1].Count), strings.Compare(a.Template, b.Template), strings.Compare(a.ID, b.ID))
	})
	return r
}

// Describe gives some of the patterns their conditions. An error is that of the budget.
func (r *Result) Describe(some []*Pattern) error { return apart(r.budget, some, r.Patterns) }
