package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"blobtail/internal/bill"
	"blobtail/internal/cli"
)

type costCmd struct {
	Plan   string `help:"The load, an edited copy of configs/plan.yaml; else the one built in." placeholder:"FILE"`
	Prices string `help:"Table of prices, an edited copy of configs/prices.yaml; else the one built in." placeholder:"FILE"`
	Output string `short:"o" help:"text, or json (the default into a pipe)." placeholder:"FORM"`
}

func (c *costCmd) run(_ context.Context, a *app) (int, error) {
	form, err := a.form(c.Output, "pretty", "json")
	if err != nil {
		return 0, err
	}
	plan, err := bill.LoadPlan(c.Plan)
	if err != nil {
		return 0, cli.Usagef("--plan: %w", err)
	}
	prices, err := bill.Load(c.Prices)
	if err != nil {
		return 0, cli.Usagef("--prices: %w", err)
	}
	measured, err := bill.Latest()
	if err != nil {
		return 0, err
	}
	sheet, err := plan.Cost(&prices, measured)
	if err != nil {
		return 0, cli.Usagef("%w", err)
	}
	if form == "json" {
		a.json(sheet)
	} else {
		costText(a, sheet)
	}
	if err := a.out.flush(); err != nil {
		return 0, err
	}
	a.Note("prices of %s: look yours up and give them by --prices FILE", sheet.Dates)
	a.Note("not in it: traffic out of the region, logs of the account, support, your time")
	return cli.OK, nil
}

// costText prints the sums, the lines, and the cost elsewhere.
func costText(a *app, s *bill.Sheet) {
	day := cli.Safe(s.Currency) + " a day"
	sums := table{heads: []head{{day, false, 0}, {"of", true, 0}}}
	sums.add(money(s.PerDay["storage_requests_tables"]), fmt.Sprintf("storage, requests and tables (%s for a GB of lines)", money(s.PerGB)))
	sums.add(money(s.PerDay["machines"]), "machines and their disks")
	sums.add(money(s.PerDay["total"]), "total")
	sums.print(a, "-o json")
	fmt.Fprintln(a.out)

	lines := table{heads: []head{{day, false, 0}, {"count a day", false, 3}, {"unit", true, 3}, {"line", true, 0}, {"measured at", true, 2}, {"how", true, 4}}}
	for _, l := range s.Lines {
		count := strconv.FormatFloat(l.Count, 'g', 4, 64)
		if l.Count >= 1000 && l.Count < 1e15 {
			count = cli.Thousands(int(l.Count + 0.5))
		}
		lines.add(money(l.PerDay), count, l.Unit, l.Name, l.Path, cli.Safe(l.How))
	}
	lines.print(a, "-o json")
	fmt.Fprintf(a.out, "\nCounts are those of the scale test of %s at %s.\n", cli.Safe(s.Measured.Date), cli.Safe(s.Measured.Commit))
	if len(s.Plan.Defaults) > 0 {
		fmt.Fprintf(a.out, "The plan leaves out: %s.\n", cli.Safe(strings.Join(s.Plan.Defaults, "; ")))
	}
	fmt.Fprintln(a.out)
	others := table{heads: []head{{day, false, 0}, {"elsewhere", true, 0}, {"of that", true, 1}}}
	for _, o := range s.Elsewhere {
		others.add(money(o.PerDay), cli.Safe(o.Name), cli.Safe(strings.TrimSuffix(o.How+"; lacks: "+o.Lacks, "; lacks: ")))
	}
	others.print(a, "-o json")
}
