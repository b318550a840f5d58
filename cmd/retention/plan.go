package main

import (
	"context"
	"errors"

	"blobtail/internal/openstore"
	"blobtail/retention"
)

type planCmd struct {
	Now    *string `help:"The time that ages count back from (now); not later than now." placeholder:"T"`
	Output string  `short:"o" help:"text or json." enum:"text,json" default:"text"`
}

func (c *planCmd) run(ctx context.Context, a *app) (code int, err error) {
	o, err := a.options(c.Now, "")
	if err != nil {
		return 0, err
	}
	store, err := openstore.Open(ctx, a.config.Store, false)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	p, err := retention.New(store.Blobs, store.Tables, o).Plan(ctx)
	if err != nil {
		return 0, err
	}
	print := printPlan
	if c.Output == "json" {
		print = printPlanJSON
	}
	if err := print(a.env.stdout, p); err != nil {
		return 0, err
	}
	a.foreign(p.Foreign)
	a.sharedTables(p)
	if p.Total(retention.Hide).Blobs > 0 {
		a.Complain("what apply hides it deletes in a run that comes %s or more later", graceText(o.Grace))
	}
	if p.Confirm != "" {
		a.Complain("%s; apply will want --confirm %s", p.Confirm, p.Hash)
	}
	return a.verdict(p.Problems, true), nil
}

// sharedTables warns that other containers may use the same tables.
func (a *app) sharedTables(p *retention.Plan) {
	if len(p.Tables) > 0 && a.config.Store.Remote() {
		a.Complain("the tables are those of every container of the account that has tail.prefix %s; give each its own to keep them apart", a.config.Tail.Prefix)
	}
}
