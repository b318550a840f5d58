package api

import (
	"time"

	"blobtail/internal/access"
	"blobtail/internal/door"
	"blobtail/reading"
	"blobtail/reading/form"
	"blobtail/record"
)

func (c *call) services() error {
	var a reading.Ask
	var err error
	if a.Live, err = c.live(); err != nil {
		return err
	}
	if a.Range, err = c.params.Span(c.now); err != nil {
		return err
	}
	all, out, err := c.store.Services(c.r.Context(), a)
	if err != nil {
		return err
	}
	answer := form.Services{Services: make([]form.Service, 0, len(all)), Outcome: form.OutcomeOf(out), Range: c.rangeOf(&a)}
	for i := range all {
		s := &all[i]
		of := form.Service{
			Name: s.Name, Blobs: s.Blobs, Records: s.Records, Bytes: s.Bytes, Stored: s.Stored, Unflushed: s.Unflushed, Estimated: s.Estimated,
			Levels: map[string]int64{}, First: form.Stamp(s.First), Last: form.Stamp(s.Last), System: s.Name[0] == '_',
		}
		for level, n := range s.Levels {
			if n > 0 {
				of.Levels[record.Level(level).String()] = n
			}
		}
		answer.Services = append(answer.Services, of)
	}
	return c.json(answer)
}

func (c *call) whoami() error { return c.me(c.token, door.SessionEnd(c.r)) }

// me answers with the rights of the holder of a token, and the end of a session; zero: there is
// none.
func (c *call) me(t *access.Token, ends time.Time) error {
	now, err := c.o.Time(c.r.Context())
	if err != nil {
		return err
	}
	answer := form.Whoami{Read: []string{"*", "_*"}, Version: c.o.Version, Time: form.Stamp(now.UnixNano())}
	if t != nil {
		answer.ID, answer.Read, answer.Limits = t.ID, append([]string{}, t.Read...), t.Limits.String()
		if !t.Expires.IsZero() {
			answer.Expires = form.Stamp(t.Expires.UnixNano())
		}
	}
	if !ends.IsZero() {
		answer.SessionEnds = form.Stamp(ends.UnixNano())
	}
	return c.json(answer)
}
