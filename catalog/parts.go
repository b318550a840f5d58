package catalog

import (
	"context"
	"iter"
	"time"

	"blobtail/catalog/horizon"
	"blobtail/storage"
	"blobtail/storage/fanout"
)

// A range rarely has a prefix of its own: two days have one month in common, and a range without
// an end has the service alone. Azure begins a listing at its prefix, so it lists all older names
// of the service too. So a view of few services may list a range in parts: each is a day, or ten
// days or a month of a long range, and has a prefix of its own. The parts are requested at once.
// Then the cost of a listing depends on the range alone, and not on the days that are kept beside
// it.
//
// A range without an end is listed so up to today. Three requests for the names of directories,
// at the same time, find the later days, and these are mostly none. Objects of other programs that
// are in no day of a range do not appear.

const (
	// fewServices is how many services a view lists in parts. With more of them the requests are
	// many, and one for each service is less.
	fewServices = 4
	// The longest ranges with parts of a day, of ten days, and of a month; none is longer.
	mostByDay    = 8 * 24 * time.Hour
	mostByTen    = 62 * 24 * time.Hour
	mostByMonth  = 2 * 366 * 24 * time.Hour
	tensOfAMonth = 10
	// partsAtOnce is all parts of a day or of ten days. Months take turns, because each part at
	// once holds a page of names.
	partsAtOnce = 11
	takenAhead  = 64 // objects of each part
)

// InParts has the view list ranges in parts, if its services are few, by the host's clock. It is
// for a store that begins each listing at its prefix, and for a view that has listed nothing yet.
func (v *View) InParts(now func() time.Time) { v.parts = now }

// objects lists the objects of a service in a range.
func (v *View) objects(ctx context.Context, service string, r Range) iter.Seq2[storage.Blob, error] {
	if n := len(v.services); v.parts == nil || n == 0 || n > fewServices || r.From.IsZero() {
		return r.list(ctx, v.store, service)
	}
	known, open := r, r.To.IsZero()
	if open {
		known.To = (max(horizon.DayOf(v.parts()), horizon.DayOf(r.From)) + 1).Start()
	}
	if known.To.Sub(known.From) > mostByMonth {
		return r.list(ctx, v.store, service)
	}
	var parts []walk
	for _, part := range known.parts() {
		parts = append(parts, func(ctx context.Context) iter.Seq2[storage.Blob, error] { return part.list(ctx, v.store, service) })
	}
	if open {
		parts = append(parts, func(ctx context.Context) iter.Seq2[storage.Blob, error] {
			return later(ctx, v.store, service, horizon.DayOf(known.To))
		})
	}
	if len(parts) == 1 {
		return parts[0](ctx)
	}
	return inOrder(ctx, parts)
}

// parts divides a range with both ends.
func (r Range) parts() (out []Range) {
	next := nextMonth
	switch length := r.To.Sub(r.From); {
	case length <= mostByDay:
		next = nextDay
	case length <= mostByTen:
		next = nextTen
	}
	for at := r.From.UTC(); at.Before(r.To); {
		end := next(at)
		if end.After(r.To) {
			end = r.To
		}
		out, at = append(out, Range{at, end, r.Closed}), end
	}
	return out
}

func nextDay(t time.Time) time.Time { return (horizon.DayOf(t) + 1).Start() }

func nextMonth(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, time.UTC)
}

// nextTen is the next day with another first digit in the names of blobs.
func nextTen(t time.Time) time.Time {
	ten := time.Date(t.Year(), t.Month(), t.Day()/tensOfAMonth*tensOfAMonth+tensOfAMonth, 0, 0, 0, 0, time.UTC)
	if month := nextMonth(t); ten.After(month) {
		return month
	}
	return ten
}

// later lists the objects of all days of a service from a day on.
func later(ctx context.Context, store Store, service string, from horizon.Day) iter.Seq2[storage.Blob, error] {
	return func(yield func(storage.Blob, error) bool) {
		t := tree{store: store, service: service, depth: dayLevels, near: from.Start()}
		for day, err := range t.days(ctx, from.Start()) {
			if err != nil {
				yield(storage.Blob{}, err)
				return
			}
			for o, err := range DayRange(day).list(ctx, store, service) {
				if !yield(o, err) || err != nil {
					return
				}
			}
		}
	}
}

// A walk lists some objects.
type walk func(ctx context.Context) iter.Seq2[storage.Blob, error]

// inOrder walks over some listings one after another, and begins with many of them at once. It
// ends at its first error.
func inOrder(ctx context.Context, walks []walk) iter.Seq2[storage.Blob, error] {
	type item struct {
		blob storage.Blob
		err  error
	}
	return func(yield func(storage.Blob, error) bool) {
		walking, stop := context.WithCancel(ctx)
		var work fanout.Crew
		defer work.Wait()
		defer stop()
		found := make([]chan item, len(walks))
		begin := func(i int) {
			found[i] = make(chan item, takenAhead)
			work.Go(func() {
				defer close(found[i])
				for blob, err := range walks[i](walking) {
					select {
					case found[i] <- item{blob, err}:
					case <-walking.Done():
						return
					}
				}
			})
		}
		for i := range min(partsAtOnce, len(walks)) {
			begin(i)
		}
		for i := range walks {
			for o := range found[i] {
				if !yield(o.blob, o.err) || o.err != nil {
					return
				}
			}
			if err := ctx.Err(); err != nil { // this walk may have ended early
				yield(storage.Blob{}, err)
				return
			}
			if next := i + partsAtOnce; next < len(walks) {
				begin(next)
			}
		}
	}
}
