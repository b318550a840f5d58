package main

import (
	"context"
	"errors"
	"os"
	"time"

	"blobtail/catalog/horizon"
	"blobtail/internal/cli"
	"blobtail/internal/when"
	"blobtail/retention"
)

type dropCmd struct {
	Service  string `arg:"" help:"Name of the service."`
	Day      string `help:"The day (UTC), such as 2026-11-20 or yesterday." required:"" placeholder:"D"`
	Confirm  string `help:"Hash that the command prints without it." placeholder:"HASH"`
	KeepTail bool   `help:"Leave the tables of the newest records, which have other services too. They go when they are past retention.tail."`
}

// parseDay reads a day in UTC, as people write it or as names of objects have it.
func parseDay(text string, now time.Time) (horizon.Day, error) {
	if day, err := horizon.ParseDay(text); err == nil {
		return day, nil
	}
	begin, _, err := when.Day(text, now.UTC())
	if err != nil {
		return 0, err
	}
	return horizon.DayOf(begin), nil
}

func (c *dropCmd) run(ctx context.Context, a *app) (int, error) {
	day, err := parseDay(c.Day, time.Now())
	if err != nil {
		return 0, cli.Usagef("--day: %w", err)
	}
	c.Day = day.String() // in the command that confirms it: yesterday is another day tomorrow
	o, err := a.open(ctx, nil, "", false)
	if err != nil {
		return 0, err
	}
	r, err := retention.New(a.store.Blobs, a.store.Tables, o).Drop(ctx, retention.DropRequest{Service: c.Service, Day: day, KeepTail: c.KeepTail, Store: a.config.Store.String(), Confirm: c.Confirm})
	if r == nil {
		return 0, err
	}
	if confirm, ok := errors.AsType[*retention.ConfirmError](err); ok {
		p := r.Plan
		if err := printPlan(os.Stdout, p); err != nil {
			return 0, err
		}
		a.foreign(p.Foreign)
		a.sharedTables(p)
		if len(p.Days) == 0 {
			a.Complain("no blob of %s is stored for %s; is that the name and the day (UTC)?", c.Service, day)
		}
		if p.At.Before((day + 1).Start()) {
			a.Complain("%s is not over: what %s logs until midnight UTC is not kept either", day, c.Service)
		}
		return a.unconfirmed(confirm, c.Service), nil
	}
	a.foreign(r.Plan.Foreign)
	if perr := printResult(os.Stdout, r); perr != nil || err != nil {
		return 0, errors.Join(err, perr)
	}
	a.Complain("records of %s of %s that come in from now on are not kept", c.Service, day)
	a.Complain("ingesters know that within two minutes: run the same again then, and what they stored meanwhile goes too")
	a.Complain("the log of an ingester on its disk may have the lines until the segment they are in is full; start the ingester again to have them off it sooner")
	if a.config.Store.Remote() {
		a.Complain("where the account keeps deleted blobs (soft delete, versions, snapshots), they are there until that ends")
	}
	return a.verdict(r.Problems, len(r.Deleted)+len(r.Tables) > 0), nil
}
