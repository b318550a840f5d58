package retention

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"blobtail/catalog"
	"blobtail/catalog/erasure"
	"blobtail/catalog/hold"
	"blobtail/catalog/horizon"
	"blobtail/internal/units"
	"blobtail/storage"
)

// Held are the days of a service that are past their age and stay, because of a hold.
type Held struct {
	Service, Hold string
	First, Last   horizon.Day
	Days          int // that are stored
}

// stay notes that a stored day is past its age and held.
func (p *Plan) stay(service string, d horizon.Day, by *hold.Hold) {
	if n := len(p.Held); n == 0 || p.Held[n-1].Service != service || p.Held[n-1].Hold != by.Name {
		p.Held = append(p.Held, Held{Service: service, Hold: by.Name, First: d})
	}
	h := &p.Held[len(p.Held)-1]
	h.Last, h.Days = d, h.Days+1
}

// hides reports whether a mark hides a held day.
func hides(m *horizon.Mark, holds hold.Holds) bool {
	if m.Single {
		return holds.Of(m.Service, m.Day) != nil
	}
	return holds.First(m.Service) < m.Day
}

// late reports whether a mark hides a held day and came after the hold: the run that made it did not
// know of the hold, and was killed before it looked again. A hold that is younger than the mark has
// left the mark in force.
func late(m *horizon.Mark, holds hold.Holds) bool {
	return slices.ContainsFunc(holds, func(h hold.Hold) bool {
		return hides(m, hold.Holds{h}) && !m.Blob.Created.IsZero() && !m.Blob.Created.Before(h.Made)
	})
}

// withdraw takes back marks that this run has published, if there is a hold by now. A hold looks for
// marks when it exists, and a run for holds when its marks exist: so one of both sees the other.
func (j *Job) withdraw(ctx context.Context, made []horizon.Mark) (held bool, err error) {
	holds, err := hold.List(ctx, j.blobs)
	if err != nil {
		return false, err
	}
	var gone []storage.Blob
	for i := range made {
		if !hides(&made[i], holds) {
			continue
		}
		held = true
		marks, err := horizon.Marks(ctx, j.blobs, made[i].Service)
		if err != nil {
			return false, err
		}
		for _, m := range marks {
			if late(&m, holds) {
				gone = append(gone, m.Blob)
			}
		}
	}
	return held, j.blobs.Delete(ctx, gone...)
}

// Hold has days of services stay until [Job.Release], whatever the policy says. It is in force when
// Hold returns nil. A [*RefusedError] says that another hold has the name, or that some of the days
// are hidden already: a hold with a first day promises all days from there on. It may be repeated.
func (j *Job) Hold(ctx context.Context, h hold.Hold) error {
	err := hold.Create(ctx, j.blobs, &h)
	there := errors.Is(err, storage.ErrExist)
	var known hold.Holds // the hold, if it was there before
	if there {
		if known, err = hold.List(ctx, j.blobs); err != nil {
			return err
		}
		known = slices.DeleteFunc(known, func(o hold.Hold) bool {
			return o.Name != h.Name || !slices.Equal(o.Services, h.Services) || o.From != h.From || o.To != h.To
		})
		if len(known) == 0 {
			return refusef("there is another hold %s: see retention holds, and take another name", h.Name)
		}
	}
	if err != nil {
		return fmt.Errorf("create the hold: %w", err)
	}
	hidden, err := j.hiddenOf(ctx, &h, known)
	if err == nil && hidden == "" {
		err = j.erasing(ctx, &h)
	}
	if err != nil || hidden == "" {
		return err
	}
	if there {
		return refusef("the hold %s is not in force: retention release %[1]s ends it; %s", h.Name, hidden)
	}
	if err := hold.Undo(ctx, j.blobs, &h); err != nil {
		return err
	}
	return refusef("%s", hidden)
}

// erasing refuses if a run may be erasing records of a day of a hold. The hold stays, and stops that run:
// its next step looks for holds.
func (j *Job) erasing(ctx context.Context, h *hold.Hold) error {
	now, err := storage.Now(ctx, j.blobs, time.Now())
	if err != nil {
		return err
	}
	marked, err := erasure.Marked(ctx, j.blobs, now.Add(-erasure.Fresh))
	for _, dir := range slices.Sorted(maps.Keys(marked)) {
		service, date, _ := strings.Cut(dir, "/")
		if day, perr := time.Parse("2006/01/02", date); perr == nil && h.Holds(service, horizon.DayOf(day)) {
			return refusef("records of %s of %s are being erased, or were a moment ago; the hold %s is there and stops that: "+
				"it is in force when this command, repeated %s later, exits with 0",
				horizon.DayOf(day), service, h.Name, units.Duration(erasure.Fresh))
		}
	}
	return err
}

// hiddenOf tells which days of a hold with a first day are hidden already, and what is left of them. Marks
// that came behind a known hold are no reason: the next run withdraws them.
func (j *Job) hiddenOf(ctx context.Context, h *hold.Hold, known hold.Holds) (text string, err error) {
	marks, err := horizon.Marks(ctx, j.blobs)
	if err != nil && !errors.Is(err, storage.ErrNotExist) || h.From == hold.Oldest {
		return "", err
	}
	all := horizon.Of(slices.DeleteFunc(marks, func(m horizon.Mark) bool { return late(&m, known) }))
	for _, service := range slices.Sorted(maps.Keys(all)) {
		s := all[service]
		days := slices.DeleteFunc(slices.Clone(s.Dropped), func(d horizon.Day) bool { return !h.Holds(service, d) })
		if s.Set && h.Of(service) && h.From < s.First {
			days = append(days, h.From, min(h.To, s.First-1))
		}
		if len(days) == 0 {
			continue
		}
		first, last := slices.Min(days), slices.Max(days)
		var left Day
		r := catalog.Range{From: first.Start(), To: (last + 1).Start()}
		for e, err := range catalog.Blobs(ctx, j.blobs, service, r) {
			if err != nil {
				return "", err
			}
			if e.Blob() && s.Hides(e.Day()) {
				left.add(&e)
			}
		}
		return fmt.Sprintf("%s: days between %s and %s are hidden already, with %s and %s that are left of them; "+
			"hold other days, or without --from all that is not hidden",
			service, first, last, units.Count(left.Blobs, "blob"), units.Count(left.Records, "record")), nil
	}
	return "", nil
}

// Holds returns all holds with their reasons.
func (j *Job) Holds(ctx context.Context) (hold.Holds, error) {
	all, err := hold.List(ctx, j.blobs)
	for i := range all {
		err = errors.Join(err, hold.Read(ctx, j.blobs, &all[i]))
	}
	return all, err
}

// Release ends a hold: the policy counts again. The error is a [*RefusedError] if there is none of the
// name.
func (j *Job) Release(ctx context.Context, name string) error {
	h := hold.Hold{Name: name}
	b, err := j.blobs.Stat(ctx, h.Key())
	if errors.Is(err, storage.ErrNotExist) {
		return refusef("there is no hold %s: see retention holds", name)
	}
	if err != nil {
		return err
	}
	return j.blobs.Delete(ctx, b)
}
