package main

import (
	"context"
	"os"

	"blobtail/retention"
)

type planCmd struct {
	Now    *string `help:"The time that ages count back from (now); not later than now." placeholder:"T"`
	Output string  `short:"o" help:"text or json." enum:"text,json" default:"text"`
}

func (c *planCmd) run(ctx context.Context, a *app) (int, error) {
	o, err := a.open(ctx, c.Now, "")
	if err != nil {
		return 0, err
	}
	p, err := retention.New(a.store.Blobs, a.store.Tables, o).Plan(ctx)
	if err != nil {
		return 0, err
	}
	print := printPlan
	if c.Output == "json" {
		print = printPlanJSON
	}
	if err := print(os.Stdout, p); err != nil {
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
