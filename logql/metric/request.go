package metric

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"blobtail/logql"
	"blobtail/logql/stage"
)

// A Request asks for the samples or counts of one range aggregation. Its caller fills it, from
// one goroutine.
type Request struct {
	// Agg has the pipeline and the unwrap that make samples of records. A sample is 1, or the
	// length of the line for bytes_over_time and bytes_rate, or the unwrapped value.
	Agg *logql.RangeAgg
	// From and To bound the times of the samples: From <= t < To, in ns since 1970. Other samples
	// may be added and do not count.
	From, To int64
	// Group are the labels that the series of samples need to have; nil: all. The samples may
	// have more labels. They are left out then, but a caller that leaves them out saves much.
	Group *logql.Grouping
	// Names are the labels that the query names for its results, sorted. A field of a record is a
	// label of its series only if it is among them.
	Names []string

	op     operation
	geo    *geometry
	allows *allowance
	byKey  map[string]*column // the keys of callers
	bytes  int                // of these keys
	byLabs map[string]*column // the keys of labels
	all    []*column          // in the order in which they came
	lately string             // the key of the last sample
	newest *column            // its series
}

// A Request remembers so many keys, with so many bytes, before it begins anew.
const (
	manyKeys = 100_000
	keyBytes = 4 << 20
)

// column are the cells of a series. Cells from first to last, both included, have been touched.
type column struct {
	labels      []Label
	first, last int
	charged     int
	cells       cells
}

// Wants reports whether a window has a time. A caller may skip the records of other times.
func (r *Request) Wants(ns int64) bool {
	_, ok := r.geo.cell(ns)
	return ok
}

// Wanted tells the sampler of the pipeline which labels and values the request needs.
func (r *Request) Wanted() stage.Wanted {
	return stage.Wanted{Only: r.Group, Fields: r.Names, Bytes: strings.HasPrefix(string(r.Agg.Op), "bytes_")}
}

// Add adds a sample of a time, in ns since 1970. Samples must come in order of time. The key is
// any text that all samples with these labels have, and no others; it must not change later.
// Labels may be in any order, and are copied. If the series is known, nothing is allocated and
// the labels are not looked at.
//
// An [*Error] says that a limit is reached, or that the labels have an __error__.
func (r *Request) Add(ns int64, value float64, key string, labels []Label) error {
	cell, ok := r.geo.cell(ns)
	if !ok {
		return nil
	}
	c, err := r.column(key, labels, cell)
	if err != nil {
		return err
	}
	return c.cells.add(cell-c.first, ns, value)
}

// AddCount adds n records of a bucket that begins at a time, in ns since 1970. No border of a
// cell may be within the bucket; [Request.Index] tells. A bucket that begins before From has
// records from From on. Buckets may come in any order. The key and the labels are as for Add.
func (r *Request) AddCount(ns, n int64, key string, labels []Label) error {
	if !r.op.counts || r.Agg.Range.Unwrap != nil {
		return fmt.Errorf("metric: %s needs samples, not counts", r.Agg.Op)
	}
	cell, ok := r.geo.cell(max(ns, r.From))
	if !ok || n <= 0 {
		return nil
	}
	c, err := r.column(key, labels, cell)
	if err != nil {
		return err
	}
	c.cells.count(cell-c.first, n)
	return nil
}

// Index reports whether counts of records by the minute suffice, without their lines: for
// count_over_time, rate and absent_over_time, if windows begin and end at whole minutes, or if
// there is only one. The buckets for AddCount may then be as long as by, which divides a day, and
// begin at its multiples. Whether an index has the series, the pipeline tells:
// [stage.Sampler.Selection].
func (r *Request) Index() (by time.Duration, ok bool) {
	by = r.geo.bucket()
	return by, r.op.counts && r.Agg.Range.Unwrap == nil && by%time.Minute == 0
}

// column returns the series of a key, with room for a cell.
func (r *Request) column(key string, labels []Label, cell int) (*column, error) {
	c := r.newest
	if c == nil || key != r.lately {
		if c = r.byKey[key]; c == nil {
			var err error
			if c, err = r.create(key, labels, cell); err != nil {
				return nil, err
			}
		}
		r.lately, r.newest = key, c
	}
	if cell < c.first || cell > c.last {
		if err := r.extend(c, min(cell, c.first), max(cell, c.last)); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// A State has the cells of a series, from one on.
type State struct {
	Labels []Label
	First  int
	Cells  []sum
}

// Joins reports whether requests for parts of the time can be joined: those of sums, counts, least and
// largest values, first and last ones.
func (r *Request) Joins() bool {
	_, ok := r.op.make(r).(*sums)
	return ok
}

// States are those of all series; none unless the request [Request.Joins].
func (r *Request) States() (all []State) {
	for _, c := range r.all {
		if s, ok := c.cells.(*sums); ok {
			all = append(all, State{c.labels, c.first, s.cells()})
		}
	}
	return all
}

// Join adds the states of the same request for a later part. An error is an [*Error], or that of the budget.
func (r *Request) Join(later []State) error {
	for _, of := range later {
		id, last := key(of.Labels), of.First+len(of.Cells)-1
		if of.First < 0 || last < of.First || last >= r.geo.cells {
			return errorf("a part has cells that the query has not")
		}
		if _, err := r.column(id, of.Labels, of.First); err != nil {
			return err
		}
		c, err := r.column(id, of.Labels, last)
		if err != nil {
			return err
		}
		s := c.cells.(*sums)
		for i, cell := range of.Cells {
			at := s.room + of.First - c.first + i
			s.all[at] = s.joined(s.all[at], cell)
		}
	}
	return nil
}

// create finds the series of labels, or makes it, and remembers it under a key.
func (r *Request) create(id string, labels []Label, cell int) (*column, error) {
	if i := slices.IndexFunc(labels, func(l Label) bool { return l.Name == errorLabel && l.Value != "" }); i >= 0 {
		return nil, errorf("pipeline error: '%s' for series: '%s'. To skip such records, end the pipeline with | %s=\"\"",
			labels[i].Value, spoken(grouped(labels, nil)), errorLabel)
	}
	kept := grouped(labels, r.Group)
	k := key(kept)
	c := r.byLabs[k]
	if c == nil {
		if err := r.allows.take(labelCost(kept)); err != nil {
			return nil, err
		}
		c = &column{labels: kept, first: cell, last: cell - 1, cells: r.op.make(r)}
		r.byLabs[k] = c
		r.all = append(r.all, c)
	}
	if len(r.byKey) >= manyKeys || r.bytes > keyBytes {
		r.byKey, r.bytes = map[string]*column{}, 0
	}
	r.byKey[id] = c
	r.bytes += len(id)
	return c, nil
}

// extend gives a series the cells from first to last.
func (r *Request) extend(c *column, first, last int) error {
	from, to := r.geo.covering(first, last)
	cost := max((last-first+1)*r.op.weight, to-from+1)
	if err := r.allows.take(cost - c.charged); err != nil {
		return err
	}
	before, after := c.first-first, last-c.last
	c.charged = cost
	c.cells.grow(before, after)
	c.first, c.last = first, last
	return nil
}

// labelCost is how many cells have the memory of a series and its labels.
func labelCost(labels []Label) int {
	n := 256
	for _, l := range labels {
		n += 32 + 2*(len(l.Name)+len(l.Value))
	}
	return n / cellBytes
}
