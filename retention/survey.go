package retention

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"blobtail/catalog"
	"blobtail/catalog/hold"
	"blobtail/catalog/horizon"
	"blobtail/storage"
	"blobtail/storage/fanout"
)

// service is a run's knowledge of one service.
type service struct {
	name   string
	stored bool // something is stored under the name
	// keptFrom is the first day that the policy keeps, if the service expires.
	keptFrom horizon.Day
	expires  bool
	marks    []horizon.Mark  // but for late ones
	holds    hold.Holds      // of all services
	late     []storage.Blob  // marks that hide held days, of a run that was killed
	hidden   horizon.Service // hidden by marks
	settled  horizon.Service // hidden by marks that are a grace old, and by single days some seconds old
	// refused is the last horizon that no policy can have published; zero: there is none.
	refused horizon.Day
	oldest  time.Time // start of the oldest day that stays, if there is one
	due     []Day     // of the plan
}

// step is the next step of a day that is hidden or past its age.
func (s *service) step(d horizon.Day) Step {
	switch {
	case s.settled.Hides(d) && s.refused == 0:
		return Delete
	case s.hidden.Hides(d):
		return Wait
	}
	return Hide
}

// services lists the services of the store, with their hidden days.
func (j *Job) services(ctx context.Context, at, now time.Time) ([]service, error) {
	names, err := catalog.Services(ctx, j.blobs)
	if err != nil {
		return nil, err
	}
	marks, err := horizon.Marks(ctx, j.blobs)
	if err != nil {
		return nil, err
	}
	holds, err := hold.List(ctx, j.blobs)
	if err != nil {
		return nil, err
	}
	of := make(map[string][]horizon.Mark)
	for _, name := range names {
		of[name] = nil
	}
	for _, m := range marks {
		of[m.Service] = append(of[m.Service], m) // perhaps of nothing else: marks to be tidied
	}
	var list []service
	for _, name := range slices.Sorted(maps.Keys(of)) {
		s := service{name: name}
		_, s.stored = slices.BinarySearch(names, name)
		s.know(of[name], holds, now, j.o.Grace)
		if age := j.o.Policy.Age(name); s.stored && age != Keep {
			s.keptFrom, s.expires = firstKept(at, age), true
		}
		list = append(list, s)
	}
	return list, nil
}

// know evaluates the marks of a service, and the holds.
func (s *service) know(marks []horizon.Mark, holds hold.Holds, now time.Time, grace time.Duration) {
	s.holds, s.late = holds, nil
	marks = slices.DeleteFunc(slices.Clone(marks), func(m horizon.Mark) bool {
		is := late(&m, holds)
		if is {
			s.late = append(s.late, m.Blob)
		}
		return is
	})
	settled := slices.DeleteFunc(slices.Clone(marks), func(m horizon.Mark) bool {
		age := grace
		if m.Single { // a store's times may be whole seconds
			age = horizon.Settle + time.Second
		}
		return m.Blob.Created.IsZero() || now.Sub(m.Blob.Created) < age
	})
	s.marks = marks
	s.hidden, s.settled, s.refused = horizon.Of(horizon.Possible(marks, now))[s.name], horizon.Of(horizon.Possible(settled, now))[s.name], 0
	for _, m := range marks {
		if m.Impossible(now.Add(-minAge)) { // no age is below a day
			s.refused = max(s.refused, m.Day)
		}
	}
}

// each calls do for 0 to n-1, some at once, and returns the first error. No call begins after an
// error, and those under way go on to their end.
func each(n int, do func(i int) error) error {
	const atOnce = 32 // they mostly wait: a request to a remote store takes some ten milliseconds
	return fanout.Each(context.Background(), n, atOnce, func(_ context.Context, i int) error { return do(i) })
}

// survey lists the due days of all services.
func (j *Job) survey(ctx context.Context, p *Plan) error {
	parts := make([]Plan, len(p.services))
	err := each(len(parts), func(i int) error { return j.surveyService(ctx, &p.services[i], &parts[i]) })
	if err != nil {
		return err
	}
	for i, part := range parts {
		p.services[i].due = part.Days
		p.Days = append(p.Days, part.Days...)
		p.Problems = append(p.Problems, part.Problems...)
		p.accounts = append(p.accounts, part.accounts...)
		p.Held = append(p.Held, part.Held...)
		p.Foreign.Count += part.Foreign.Count
		p.Foreign.First = append(p.Foreign.First, part.Foreign.First[:min(len(part.Foreign.First), fewKeys-len(p.Foreign.First))]...)
	}
	return nil
}

// surveyService lists the days of a service from its oldest up to the first that
// stays, and then the single dropped days above that.
func (j *Job) surveyService(ctx context.Context, s *service, p *Plan) error {
	if !s.stored {
		return nil
	}
	end, bounded := s.keptFrom, s.expires
	switch {
	case s.refused != 0:
		p.Problems = append(p.Problems, fmt.Errorf("%s: its horizon %s is later than any policy can have set it, so nothing of it is deleted; look at _horizon/%s/",
			s.name, s.refused, s.name))
	case s.hidden.Set && (!bounded || s.hidden.First > end):
		end, bounded = s.hidden.First, true
	}
	if bounded {
		for d, err := range catalog.Days(ctx, j.blobs, s.name, time.Time{}) {
			if err != nil {
				return err
			}
			if d >= end {
				s.oldest = d.Start()
				break
			}
			if h := s.holds.Of(s.name, d); h != nil {
				p.stay(s.name, d, h)
				continue
			}
			if err := j.takeDay(ctx, s, d, p); err != nil {
				return err
			}
		}
	}
	for _, d := range s.hidden.Dropped {
		if bounded && d < end || s.holds.Of(s.name, d) != nil {
			continue
		}
		if err := j.takeDay(ctx, s, d, p); err != nil {
			return err
		}
	}
	return nil
}

// takeDay adds a service and day to a plan, with the sum of its blobs.
func (j *Job) takeDay(ctx context.Context, s *service, day horizon.Day, p *Plan) error {
	d := Day{Service: s.name, Day: day, Step: s.step(day)}
	for e, err := range catalog.Blobs(ctx, j.blobs, s.name, catalog.DayRange(day)) {
		switch {
		case err != nil:
			return err
		case e.Blob():
			j.o.Progress.Find()
			d.add(&e)
		case e.State == catalog.Account:
			if d.Step == Delete && s.settled.Set && day < s.settled.First {
				p.accounts = append(p.accounts, e.Object())
			}
		case e.State == catalog.Unknown: // so the blob stays this time
			p.Problems = append(p.Problems, e.Err)
		default:
			if p.Foreign.Count++; p.Foreign.Count <= fewKeys {
				p.Foreign.First = append(p.Foreign.First, e.Key)
			}
		}
	}
	if d.Blobs > 0 {
		p.Days = append(p.Days, d)
	}
	return nil
}
