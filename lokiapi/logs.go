package lokiapi

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"blobtail/logql"
	"blobtail/logql/stage"
	"blobtail/query"
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
func (c *call) logs(e *logql.LogExpr, rng query.Range) error {
	w, err := c.wish()
	if err != nil {
		return err
	}
	ch, err := c.choose(e, rng)
	if err != nil {
		return err
	}
	begun := time.Now()
	out := streams{sorts: c.sorts, byKey: map[string]*stream{}, wish: w, text: c.api.buffer(), places: make([]place, 0, w.limit)}
	defer func() { c.api.giveBack(out.text) }()
	entries := forming{pipe: ch.pipe, to: &out}
	defer entries.wait()
	sum, err := c.read(ch, w.ask(&ch.query), entries.add)
	if err != nil {
		return err
	}
	entries.end()
	c.out = c.api.buffer()
	c.begins()
	c.out = append(c.out, `"data":{"resultType":"streams",`...)
	if c.sorts {
		c.out = append(c.out, `"encodingFlags":["categorize-labels"],`...)
	}
	c.out = append(c.out, `"result":[`...)
	c.out = out.append(c.out)
	c.out = append(c.out, `],`...)
	c.out = c.appendStats(c.out, sum, len(out.places), begun)
	c.out = append(c.out, '}')
	return nil
}

// day is the longest range that is listed as a whole for its newest lines. Several panels share
// such a listing.
const day = int64(24 * time.Hour)

// ask returns how to read the lines. If some of them are left out afterwards, no limit bounds
// the read.
func (w wish) ask(q *query.Query) reads {
	q.Reverse = !w.forward
	switch {
	case w.interval > 0:
		return byPlan
	case w.forward:
		q.First = w.limit
		return byPlan
	}
	q.Limit = w.limit
	if q.Range.From != query.Oldest && q.Range.To != query.Newest && q.Range.To-q.Range.From <= day {
		return byPlan
	}
	return (*query.Reader).Newest
}

// streams are the lines of an answer by their stream. All lines stand in one text, in the order
// in which they came, because most answers have few streams and some have one for each line.
type streams struct {
	wish  wish
	sorts bool // labels stand apart by their category
	byKey map[string]*stream

	text   []byte
	places []place // of the lines
}

// A stream is the lines that have the same labels.
type stream struct {
	labels      string // as JSON
	first, last int    // of its places
	time        int64  // of its last line
}

// A place is where a line ends, which begins where the one before it ends.
type place struct {
	end  int
	next int // the place of the next line of the stream; 0: there is none
}

// add adds an entry by the labels of its stream, and reports whether there are enough of them.
func (s *streams) add(labels, value []byte, time int64) bool {
	if len(s.places) >= s.wish.limit {
		return true
	}
	at, to := len(s.places), s.byKey[string(labels)]
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
	s.text = append(s.text, value...)
	s.places = append(s.places, place{end: len(s.text)})
	return len(s.places) >= s.wish.limit
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

// mergeLabels appends all labels of an entry, whatever their category, in order. Of one name
// the last one that the pipeline made counts.
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

// append appends the streams in the order of their labels.
func (s *streams) append(dst []byte) []byte {
	all := make([]*stream, 0, len(s.byKey))
	for _, one := range s.byKey {
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b *stream) int { return strings.Compare(a.labels, b.labels) })
	for i, one := range all {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"stream":`...)
		dst = append(dst, one.labels...)
		dst = append(dst, `,"values":[`...)
		for at := one.first; ; at = s.places[at].next {
			begin := 0
			if at > 0 {
				begin = s.places[at-1].end
			}
			dst = append(dst, s.text[begin:s.places[at].end]...)
			if s.places[at].next == 0 {
				break
			}
			dst = append(dst, ',')
		}
		dst = append(dst, `]}`...)
	}
	return dst
}
