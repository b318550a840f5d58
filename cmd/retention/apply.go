package main

import (
	"context"
	"errors"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/openstore"
	"blobtail/retention"
)

type applyCmd struct {
	Now         *string `help:"The time that ages count back from (now); not later than now." placeholder:"T"`
	Grace       string  `help:"How long a day has to have been hidden before it is deleted (retention.grace of the configuration, 1h)." placeholder:"D"`
	Confirm     string  `help:"Hash of the plan, where one is asked for." placeholder:"HASH"`
	MetricsFile string  `help:"Write metrics to this file, for the textfile collector of node_exporter." env:"BLOBTAIL_METRICS_FILE" placeholder:"FILE"`
}

func (c *applyCmd) run(ctx context.Context, a *app) (int, error) {
	r, err := c.apply(ctx, a)
	code := cli.OK
	if err != nil {
		code = a.exitCode(err)
	} else {
		code = a.verdict(r.Problems, len(r.Deleted)+len(r.Tables)+len(r.Raised) > 0)
	}
	return c.told(a, r, code), nil
}

// told writes the metrics of a run that ended with a code, and returns the exit code.
func (c *applyCmd) told(a *app, r *retention.Result, code int) int {
	if c.MetricsFile == "" {
		return code
	}
	if err := writeMetrics(c.MetricsFile, r, code, a.env.clock()); err != nil {
		a.Complain("metrics: %v", err)
		if code == cli.OK {
			code = cli.Incomplete
		}
	}
	return code
}

func (c *applyCmd) apply(ctx context.Context, a *app) (r *retention.Result, err error) {
	o, err := a.options(c.Now, c.Grace)
	if err != nil {
		return nil, err
	}
	store, err := openstore.Open(ctx, a.config.Store, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	r, err = retention.New(store.Blobs, store.Tables, o).Apply(ctx, c.Confirm)
	if r == nil {
		return nil, err
	}
	if confirm := (*retention.ConfirmError)(nil); errors.As(err, &confirm) {
		return r, errors.Join(printPlan(a.env.stdout, r.Plan), &unconfirmed{confirm, a.again()})
	}
	a.foreign(r.Plan.Foreign)
	if r.NewPolicy && c.Now != nil {
		a.Complain("the policy counts as applied now: a run without --now may hide more, and asks for no confirmation; see retention plan")
	}
	return r, errors.Join(err, printResult(a.env.stdout, r))
}

func graceText(d time.Duration) string { return config.Duration(d).String() }
