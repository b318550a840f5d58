package reading

import (
	"context"
	"errors"
	"slices"
	"time"

	"blobtail/internal/budget"
	"blobtail/reading/blobs"
	"blobtail/record"
)

// listedBytes is the memory of a listed blob, and of its text in an answer.
const listedBytes = 400

// Services implements [Source]. It counts the records of blobs and those in none apart.
func (s *Store) Services(ctx context.Context, a Ask) (list []Service, out *Outcome, err error) {
	a = Ask{Services: []string{"*", "_*"}, Range: a.Range, Live: a.Live, Here: Here{Sure: true}, compiled: compiled{byName: true}} // each of the two parts has some of them
	out, err = s.run(ctx, a, func(ctx context.Context, from *blobs.Reader, q blobs.Query) (sum blobs.Summary, err error) {
		at := map[string]int{}
		for _, name := range named(&q) {
			at[name] = len(list)
			list = append(list, Service{Name: name, First: Newest, Last: Oldest})
		}
		if len(list) == 0 { // those that begin meanwhile are in the next answer
			return sum, nil
		}
		stored := q
		stored.Unflushed = nil
		for _, part := range []struct {
			reader *blobs.Reader
			query  blobs.Query
			add    func(s *Service, v *Volume)
		}{{from, stored, (*Service).stored}, {blobs.Without(blobs.Options{}), q, (*Service).held}} {
			volumes, work, err := part.reader.Volume(ctx, part.query)
			sum.Join(&work)
			if err != nil {
				return sum, err
			}
			for i := range volumes {
				part.add(&list[at[volumes[i].Service]], &volumes[i])
			}
		}
		list = slices.DeleteFunc(list, func(s Service) bool { return s.Records+s.Unflushed == 0 })
		if a.Range.Bounded() {
			for i := range list {
				list[i].Stored = 0
			}
		}
		sum.Records = int64(len(list))
		return sum, nil
	})
	return list, out, err
}

// stored adds the volume of blobs.
func (s *Service) stored(v *Volume) {
	s.Blobs, s.Records, s.Bytes, s.Stored = v.Blobs, v.Records, v.Bytes, v.Stored
	s.extend(v)
}

// held adds the volume of records in no blob.
func (s *Service) held(v *Volume) {
	s.Unflushed = v.Records
	// A record that was stored while it was gathered is in a blob of its time.
	s.Estimated = s.Estimated || s.Records > 0 && s.Last >= v.First
	s.extend(v)
}

// extend adds the times and levels of a volume.
func (s *Service) extend(v *Volume) {
	s.First, s.Last = min(s.First, v.First), max(s.Last, v.Last)
	s.Estimated = s.Estimated || v.Estimated
	for level, n := range v.Levels {
		s.Levels[level] += n
	}
}

// Days implements [Source].
func (s *Store) Days(ctx context.Context, a Ask) (all []Listed, out *Outcome, err error) {
	out, err = s.each(ctx, a, func(ctx context.Context, blobs *blobs.Reader, q blobs.Query, service string) (blobs.Summary, error) {
		days, sum, err := blobs.List(ctx, q, time.Time{})
		for i := range days {
			if touches(a.Range, &days[i]) {
				all = append(all, Listed{service, days[i]})
			}
		}
		return sum, err
	})
	return all, out, err
}

// Blobs implements [Source].
func (s *Store) Blobs(ctx context.Context, a Ask) (all []Listed, out *Outcome, err error) {
	out, err = s.each(ctx, a, func(ctx context.Context, blobs *blobs.Reader, q blobs.Query, service string) (sum blobs.Summary, err error) {
		days, err := daysOf(ctx, blobs, q, a.Range, &sum)
		if err != nil {
			return sum, err
		}
		for _, day := range days {
			list, part, err := blobs.List(ctx, q, day)
			sum.Join(&part)
			if err == nil {
				err = budget.Of(ctx).Take(listedBytes * int64(len(list)))
			}
			if err != nil {
				return sum, err
			}
			for i := range list {
				if list[i].Name == "" || touches(a.Range, &list[i]) {
					all = append(all, Listed{service, list[i]})
				}
			}
		}
		return sum, nil
	})
	return all, out, err
}

// each lists something of each service of a question. Unflushed records are listed by their days,
// so all of them are gathered.
func (s *Store) each(ctx context.Context, a Ask, list func(ctx context.Context, blobs *blobs.Reader, q blobs.Query, service string) (blobs.Summary, error)) (*Outcome, error) {
	a = Ask{Services: a.Services, LogQL: a.LogQL, Range: Always(), Live: a.Live, compiled: a.compiled}
	a.byName = true
	return s.run(ctx, a, func(ctx context.Context, blobs *blobs.Reader, q blobs.Query) (sum blobs.Summary, err error) {
		services := q.Services
		var absent []*NoServiceError
		for _, service := range services {
			q.Services = []string{service}
			if !record.ValidStored(service) { // a glob without a match
				absent = append(absent, &NoServiceError{Name: service})
				continue
			}
			part, err := list(ctx, blobs, q, service)
			if none, ok := errors.AsType[*NoServiceError](err); ok { // the others may exist
				absent, err = append(absent, none), nil
			}
			sum.Join(&part)
			if err != nil {
				return sum, err
			}
		}
		return sum, sum.Miss(absent, nil, len(absent) < len(services))
	})
}

// touches reports whether a total has records that may be in a range.
func touches(rng Range, t *Total) bool {
	return t.Last >= rng.From && (t.First < rng.To || rng.To == Newest)
}

// daysOf returns the days of a service that a range touches. If they are many, it lists those
// with records.
func daysOf(ctx context.Context, blobs *blobs.Reader, q blobs.Query, rng Range, sum *blobs.Summary) (days []time.Time, err error) {
	const day, few = 24 * time.Hour, 3
	if rng.From != Oldest && rng.To != Newest && rng.To-rng.From <= int64(few*day) {
		for at := time.Unix(0, rng.From).UTC().Truncate(day); at.UnixNano() < rng.To; at = at.Add(day) {
			days = append(days, at)
		}
		return days, nil
	}
	list, part, err := blobs.List(ctx, q, time.Time{})
	sum.Join(&part)
	for i := range list {
		at, perr := time.Parse(time.DateOnly, list[i].Name)
		if perr == nil && touches(rng, &list[i]) {
			days = append(days, at)
		}
	}
	return days, err
}
