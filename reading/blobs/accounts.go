package blobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/catalog/closed"
	"blobtail/catalog/horizon"
	"blobtail/internal/units"
	"blobtail/storage"
)

// A closed day has an account among its blobs (package closed), so a listing of all of the day brings
// it, and the digests in its metadata say that nothing is missing. Another listing is in doubt: the
// account is judged then by a listing that is younger. Days that cannot be closed yet cost nothing.
//
// A distant store is listed from the first hour of the read to the end of its last day, because names
// are cheaper there than a request. Of a near store the accounts of that day are listed apart.

// A doubt is a day whose listing does not agree with its account.
type doubt struct {
	service string
	day     horizon.Day
	part    int    // the highest that was listed
	root    string // which names a part, where nothing was listed
}

// An accounting compares the listing of a service with the accounts of its days.
type accounting struct {
	plan    *Plan
	service string
	needs   catalog.Range // the periods of the read
	lists   catalog.Range // the listed ones
	last    horizon.Day   // that can be closed

	day    horizon.Day // of the entries now
	sums   closed.Digester
	part   catalog.Entry
	met    []horizon.Day // with an object
	doubts []doubt
	days   map[horizon.Day]*collected // of a read in windows; nil: there is one listing
}

// A collected day is what several listings have of it: the sums of its hours, and the highest part.
type collected struct {
	sums closed.Sums
	part catalog.Entry
}

// account begins to compare the listing of a service.
func (p *Plan) account(service string) *accounting {
	c := &accounting{plan: p, service: service, needs: p.rng.periods(), last: p.reader.lastClosed()}
	c.lists = c.needs
	c.lists.Closed = c.last
	if day := horizon.DayOf(c.needs.To.Add(-1)); !c.needs.To.IsZero() && day <= c.last {
		if c.lists.To = (day + 1).Start(); !p.reader.opt.Distant {
			c.lists.To = c.needs.To.Add(time.Hour - 1).Truncate(time.Hour)
		}
	}
	return c
}

// lastClosed is the last day that can be closed.
func (r *Reader) lastClosed() horizon.Day { return horizon.DayOf(r.opt.Now().Add(-closed.Soonest)) - 1 }

// hours are the listed hours of a day.
func (c *accounting) hours(day horizon.Day) (from, to int) {
	to = 24
	if !c.lists.From.IsZero() {
		from = int(max(0, c.lists.From.Sub(day.Start())/time.Hour))
	}
	if !c.lists.To.IsZero() {
		to = int(min(24, c.lists.To.Sub(day.Start())/time.Hour))
	}
	return from, to
}

// meets takes an entry of the listing, and reports whether the read needs it.
func (c *accounting) meets(e *catalog.Entry) bool {
	day := e.Part.Day
	switch {
	case e.State == catalog.Account:
	case !e.Named():
		return true
	default:
		day = e.Day()
	}
	c.begin(day)
	if e.State == catalog.Account {
		c.part = *e
		return false
	}
	if day <= c.last && e.Blob() && !e.Hidden {
		c.sums.Add(e.Key, e.Meta.Batch)
	}
	return !e.Name.Period.Before(c.needs.From) && (c.needs.To.IsZero() || e.Name.Period.Before(c.needs.To))
}

// begin begins a day of the listing, and ends the one before.
func (c *accounting) begin(day horizon.Day) {
	if day != c.day {
		c.end()
		c.day, c.met = day, append(c.met, day)
	}
}

// end ends a day of the listing.
func (c *accounting) end() {
	if c.part.Part.Number > 0 && !c.part.Hidden {
		digests, _ := closed.ParseDigests(c.part.Metadata)
		from, to := c.hours(c.day)
		sums := c.sums.Sums()
		if !c.part.Accounts(sums, from, to) || digests.Lost > 0 {
			c.doubts = append(c.doubts, doubt{service: c.service, day: c.day, part: c.part.Part.Number})
		}
		if c.days != nil {
			d := c.collect(c.day)
			copy(d.sums.Hours[from:to], sums.Hours[from:to])
			d.part = c.part
		}
	}
	c.part, c.sums = catalog.Entry{}, closed.Digester{}
}

// collect returns what was collected of a day, whose parts were listed.
func (c *accounting) collect(day horizon.Day) *collected {
	if c.days[day] == nil {
		c.days[day] = &collected{}
	}
	return c.days[day]
}

