// Package closing writes the accounts of days that are over (package catalog/closed).
//
// A scheduler calls [Run] for the days since the last run; an operator calls it for all days of a
// store that has no accounts yet. A day that is over for long enough gets a part: its blobs by a
// listing, and the numbers that lack in it as known losses. A day that has parts gets the next one
// if blobs came, or others were made of them. Package compact has a [Closer] tell its own changes.
//
// The order makes an account true at any moment:
//
//   - Link, then act. A blob is deleted only once a part says that another replaces it.
//   - A part is made by the conditional create, after a look at the horizons that is younger than
//     the listing. Who loses the create has judged by an old part, and lists the day anew.
//   - A blob that is gone without a reason stays in the account: each run names it until an operator
//     accepts the loss.
package closing

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"blobtail/catalog"
	"blobtail/catalog/closed"
	"blobtail/catalog/horizon"
	"blobtail/internal/progress"
	"blobtail/record"
	"blobtail/storage"
)

// After is how long a day is over before it is closed, unless an operator says otherwise: an
// ingester stores what it holds within minutes, and late records come within a day.
const After = 26 * time.Hour

// Options tune a run. The zero value works.
type Options struct {
	// After is how long a day has to be over; 0: [After].
	After time.Duration
	// From is the first day that is closed; 0: the first day stored. Of the week before it the days
	// with an account are looked at again: for late blobs, and for blobs that are missing.
	From horizon.Day
	// Daily has the run write a root also if there is no part for it.
	Daily bool
	// Bytes has blobs of earlier versions read, for the hashes that these did not store.
	Bytes bool
	// Services are names, or globs, see [record.MatchService]. None: all, and rejected records.
	Services []string
	// Key signs the root of the run; nil: it is not signed.
	Key ed25519.PrivateKey
	// Now is the store's time; zero: the store's clock, or the host's if it has none.
	Now time.Time
	// Progress counts the services; nil: nobody waits.
	Progress *progress.Counter
	Log      zerolog.Logger
}

// Result counts the work of a run.
type Result struct {
	Services, Days int // looked at
	Parts          int // written
	Blobs, Records int64
	// Through is the last day that is closed with all since the first day of the first run; 0: only some
	// services were asked for.
	Through horizon.Day
	// Root names the parts that the run has written, and those that it met and no root named. It is nil
	// if there are none, unless the run is daily.
	Root *closed.Root
	// Problems make the run incomplete: blobs that are missing, days that could not be closed.
	Problems []error
}

// Run closes the days of a store, or those that Options names. An error ends it early. The error
// wraps storage.ErrNotExist if the store does not exist.
func Run(ctx context.Context, store storage.BlobStore, o Options) (out Result, err error) {
	if o.Now.IsZero() {
		if o.Now, err = storage.Now(ctx, store, time.Now()); err != nil {
			return out, err
		}
	}
	services, err := o.services(ctx, store)
	if err != nil {
		return out, err
	}
	last := Last(o.Now, o.After)
	c := NewCloser(store, o.Now)
	c.bytes = o.Bytes
	r := &run{o: o, Closer: c, out: &out, known: closed.Parts{}, last: last, through: last}
	r.view = catalog.NewView(store, services, horizon.Checked{})
	met := func(_, newest string) bool { return o.From == 0 || newest >= (o.From-again).String() }
	for root, err := range catalog.Roots(ctx, store, met) {
		switch {
		case err == nil:
			r.known.Add(root.Days)
		case !errors.Is(err, closed.ErrUnread):
			return out, err
		}
	}
	o.Progress.Expect(len(services), 0)
	for _, service := range services {
		out.Services++
		if err := r.service(ctx, service); err != nil {
			return out, err
		}
		o.Progress.Finish(1, 0)
	}
	out.Through = r.through
	if len(r.added) > 0 || o.Daily {
		if len(o.Services) > 0 {
			out.Through = 0
		}
		out.Root, err = r.Root(ctx, o.Key, out.Through)
	}
	return out, err
}

