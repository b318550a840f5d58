package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"blobtail/catalog/horizon"
	"blobtail/internal/cli"
	"blobtail/internal/units"
	"blobtail/internal/where"
	"blobtail/retention"
	"blobtail/retention/erase"
	"blobtail/tailindex"
)

type eraseCmd struct {
	Where   string   `help:"Expression that the records match, as of logquery." required:"" placeholder:"EXPR"`
	Service []string `sep:"none" help:"Name or glob of services; all if none. Rejected lines meant for them go too." placeholder:"GLOB"`
	From    string   `help:"The first day (UTC), such as 2026-11-20." placeholder:"D"`
	To      string   `help:"The last day (UTC)." placeholder:"D"`
	Confirm string   `help:"Hash that the command prints without it." placeholder:"HASH"`
	Grace   string   `help:"How long a replaced blob stays for those who read it (10m); 0s: nobody does." placeholder:"D"`
}

func (c *eraseCmd) run(ctx context.Context, a *app) (int, error) {
	e := erase.Options{Confirm: c.Confirm, Progress: &a.progress, Log: a.log}
	var err error
	if e.Where, err = where.Parse(nil, c.Where, false); err == nil && e.Where.AsksTime() {
		err = errors.New("now() is another time in each pass")
	}
	if err != nil {
		return 0, cli.Usagef("--where: %w", err)
	}
	if both := e.Where.FieldsCompared(); both != "" {
		const why = `both are fields, and are equal if a record lacks both; a text needs quotes: 'user == "jane"'`
		return 0, cli.Usagef("--where: %s: %s", both, why)
	}
	if err := fold(&c.Service); err != nil {
		return 0, err
	}
	e.Services = c.Service
	day := func(flag string, text *string, more horizon.Day) (t time.Time) {
		if *text != "" && err == nil {
			var d horizon.Day
			if d, err = parseDay(*text, time.Now()); err != nil {
				err = cli.Usagef("%s: %w", flag, err)
			}
			*text, t = d.String(), (d + more).Start()
		}
		return t
	}
	e.Range.From, e.Range.To = day("--from", &c.From, 0), day("--to", &c.To, 1)
	if err != nil {
		return 0, err
	}
	if c.From != "" && c.To != "" && !e.Range.From.Before(e.Range.To) {
		return 0, cli.Usagef("--from %s is behind --to %s", c.From, c.To)
	}
	o, err := a.open(ctx, nil, c.Grace, false)
	if err != nil {
		return 0, err
	}
	if c.Grace != "" {
		e.Patience = cmp.Or(o.Grace, -1) // 0 is its default
	}
	e.Store, e.Key = a.config.Store.String(), o.Closing.Key
	e.Tail = tailindex.Options{Prefix: a.config.Tail.Prefix, Shards: a.config.Tail.Shards, Store: a.config.Store.Name()}
	r, err := erase.Run(ctx, a.store.Blobs, a.store.Tables, e)
	if confirm, ok := errors.AsType[*retention.ConfirmError](err); ok {
		if err := printPlan(os.Stdout, &retention.Plan{Hash: r.Hash, Days: r.Days}); err != nil {
			return 0, err
		}
		if r.Rows > 0 {
			a.Complain("%s of tables of the newest records too", units.Count(r.Rows, "line"))
		}
		a.Complain("searched %s", searched(r))
		a.Problems(r.Problems)
		return a.unconfirmed(confirm), nil
	}
	return a.erased(r, e.Where, err)
}

// searched tells what a run has searched.
func searched(r *erase.Result) string {
	return fmt.Sprintf("%s in %s of %s", units.Count(r.Stored, "record"), units.Count(r.Blobs, "blob"), units.Count(r.Services, "service"))
}

// erased tells what a run has done, also one that failed.
func (a *app) erased(r *erase.Result, by *where.Expr, err error) (int, error) {
	did := r.Made+r.Deleted > 0 || r.Lines > 0
	switch {
	case did:
		_, perr := fmt.Printf("erased %s from %s and %s of tables; deleted %s that had been replaced\n", units.Count(r.Records, "record"),
			units.Count(r.Made, "blob"), units.Count(r.Lines, "line"), units.Count(r.Deleted, "blob"))
		a.Complain("copies may be elsewhere: docs/operate/privacy.md says where to look")
		err = errors.Join(err, perr)
	case err == nil && len(r.Problems) == 0:
		for _, note := range by.Notes(nil) {
			a.Complain("--where: %s", note)
		}
		_, err := fmt.Printf("nothing left: searched %s\n", searched(r))
		return cli.Nothing, err
	}
	return a.verdict(r.Problems, true), err
}