// finish ends the listing.
func (c *accounting) finish(ctx context.Context) error {
	if day := horizon.DayOf(c.lists.To.Add(-1)); !c.lists.To.IsZero() && day <= c.last && !c.plan.view.Hides(c.service, day) {
		if _, to := c.hours(day); to < 24 {
			l, err := catalog.ListParts(ctx, c.plan.reader.store, c.service, day)
			if err != nil {
				return err
			}
			if l.Part.Part.Number > 0 {
				c.begin(day)
				c.part = l.Part
			}
		}
	}
	c.end()
	if day := horizon.DayOf(c.lists.From); c.days != nil && day <= c.last {
		c.collect(day) // perhaps it has no part
	}
	return nil
}

// settle judges the days in doubt by listings of their own, and reports what is missing in the
// range of the query, and what is known to be lost there. The error is that of a context that ended
// before all were judged.
func (a *asked) settle(ctx context.Context, sum *Summary) error {
	judged := map[doubt]bool{}
	for _, d := range append(a.vanished(ctx, sum), a.doubts...) {
		at := doubt{service: d.service, day: d.day}
		if judged[at] {
			continue
		}
		judged[at] = true
		found, err := a.settleDay(ctx, d, sum)
		if len(found) > 0 || err != nil { // unless the day was dropped since
			err = errors.Join(err, a.view.Look(ctx))
			if a.view.Hides(d.service, d.day) {
				continue
			}
		}
		if err != nil && ctx.Err() == nil {
			found = append(found, fmt.Errorf("whether %s has all blobs of %s cannot be checked: %w", d.service, d.day, err))
		}
		sum.Problems = joined(sum.Problems, found) // a worker may have told it
	}
	a.doubts = nil
	return ctx.Err()
}

// settleDay judges a day.
func (a *asked) settleDay(ctx context.Context, d doubt, sum *Summary) (found []error, err error) {
	store := catalog.Store(a.reader.store)
	if s, ok := store.(interface{ Unshared() storage.BlobStore }); ok {
		store = s.Unshared() // other readers may have listed the day before the part was there
	}
	l, err := catalog.Settled(ctx, store, d.service, d.day, d.part)
	if err != nil {
		return nil, err
	}
	if l.Part.Part.Number < d.part {
		d := closed.Name{Service: d.service, Day: d.day, Number: d.part}
		return nil, fmt.Errorf("%s was removed since it was listed", d)
	}
	if l.Part.Part.Number == 0 {
		if d.root == "" {
			return nil, nil
		}
		what := "blobs may be missing with it"
		if len(l.Blobs) == 0 {
			what = "all blobs of the day are missing with it"
		}
		return []error{&Problem{Blob: closed.PartPrefix(d.service, d.day) + "*",
			Err: fmt.Errorf("the part that %s names is missing, and %s. Was it removed by hand?", d.root, what)}}, nil
	}
	part, err := catalog.ReadPart(ctx, a.reader.store, l.Part.Key)
	if err != nil {
		return nil, err
	}
	part.Blobs = slices.DeleteFunc(part.Blobs, func(b closed.Blob) bool {
		return !a.query.Range.touches(b.First.UnixNano(), b.Last.UnixNano())
	})
	missing, err := l.Missing(part, catalog.NewReplaced(func(e *catalog.Entry) ([]blobfmt.BatchID, error) {
		index, err := a.reader.source(blob{Entry: e}, sum).readIndex(ctx, false)
		if err != nil {
			return nil, err
		}
		return index.Replaces, nil
	}))
	for _, b := range missing {
		found = append(found, &Problem{Blob: b.Key, Err: &catalog.MissingError{Blob: b}})
	}
	a.tellLost(d, part, sum)
	return found, err
}

// tellLost warns of the blobs that are known to be lost.
func (a *asked) tellLost(d doubt, part *closed.Part, sum *Summary) {
	var keys []string
	records := int64(0)
	for _, l := range part.Lost {
		n, err := blobfmt.ParseName(l.Key)
		if start := n.Period.UnixNano(); err == nil && a.query.Range.touches(start, start+int64(time.Hour)-1) {
			keys, records = append(keys, l.Key), records+l.Records
		}
	}
	if len(keys) > 0 {
		with := ""
		if records > 0 { // nobody knows how many there were in a blob that was gone before
			with = " with " + units.Count(records, "record") + " or more"
		}
		sum.Warnings = append(sum.Warnings, fmt.Errorf("%s: %s of %s%s %s known to be lost, such as %s", d.service,
			units.Count(len(keys), "blob"), d.day, with, units.Word(len(keys), "is", "are"), keys[0]))
	}
}
