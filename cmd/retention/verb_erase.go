package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"blobtail/catalog/hold"
	"blobtail/catalog/horizon"
	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/units"
	"blobtail/internal/where"
	"blobtail/record"
	"blobtail/retention"
	"blobtail/retention/erase"
	"blobtail/tailindex"
)

type eraseCmd struct {
	Where   string   `help:"Expression that the records match, as of logquery." required:"" placeholder:"EXPR"`
	Service []string `help:"Name or glob of services; all if none. It searches rejected lines meant for them too." placeholder:"GLOB"`
	From    string   `help:"The first day (UTC), such as 2026-11-20." placeholder:"D"`
	To      string   `help:"The last day (UTC)." placeholder:"D"`
	Confirm string   `help:"Hash that the command prints without it." placeholder:"HASH"`
	Grace   string   `help:"How long a replaced blob stays for those who read it (10m); 0s: nobody does." placeholder:"D"`
}

// options reads the flags.
func (c *eraseCmd) options() (e erase.Options, err error) {
	e = erase.Options{Services: c.Service, Confirm: c.Confirm}
	if e.Where, err = where.Parse(nil, c.Where, false); err == nil && e.Where.AsksTime() {
		err = errors.New("now() is another time in each pass")
	}
	if err != nil {
		return e, cli.Usagef("--where: %w", err)
	}
	for _, glob := range c.Service {
		if !record.ValidPattern(glob) {
			return e, cli.Usagef("--service %q: want a name or a glob such as web-*", glob)
		}
	}
	for flag, of := range map[string]struct {
		text *string
		day  *horizon.Day
	}{"--from": {&c.From, &e.From}, "--to": {&c.To, &e.To}} {
		if *of.text == "" {
			continue
		}
		if *of.day, err = parseDay(*of.text, time.Now()); err != nil {
			return e, cli.Usagef("%s: %w", flag, err)
		}
		*of.text = of.day.String()
	}
	if c.Grace != "" {
		if e.Patience, err = config.ParseDuration(c.Grace); err != nil {
			return e, cli.Usagef("--grace: %w", err)
		}
		e.Patience = cmp.Or(e.Patience, -1) // 0 is its default
	}
	return e, nil
}

func (c *eraseCmd) run(ctx context.Context, a *app) (int, error) {
	e, err := c.options()
	if err != nil {
		return 0, err
	}
	o, err := a.open(ctx, nil, "", false)
	if err != nil {
		return 0, err
	}
	e.Store, e.Key, e.Progress, e.Log = a.config.Store.String(), o.Closing.Key, o.Progress, a.log
	e.Tail = tailindex.Options{Prefix: a.config.Tail.Prefix, Shards: a.config.Tail.Shards, Store: a.config.Store.Name()}
	e.Held = func(ctx context.Context, service string, day horizon.Day) (string, error) {
		holds, err := hold.List(ctx, a.store.Blobs)
		if h := holds.Of(service, day); h != nil {
			return h.Name, nil
		}
		return "", err
	}
	r, err := erase.Run(ctx, a.store.Blobs, a.store.Tables, e)
	if confirm, ok := errors.AsType[*retention.ConfirmError](err); ok {
		if err := printPlan(os.Stdout, &retention.Plan{Hash: r.Hash, Days: r.Days}); err != nil {
			return 0, err
		}
		if r.Rows > 0 {
			a.Complain("%s of tables of the newest records too", units.Count(r.Rows, "line"))
		}
		for _, d := range r.Days {
			name, err := e.Held(ctx, d.Service, d.Day)
			if err != nil {
				return 0, err
			}
			if name != "" {
				a.Complain("%s of %s is held, so erase will refuse: retention release %s ends that", d.Day, d.Service, name)
			}
		}
		a.Problems(r.Problems)
		return a.unconfirmed(confirm), nil
	}
	if err != nil {
		return 0, err
	}
	if r.Made+r.Deleted == 0 && r.Lines == 0 && len(r.Problems) == 0 {
		_, err := fmt.Fprintln(os.Stdout, "nothing left")
		return cli.Nothing, err
	}
	_, err = fmt.Printf("erased %s from %s and %s of tables; deleted %s that had been replaced\n", units.Count(r.Records, "record"),
		units.Count(r.Made, "blob"), units.Count(r.Lines, "line"), units.Count(r.Deleted, "blob"))
	a.Complain("copies may be elsewhere: docs/ERASE.md says where to look")
	return a.verdict(r.Problems, true), err
}