// services are those that a run looks at.
func (o *Options) services(ctx context.Context, store storage.BlobStore) ([]string, error) {
	all, err := catalog.Services(ctx, store)
	return slices.DeleteFunc(all, func(s string) bool {
		return len(o.Services) > 0 && !slices.ContainsFunc(o.Services, func(glob string) bool { return record.MatchService(glob, s) })
	}), err
}

// Count counts the services that a run looks at, and all days since the first one of each: no run
// closes more. It takes three requests a service, and lists no blob.
func Count(ctx context.Context, store storage.BlobStore, o Options) (services, days int, err error) {
	names, err := o.services(ctx, store)
	for _, service := range names {
		for first, err := range catalog.Days(ctx, store, service, time.Time{}) {
			if err != nil {
				return 0, 0, err
			}
			days += max(0, int(Last(time.Now(), o.After)-first)+1)
			break
		}
	}
	return len(names), days, err
}

// Last is the last day that is over for long enough; 0: for [After].
func Last(now time.Time, after time.Duration) horizon.Day {
	return horizon.DayOf(now.Add(-cmp.Or(after, After))) - 1
}

// again is how many days before [Options.From] are looked at again.
const again = 7

type run struct {
	o Options
	*Closer
	view    *catalog.View
	out     *Result
	known   closed.Parts // that roots have
	last    horizon.Day  // that the run may close
	through horizon.Day
}

func (r *run) service(ctx context.Context, service string) error {
	rng := catalog.Range{To: (r.last + 1).Start()}
	if r.o.From != 0 {
		rng.From = (min(r.o.From, r.last+1) - again).Start()
	}
	for l, err := range r.view.Listings(ctx, service, rng) {
		if err == nil {
			err = r.day(ctx, l)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// day closes a day, or adds a part to its account.
func (r *run) day(ctx context.Context, l *catalog.Listing) error {
	if len(l.Blobs)+len(l.Parts) == 0 || l.Day < r.o.From && len(l.Parts) == 0 {
		return nil
	}
	r.out.Days++
	if l.Accounted() && !r.o.Bytes {
		r.meet(l)
		return nil
	}
	part, missing, err := r.Update(ctx, l)
	for _, b := range missing {
		r.problem(fmt.Errorf("%s: %w", b.Key, &catalog.MissingError{Blob: b}))
	}
	for _, e := range l.Blobs {
		if e.State == catalog.Damaged && len(l.Parts) > 0 { // it has changed since the day was closed
			r.problem(fmt.Errorf("%s: %w", e.Key, e.Err))
		}
	}
	switch {
	case err != nil && ctx.Err() == nil && !errors.Is(err, storage.ErrUnauthorized):
		r.problem(fmt.Errorf("%s of %s could not be closed: %w", l.Day, l.Service, err))
		if len(l.Parts) == 0 { // else the daily run tries it again for a week
			r.through = min(r.through, l.Day-1)
		}
		return nil
	case part == nil || err != nil:
		r.meet(l)
		return err
	}
	r.out.Parts++
	r.out.Blobs += int64(len(part.Blobs))
	r.out.Records += part.Records()
	r.o.Log.Info().Str("service", l.Service).Stringer("day", l.Day).Str("part", part.Name).Int("blobs", len(part.Blobs)).
		Int64("records", part.Records()).Int("lost", len(part.Lost)).Msg("closed")
	var lost []string
	for _, l := range part.Lost {
		if part.Before == (closed.Hash{}) || slices.Contains(part.Events, closed.Event{Kind: closed.Lost, Key: l.Key}) {
			lost = append(lost, l.Key)
		}
	}
	if len(lost) > 0 {
		r.problem(fmt.Errorf("%s of %s was closed with numbers of blobs that lack, %d in all, the first %s: reads say so",
			l.Day, l.Service, len(lost), lost[0]))
	}
	return nil
}

// meet has the root name the highest part of a listed day, if no root does.
func (r *run) meet(l *catalog.Listing) {
	if hash := l.Hash(); hash != (closed.Hash{}) && hash != r.known.Get(l.Day, l.Service) {
		r.added.Set(l.Day, l.Service, hash)
	}
}

func (r *run) problem(err error) {
	r.out.Problems = append(r.out.Problems, err)
	r.o.Log.Warn().Err(err).Msg("not closed as it should be")
}
