package tally

import (
	"errors"
	"fmt"
	"sync/atomic"

	"blobtail/internal/count"
	"blobtail/internal/globset"
	"blobtail/internal/where"
	"blobtail/record"
)

// Counter is a counter of the operator's own.
type Counter struct {
	// Name is the label of the counter.
	Name string
	// Service is a name or a glob as those of [record.MatchService]. "": all services but
	// the system's.
	Service string
	// Where is an expression as those of [where.Parse]. "": all records.
	Where string
}

// Counters count the records that expressions select.
type Counters struct {
	of  []counter
	set *globset.Set
}

type counter struct {
	name  string
	where *where.Expr // nil: all records
	n     atomic.Uint64
}

// NewCounters compiles counters. An error names the key in the configuration, the counter
// and the column of each mistake.
func NewCounters(all []Counter) (*Counters, error) {
	c := &Counters{
		of: make([]counter, len(all)),
	}
	var mistakes []error
	patterns := make([]string, len(all))
	for i, one := range all {
		patterns[i] = one.Service
		if one.Service == "" {
			patterns[i] = "*"
		}
		c.of[i].name = one.Name
		if one.Where == "" {
			continue
		}
		var err error
		if c.of[i].where, err = where.Parse(nil, one.Where, false); err != nil {
			mistakes = append(mistakes, fmt.Errorf("counters[%d].where: %q: %w (counter %s)", i, one.Where, err, one.Name))
		}
	}
	c.set = globset.New(patterns)
	return c, errors.Join(mistakes...)
}

// count counts the records of a request.
func (c *Counters) count(r *record.Request) {
	var room [few][]int
	wanted, some := room[:0], false // by service
	for _, name := range r.Services {
		of := c.set.Match(name)
		wanted, some = append(wanted, of), some || len(of) > 0
	}
	if !some {
		return
	}
	for i := range r.Lines {
		l := &r.Lines[i]
		for _, n := range wanted[l.Service] {
			one := &c.of[n]
			if one.where == nil || one.where.Select(r.Data[l.Off:l.Off+l.Len]) {
				one.n.Add(1)
			}
		}
	}
}

// write writes the counters.
func (c *Counters) write(p *count.Page) {
	p.Family("blobtail_selected_records_total", "counter", "Records that were accepted and that a counter of the configuration selects.")
	for i := range c.of {
		p.Value(float64(c.of[i].n.Load()), "name", c.of[i].name)
	}
}
