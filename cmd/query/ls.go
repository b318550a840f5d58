package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"blobtail/internal/cli"
	"blobtail/query"
	"blobtail/record"
)

type lsCmd struct {
	Service string `arg:"" optional:"" help:"List its days."`
	Day     string `arg:"" optional:"" help:"List the blobs of that day (UTC), such as 2026-11-20."`
}

func (c *lsCmd) run(ctx context.Context, a *app) (int, error) {
	var day time.Time
	what := "service"
	if c.Service != "" {
		what = "day (UTC)"
	}
	if c.Day != "" {
		what = "blob"
		var err error
		if day, err = time.Parse(time.DateOnly, c.Day); err != nil {
			return 0, cli.Usagef("day %q: it must look like 2026-11-20", c.Day)
		}
	}
	reader, err := a.open(ctx)
	if err != nil {
		return 0, err
	}
	entries, sum, err := reader.List(ctx, c.Service, day)
	if err != nil {
		return 0, err
	}
	c.print(a, what, entries)
	if err := a.out.flush(); err != nil {
		return 0, err
	}
	sum.Records = int64(len(entries))
	return a.verdict(&sum), nil
}

// print writes a table on a terminal, else fields between tabs, in plain bytes
// and UTC.
func (c *lsCmd) print(a *app, what string, entries []query.Total) {
	if !a.env.outTTY {
		for _, e := range entries {
			fmt.Fprintf(a.out, "%s\t%d\t%d\t%d\t%d\t%s\t%s\n", e.Name, e.Blobs, e.Records, e.Raw, e.Stored,
				rfc3339(e.First), rfc3339(e.Last))
		}
		return
	}
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "first\tlast\tblobs\trecords\tbytes\tstored\t  %s\n", what)
	for _, e := range entries {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\t  %s\n", a.at(e.First).Format(timeLayout), a.at(e.Last).Format(timeLayout),
			e.Blobs, e.Records, bytesText(e.Raw), bytesText(e.Stored), cli.Safe(e.Name))
	}
	_ = w.Flush()
}

// rfc3339 writes a time such that texts sort like times.
func rfc3339(ns int64) string { return string(record.AppendTime(nil, ns)) }
