package unflushed

import (
	"fmt"
	"math"
	"slices"
	"time"

	"blobtail/catalog/horizon"
	"blobtail/record"
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
	for i := range rows {
		row := &rows[i]
		n := len(row.Entries)
		row.Entries = slices.DeleteFunc(row.Entries, func(e record.Entry) bool { return x.entry(&e) })
		any = any || len(row.Entries) < n
		if x.days.Hides(row.Service, horizon.DayOfNs(row.First)) && x.days.Hides(row.Service, horizon.DayOfNs(row.Last)) {
			row.Omitted = 0 // an expired gap is of no interest
		}
	}
	return any
}

// know waits for the expired days. In mode Only a failure is just a note, since there may
// be no store of blobs to read.
func (g *Gathered) know() error {
	k := g.known.wait()
	if k.expiredErr != nil {
		if g.mode != Only {
			return k.expiredErr
		}
		g.Report.note("which days have expired cannot be read, so expired records may be among these: %v", k.expiredErr)
		k.expired, k.expiredErr = nil, nil
	}
	g.Query.Expired, g.hidden = g.known.checked(), hiddenBy(k.expired)
	return nil
}

const (
	// expiredEvery is how often a follower reads the expired days.
	expiredEvery = time.Minute
	// expiredStale is how long it silently goes on with the days it knew.
	expiredStale = 5 * time.Minute
)

// knowExpired uses the expired days of a survey, if it has read them.
func (f *follower) knowExpired(k *roster) {
	switch {
	case k.expired != nil:
		f.hidden, f.looked = hiddenBy(k.expired), time.Now()
		f.say(expiredOver, nil)
	case k.expiredErr != nil && time.Since(f.looked) >= expiredStale:
		f.say(expiredOver, fmt.Errorf("which days have expired cannot be read, and is tried again: %w", k.expiredErr))
	}
}
