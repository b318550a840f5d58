package readapi

import (
	"math"
	"time"

	"blobtail/query"
	"blobtail/readapi/form"
)

func (c *call) services() error {
	mode, err := c.mode()
	if err != nil {
		return err
	}
	q := query.Query{Services: []string{"*", "_*"}}
	if q.Range, err = c.span(); err != nil {
		return err
	}
	answer := form.Services{Services: []form.Service{}}
	result, err := c.client.Query(c.r.Context(), q, mode, func(blobs *query.Reader, q query.Query) (query.Summary, error) {
		c.noteQuery(q)
		var sum query.Summary
		for _, name := range q.Services {
			s, part, err := c.total(blobs, q, name)
			join(&sum, &part)
			if err != nil && !isNone(err) { // its last day may have expired
				return sum, err
			}
			if s.Blobs > 0 || s.Unflushed > 0 {
				answer.Services = append(answer.Services, s)
			}
		}
		return sum, nil
	})
	c.noteResult(result)
	if err != nil {
		return err
	}
	answer.Outcome = outcome(result, &q.Filter)
	return c.json(answer)
}

// total sums up the days of a service that the range of a query touches.
func (c *call) total(blobs *query.Reader, q query.Query, name string) (form.Service, query.Summary, error) {
	rng := q.Range
	q.Services = []string{name}
	days, sum, err := blobs.List(c.r.Context(), q, time.Time{})
	s := form.Service{Name: name, System: name[0] == '_'}
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	for i := range days {
		d := &days[i]
		if !touches(rng, d) {
			continue
		}
		s.Blobs += d.Blobs
		s.Records += d.Records
		s.Bytes += d.Raw
		s.Stored += d.Stored
		s.Unflushed += d.Unflushed
		first, last = min(first, d.First), max(last, d.Last)
	}
	if first <= last {
		s.First, s.Last = stamp(first), stamp(last)
	}
	return s, sum, err
}

func (c *call) whoami() error {
	now, err := c.o.Time(c.r.Context())
	if err != nil {
		return err
	}
	answer := form.Whoami{Read: []string{"*", "_*"}, Version: c.o.Version, Time: stamp(now.UnixNano())}
	if t := c.token; t != nil {
		answer.ID, answer.Read, answer.Limits = t.ID, append([]string{}, t.Read...), t.Limits.String()
		if !t.Expires.IsZero() {
			answer.Expires = stamp(t.Expires.UnixNano())
		}
	}
	return c.json(answer)
}
