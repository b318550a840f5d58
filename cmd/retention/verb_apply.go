package main

import (
	"cmp"
	"context"
	"errors"
	"os"

	"blobtail/internal/config"
	"blobtail/internal/units"
	"blobtail/retention"
	"blobtail/storage"
)

type planCmd struct {
	Now    *string `help:"The time that ages count back from (now); not later than now." placeholder:"T"`
	Output string  `short:"o" help:"text or json." enum:"text,json" default:"text"`
}

func (c *planCmd) run(ctx context.Context, a *app) (int, error) {
	o, err := a.open(ctx, c.Now, "", true)
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
	a.held(p)
	a.unmatched(ctx)
	a.sharedTables(p)
	if p.Total(retention.Hide).Blobs > 0 {
		a.Complain("what apply hides it deletes in a run that comes %s or more later", config.Duration(o.Grace))
	}
	if p.Confirm != "" {
		a.Complain("%s; apply will want --confirm %s", p.Confirm, p.Hash)
	} else {
		a.doubt(p)
	}
	return a.verdict(p.Problems, true), nil
}

type applyCmd struct {
	Now         *string `help:"The time that ages count back from (now); not later than now." placeholder:"T"`
	Grace       string  `help:"How long a day has to have been hidden before it is deleted (retention.grace of the configuration, 1h)." placeholder:"D"`
	Confirm     string  `help:"Hash of the plan. Some plans need it; another hash is always an error." placeholder:"HASH"`
	MetricsFile string  `help:"Write metrics to this file, for the textfile collector of node_exporter." env:"BLOBTAIL_METRICS_FILE" placeholder:"FILE"`
}

func (c *applyCmd) run(ctx context.Context, a *app) (int, error) {
	o, err := a.open(ctx, c.Now, c.Grace, false)
	if err != nil {
		return 0, err
	}
	r, err := retention.New(a.store.Blobs, a.store.Tables, o).Apply(ctx, c.Confirm)
	if r == nil {
		return 0, err
	}
	a.applied = *r
	a.unmatched(ctx)
	if confirm, ok := errors.AsType[*retention.ConfirmError](err); ok {
		if err := printPlan(os.Stdout, r.Plan); err != nil {
			return 0, err
		}
		return a.unconfirmed(confirm), nil
	}
	a.foreign(r.Plan.Foreign)
	a.held(r.Plan)
	if n := r.Total().Held; n > 0 {
		a.Complain("%s: %s; hidden, and tried again by each run", units.Count(n, "blob"), storage.ErrHeld)
	}
	if c.Confirm == "" {
		a.doubt(r.Plan)
	}
	if r.NewPolicy && c.Now != nil {
		a.Complain("the policy counts as applied now: a run without --now may hide more, and asks for no confirmation; see retention plan")
	}
	if err := errors.Join(err, printResult(os.Stdout, r)); err != nil {
		return 0, err
	}
	code := a.verdict(r.Problems, len(r.Deleted)+len(r.Tables)+len(r.Raised) > 0)
	if a.config.Close.Export.String() == "" {
		return code, nil
	}
	exported, err := a.export(ctx, a.config.Close.Export, []string{"*"}, o)
	return cmp.Or(code, exported), err
}
