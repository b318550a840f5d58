package readapi

import (
	"context"
	"slices"
	"time"

	"blobtail/internal/fanout"
	"blobtail/query"
	"blobtail/readapi/form"
	"blobtail/record"
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
		list, sum, err := c.volumes(blobs, q)
		answer.Services = append(answer.Services, list...)
		return sum, err
	})
	if err != nil {
		return err
	}
	answer.Outcome = outcome(result, &q.Filter)
	return c.json(answer)
}

// volumes sums up the records of services in blobs, and those in none.
func (c *call) volumes(blobs *query.Reader, q query.Query) (list []form.Service, sum query.Summary, err error) {
	at := map[string]int{}
	for _, name := range q.Services {
		at[name] = len(list)
		list = append(list, form.Service{Name: name, System: name[0] == '_', Levels: map[string]int64{}})
	}
	q.Sure = true // each of the two parts has some of them
	stored := q
	stored.Unflushed = nil
	for _, part := range []struct {
		reader *query.Reader
		query  query.Query
		add    func(s *form.Service, v *query.Volume)
	}{
		{blobs, stored, func(s *form.Service, v *query.Volume) { s.Blobs, s.Records, s.Bytes = v.Blobs, v.Records, v.Bytes }},
		{query.Without(query.Options{}), q, func(s *form.Service, v *query.Volume) {
			s.Unflushed = v.Records
			// A record that was stored while it was gathered is in a blob of its time.
			s.Estimated = s.Estimated || s.Records > 0 && s.Last >= stamp(v.First)
		}},
	} {
		volumes, work, err := part.reader.Volume(c.r.Context(), part.query)
		sum.Join(&work)
		if err != nil {
			return nil, sum, err
		}
		for i := range volumes {
			v := &volumes[i]
			s := &list[at[v.Service]]
			part.add(s, v)
			extend(s, v)
		}
	}
	if !q.Range.Bounded() {
		err = c.sizes(blobs, stored, list)
	}
	list = slices.DeleteFunc(list, func(s form.Service) bool { return s.Records+s.Unflushed == 0 })
	sum.Records = int64(len(list))
	return list, sum, err
}

// extend adds the times and levels of a volume to a service.
func extend(s *form.Service, v *query.Volume) {
	if first := stamp(v.First); s.First == "" || first < s.First {
		s.First = first
	}
	if last := stamp(v.Last); last > s.Last {
		s.Last = last
	}
	s.Estimated = s.Estimated || v.Estimated
	for level, n := range v.Levels {
		if n > 0 {
			s.Levels[record.Level(level).String()] += n
		}
	}
}

// sizes adds the bytes of blobs, which are known for whole services.
func (c *call) sizes(blobs *query.Reader, q query.Query, list []form.Service) error {
	const atOnce = 8
	return fanout.Each(c.r.Context(), len(list), atOnce, func(ctx context.Context, i int) error {
		if list[i].Blobs == 0 {
			return nil
		}
		of := q
		of.Services = []string{list[i].Name}
		days, _, err := blobs.List(ctx, of, time.Time{})
		if err != nil {
			return err
		}
		for j := range days {
			list[i].Stored += days[j].Stored
		}
		return nil
	})
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
