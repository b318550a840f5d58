package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/retention"
)

type applyCmd struct {
	Now         *string `help:"The time that ages count back from (now); not later than now." placeholder:"T"`
	Grace       string  `help:"How long a day has to have been hidden before it is deleted (retention.grace of the configuration, 1h)." placeholder:"D"`
	Confirm     string  `help:"Hash of the plan, where one is asked for." placeholder:"HASH"`
	MetricsFile string  `help:"Write metrics to this file, for the textfile collector of node_exporter." env:"BLOBTAIL_METRICS_FILE" placeholder:"FILE"`
}

func (c *applyCmd) run(ctx context.Context, a *app) (int, error) {
	o, err := a.open(ctx, c.Now, c.Grace)
	if err != nil {
		return 0, err
	}
	r, err := retention.New(a.store.Blobs, a.store.Tables, o).Apply(ctx, c.Confirm)
	if r == nil {
		return 0, err
	}
	a.applied = r
	if confirm := (*retention.ConfirmError)(nil); errors.As(err, &confirm) {
		return 0, errors.Join(printPlan(os.Stdout, r.Plan), &unconfirmed{confirm, a.again()})
	}
	a.foreign(r.Plan.Foreign)
	if r.NewPolicy && c.Now != nil {
		a.Complain("the policy counts as applied now: a run without --now may hide more, and asks for no confirmation; see retention plan")
	}
	if err := errors.Join(err, printResult(os.Stdout, r)); err != nil {
		return 0, err
	}
	return a.verdict(r.Problems, len(r.Deleted)+len(r.Tables)+len(r.Raised) > 0), nil
}

// told writes the metrics of a run that ended with a code, and returns the exit code.
func (c *applyCmd) told(a *app, code int) int {
	if c.MetricsFile == "" {
		return code
	}
	if err := writeMetrics(c.MetricsFile, a.applied, code, time.Now()); err != nil {
		a.Complain("metrics: %v", err)
		return cmp.Or(code, cli.Incomplete)
	}
	return code
}

func graceText(d time.Duration) string { return config.Duration(d).String() }
