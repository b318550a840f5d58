package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

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
	prices, wrong := bill.Load(c.Prices)
	measured, lost := bill.Latest()
	if err := errors.Join(err, wrong, lost); err != nil {
		return 0, cli.Usagef("%w", err)
	}
	sheet, err := plan.Cost(&prices, measured)
	if err != nil {
		return 0, cli.Usagef("%w", err)
	}
	map[string]func(){"pretty": func() { costText(a, sheet) }, "json": func() { a.json(sheet) }}[form]()
	if err := a.out.flush(); err != nil {
		return 0, err
	}
	a.Note("prices of %s: look yours up and give them by --prices FILE", sheet.Dates)
	a.Note("not in it: traffic out of the region, logs of the account, support, your time")
	return cli.OK, nil
}

// costText prints the sums and the lines, and the cost elsewhere.
func costText(a *app, s *bill.Sheet) {
	day := head{cli.Safe(s.Currency) + " a day", false, 0}
	lines := table{heads: []head{day, {"count", false, 1}, {"unit", true, 1}, {"line", true, 0}, {"measured at", true, 3}, {"of", true, 2}}}
	for _, name := range []string{"total", "machines", "storage_requests_tables"} {
		lines.add(money(s.PerDay[name]), "", "", name, "", "")
	}
	lines.add(money(s.PerGB), "1", "GB of lines", "storage_requests_tables", "", "")
	for _, l := range s.Lines {
		lines.add(money(l.PerDay), strconv.FormatFloat(math.Round(l.Count*1000)/1000, 'f', -1, 64), l.Unit, l.Name, l.Path, l.What)
	}
	lines.print(a, "-o json")
	fmt.Fprintf(a.out, "\nCounts are those of the scale test of %s.\n\n", cli.Safe(s.Measured))
	others := table{heads: []head{day, {"elsewhere", true, 0}, {"of that", false, 1}, {"for", true, 1}}}
	for _, o := range s.Elsewhere {
		others.add(money(s.PerDay[o.Name]), cli.Safe(o.Name), money(o.PerDay), cli.Safe(o.What))
	}
	others.print(a, "-o json")
}
