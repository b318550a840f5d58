package retention

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"blobtail/catalog"
	"blobtail/catalog/hold"
	"blobtail/catalog/horizon"
	"blobtail/retention/closing"
)

// DropRequest names a day of a service.
type DropRequest struct {
	Service string
	Day     horizon.Day
	// KeepTail keeps the tail's tables that may have records of the day. They also have
	// records of other services.
	KeepTail bool
	// Store is the caller's name of the store: a confirmation is valid for that store
	// only.
	Store   string
	Confirm string // the hash of the plan
}

// Drop drops one day of one service at once, for records that should never have been
// logged. It hides the day for ever, deletes its blobs after [horizon.Settle], without waiting
// for a grace, and drops the tables of the tail that may have its records. Without the right
// confirmation it changes nothing: the error is a *[ConfirmError], and the plan in
// the result lists the days and tables to delete. No policy is needed.
//
// Ingesters learn of it within two minutes and do not store their records of the day.
// Records that they stored meanwhile are deleted when Drop is called again. The next
// Apply deletes such blobs too; the tail's tables are otherwise dropped only at their
// own age.
func (j *Job) Drop(ctx context.Context, req DropRequest) (*Result, error) {
	if !catalog.IsService(req.Service) {
		return nil, refusef("%q cannot be the name of a service", req.Service)
	}
	_, now, err := j.clocks(ctx)
	if err != nil {
		return nil, err
	}
	if req.Day > horizon.DayOf(now) {
		return nil, refusef("the day %s is yet to come", req.Day)
	}
	if holds, err := hold.List(ctx, j.blobs); err != nil {
		return nil, err
	} else if h := holds.Of(req.Service, req.Day); h != nil {
		return nil, refusef("%s of %s is held: retention release %s ends that", req.Day, req.Service, h.Name)
	}
	p := &Plan{At: now, now: now, Confirm: "a day that is dropped never comes back"}
	s := &service{name: req.Service, settled: horizon.Service{Dropped: []horizon.Day{req.Day}}}
	if err := j.takeDay(ctx, s, req.Day, p); err != nil {
		return nil, err
	}
	if !req.KeepTail {
		// A row has records from a day before its arrival to ten minutes after it.
		p.Tables, err = j.tablesOf(ctx, func(d horizon.Day) bool { return req.Day-1 <= d && d <= req.Day+1 })
		if err != nil {
			p.Problems = append(p.Problems, err)
		}
	}
	p.Hash = fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "drop 1\n%s %s\nkeep tail %t\nstore %s\n", req.Service, req.Day, req.KeepTail, req.Store)))
	r := j.newRun(p)
	if err := Confirmed(p.Confirm, p.Hash, req.Confirm); err != nil {
		return r.Result, err
	}
	if err := horizon.Drop(ctx, j.blobs, req.Service, req.Day); err != nil {
		return r.Result, fmt.Errorf("drop %s of %s: %w", req.Day, req.Service, err)
	}
	if held, err := j.withdraw(ctx, []horizon.Mark{{Service: req.Service, Day: req.Day, Single: true}}); err != nil || held {
		return nil, cmp.Or(err, refusef("%s of %s is held since: see retention holds; nothing was dropped", req.Day, req.Service))
	}
	c := closing.NewCloser(j.blobs, now)
	if err := c.Drop(ctx, req.Service, req.Day); err != nil {
		return r.Result, fmt.Errorf("drop %s of %s: %w", req.Day, req.Service, err)
	}
	r.log.Info().Str("service", req.Service).Stringer("day", req.Day).Msg("day dropped")
	select {
	case <-time.After(horizon.Settle):
	case <-ctx.Done():
		return r.Result, ctx.Err()
	}
	if err := r.deleteDay(ctx, &Day{Service: req.Service, Day: req.Day}, r.Result); err != nil {
		return r.Result, err
	}
	r.dropTables(ctx, p.Tables)
	return r.Result, ctx.Err()
}
