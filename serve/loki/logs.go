package loki

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"blobtail/internal/budget"
	"blobtail/internal/units"
	"blobtail/logql"
	"blobtail/logql/stage"
	"blobtail/reading"
)

// queryRange answers a query over a range: with lines, or with numbers at each step.
func (c *call) queryRange() error {
	e, err := c.parse()
	if err != nil {
		return err
	}
	rng, err := c.between()
	if err != nil {
		return err
	}
	if log, ok := e.(*logql.LogExpr); ok {
		return c.logs(log, rng)
	}
	step, err := c.step(rng)
	if err != nil {
		return err
	}
	return c.matrix(e.(logql.Metric), rng, step)
}

// A wish is which lines of a query are wanted.
type wish struct {
	limit    int
	forward  bool          // the oldest first
	interval time.Duration // lines of a stream that are closer are left out
}

func (c *call) wish() (w wish, err error) {
	if w.limit, err = c.limit(); err != nil {
		return w, err
	}
	if w.interval, err = c.span("interval", 0); err != nil {
		return w, err
	}
	if w.interval < 0 {
		return w, refused("interval must be >= 0")
	}
	w.forward, err = c.forward()
	return w, err
}

// logs answers with lines.
func (c *call) logs(e *logql.LogExpr, rng reading.Range) error {
	w, err := c.wish()
	if err != nil {
		return err
	}
	ch, err := c.choose(e, rng)
	if err != nil {
		return err
	}
	begun := time.Now()
	out := streams{sorts: c.sorts, byKey: map[string]*stream{}, wish: w, budget: c.budget(), text: c.api.buffer(), places: make([]place, 0, w.limit)}
	defer func() { c.api.giveBack(out.text) }()
	entries := forming{pipe: ch.pipe, budget: c.budget(), to: &out}
	defer entries.wait()
	sum, err := c.read(w.of(ch.ask), entries.add)
	if err != nil {
		return err
	}
	if entries.end(); out.full {
		c.hint("the answer ends after %s: more would take more memory than one query may hold (%s), or than other queries leave free; ask for the rest by its times", units.Count(len(out.places), "line"), sizeText(c.budget().Spare()))
	}
	c.out = c.api.buffer()
	c.begins()
	c.out = append(c.out, `"data":{"resultType":"streams",`...)
	if c.sorts {
		c.out = append(c.out, `"encodingFlags":["categorize-labels"],`...)
	}
	c.out = append(c.out, `"result":[`...)
	if err := out.send(c); err != nil {
		return err
	}
	c.out = append(c.out, `],`...)
	c.out = c.appendStats(c.out, sum, len(out.places), begun)
	c.out = append(c.out, '}')
	return nil
}

// of returns the question for the lines. If some of them are left out afterwards, no limit bounds
// the read. Several panels share the listing of a whole range.
func (w wish) of(a reading.Ask) reading.Ask {
	a.Reverse, a.Here.Whole = !w.forward, true
	switch {
	case w.interval > 0:
	case w.forward:
		a.First = w.limit
	default:
		a.Limit = w.limit
	}
	return a
}

// streams are the lines of an answer by their stream. All lines stand in few texts, in the order
// in which they came, because most answers have few streams and some have one for each line. They
// are as many as the budget of the query allows.
type streams struct {
	wish   wish
	sorts  bool // labels stand apart by their category
	byKey  map[string]*stream
	budget *budget.Budget

	text   []byte  // the last one, with room for more
	places []place // of the lines
	held   int64   // bytes
	paid   int64   // taken from the budget
	full   bool    // lines are left out, because the budget has no more
}

// A stream is the lines that have the same labels.
type stream struct {
	labels      string // as JSON
	first, last int    // of its places
	time        int64  // of its last line
}

// A place is a line.
type place struct {
	line []byte // in a text
	next int    // the place of the next line of the stream; 0: there is none
}

const (
	// leastText and mostText are the sizes of texts for lines that are not long.
	leastText, mostText = 64 << 10, 1 << 20
	// streamBytes is the memory of a stream beside its labels.
	streamBytes = 200
	// payStep is how much is taken from the budget at once.
	payStep = 64 << 10
)

