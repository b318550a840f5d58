package newest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"blobtail/record"
	"blobtail/retention/horizon"
	"blobtail/tailindex"
)

// hidden says which unflushed records have expired. The zero value hides none.
type hidden struct {
	days  horizon.Horizons
	until int64 // no record from here on has expired, in any service
}

func hiddenBy(h horizon.Horizons) hidden {
	x := hidden{days: h, until: math.MinInt64}
	for _, s := range h {
		end := s.First
		if n := len(s.Dropped); n > 0 {
			end = max(end, s.Dropped[n-1]+1)
		}
		x.until = max(x.until, record.ClampTime(end.Start()))
	}
	return x
}

// entry reports whether a record has expired.
func (x *hidden) entry(e *record.Entry) bool {
	if len(x.days) == 0 || e.Time >= x.until {
		return false
	}
	service, _ := record.LineService(e.Line)
	return x.days.Hides(string(service), horizon.DayOfNs(e.Time))
}

// rows removes expired records from rows, and reports whether there were any.
func (x *hidden) rows(rows []tailindex.Row) (any bool) {
	if len(x.days) == 0 {
		return false
	}
	for i := range rows {
		row := &rows[i]
		if row.First >= x.until {
			continue
		}
		n := len(row.Entries)
		row.Entries = slices.DeleteFunc(row.Entries, func(e record.Entry) bool { return x.entry(&e) })
		any = any || len(row.Entries) < n
		if x.days.Hides(row.Service, horizon.DayOfNs(row.First)) && x.days.Hides(row.Service, horizon.DayOfNs(row.Last)) {
			row.Omitted = 0 // an expired gap is of no interest
		}
	}
	return any
}

// expiry is a read of the expired days.
type expiry struct {
	days horizon.Horizons
	err  error
}

// look starts to read the expired days of a query's services. It takes patience at most.
func (r *Reader) look(ctx context.Context, services []string, patience time.Duration) *later[expiry] {
	return begin(func() (x expiry) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		x.days, x.err = r.o.Blobs.Horizons(ctx, services)
		return x
	})
}

// know waits for the expired days. In mode Only a failure is just a note, since there may
// be no store of blobs to read.
func (g *Gathered) know() error {
	x := g.looking.wait()
	if x.err != nil {
		if g.mode != Only {
			return x.err
		}
		g.Report.note("what has expired is not known, and may be among this: %v", x.err)
		*x = expiry{}
	}
	g.Query.Expired, g.hidden = x.days, hiddenBy(x.days)
	return nil
}

const (
	// expiredEvery is how often a follower reads the expired days.
	expiredEvery = time.Minute
	// expiredStale is how long it silently goes on with the days it knew.
	expiredStale = 5 * time.Minute
)

func (f *follower) knowExpired(x *expiry) {
	switch {
	case x.err == nil:
		f.hidden, f.looked = hiddenBy(x.days), time.Now()
		f.say(expiredOver, nil)
	case time.Since(f.looked) >= expiredStale:
		f.say(expiredOver, fmt.Errorf("what has expired is not known, and is asked again: %w", x.err))
	}
}