// add adds an entry by the labels of its stream, and reports whether there are enough of them.
func (s *streams) add(labels, value []byte, time int64) bool {
	if len(s.places) >= s.wish.limit {
		return true
	}
	at, to := len(s.places), s.byKey[string(labels)]
	n := len(value)
	if to == nil {
		n += streamBytes + len(labels)
	}
	if !s.pays(int64(n)) {
		s.full = true
		return true
	}
	switch {
	case to == nil:
		to = &stream{labels: string(labels), first: at}
		s.byKey[to.labels] = to
	case s.wish.interval > 0 && abs(time-to.time) < int64(s.wish.interval):
		return false
	default:
		s.places[to.last].next = at
	}
	to.last, to.time = at, time
	if cap(s.text)-len(s.text) < len(value) { // lines that are there stay where they are
		s.text = make([]byte, 0, max(len(value), min(2*cap(s.text), mostText), leastText))
	}
	begin := len(s.text)
	s.text = append(s.text, value...)
	s.places = append(s.places, place{line: s.text[begin:]})
	return len(s.places) >= s.wish.limit
}

// pays takes bytes from the budget, and reports whether they were there. Without a line there is no
// answer.
func (s *streams) pays(n int64) bool {
	if s.held += n; s.held <= s.paid {
		return true
	}
	more := s.held - s.paid + payStep
	if len(s.places) == 0 && s.budget.Take(more) != nil || len(s.places) > 0 && !s.budget.Try(more) {
		return false
	}
	s.paid += more
	return true
}

func abs(n int64) int64 { return max(n, -n) }

// appendLine appends the time and the line of an entry, and if labels stand apart those that are
// not of its stream.
func appendLine(dst []byte, e *stage.Entry, sorts bool) []byte {
	dst = append(dst, `["`...)
	dst = strconv.AppendInt(dst, e.Time, 10)
	dst = append(dst, `",`...)
	dst = appendBytes(dst, e.Line)
	if sorts {
		dst = appendCategories(append(dst, ','), e)
	}
	return append(dst, ']')
}

// mergeLabels appends all labels of an entry, of each category, in order. Of one name the last one
// that the pipeline made counts.
func mergeLabels(dst []stage.Label, e *stage.Entry) []stage.Label {
	dst = append(append(append(dst, e.Parsed...), e.Metadata...), e.Stream...)
	slices.SortStableFunc(dst, func(a, b stage.Label) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(dst, func(a, b stage.Label) bool { return a.Name == b.Name })
}

// appendCategories appends the labels of an entry that are not those of its stream.
func appendCategories(dst []byte, e *stage.Entry) []byte {
	dst = append(dst, '{')
	if len(e.Metadata) > 0 {
		dst = appendLabels(append(dst, `"structuredMetadata":`...), e.Metadata)
	}
	if len(e.Parsed) > 0 {
		if len(e.Metadata) > 0 {
			dst = append(dst, ',')
		}
		dst = appendLabels(append(dst, `"parsed":`...), e.Parsed)
	}
	return append(dst, '}')
}

// appendLabels appends labels as an object.
func appendLabels(dst []byte, labels []stage.Label) []byte {
	dst = append(dst, '{')
	for i := range labels {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendLabel(dst, labels[i].Name, labels[i].Value)
	}
	return append(dst, '}')
}

// send appends the streams to an answer in the order of their labels, and sends it bit by bit if it
// is large.
func (s *streams) send(c *call) error {
	all := make([]*stream, 0, len(s.byKey))
	for _, one := range s.byKey {
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b *stream) int { return strings.Compare(a.labels, b.labels) })
	for i, one := range all {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.out = append(c.out, `{"stream":`...)
		c.out = append(c.out, one.labels...)
		c.out = append(c.out, `,"values":[`...)
		for at := one.first; ; at = s.places[at].next {
			if err := c.some(); err != nil {
				return err
			}
			c.out = append(c.out, s.places[at].line...)
			if s.places[at].next == 0 {
				break
			}
			c.out = append(c.out, ',')
		}
		c.out = append(c.out, `]}`...)
	}
	return nil
}
