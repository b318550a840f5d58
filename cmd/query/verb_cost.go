package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"

	"blobtail/internal/bill"
	"blobtail/internal/cli"
)

type costCmd struct {
	Plan   string `help:"The load, an edited copy of configs/plan.yaml; else the one built in." placeholder:"FILE"`
	Prices string `help:"Table of prices, an edited copy of configs/prices.yaml; else the one built in." placeholder:"FILE"`
	Output string `short:"o" help:"text, json (the default into a pipe) or csv." placeholder:"FORM"`
}

func (c *costCmd) run(_ context.Context, a *app) (int, error) {
	form, err := a.form(c.Output, "pretty", "json", "csv")
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
	p := costPrinter{a: a, prices: &prices, sheet: sheet}
	map[string]func(){"pretty": p.text, "json": p.json, "csv": p.csv}[form]()
	if err := a.out.flush(); err != nil {
		return 0, err
	}
	a.Note("prices of %s: look yours up and give them by --prices FILE", sheet.Dates)
	a.Note("not in it: traffic out of the region, logs of the account, support, your time")
	return cli.OK, nil
}

type costPrinter struct {
	a      *app
	prices *bill.Prices
	sheet  *bill.Sheet
}

// text prints the sums, the lines, and the cost elsewhere.
func (p *costPrinter) text() {
	s, currency := p.sheet, cli.Safe(p.prices.Currency)
	sums := table{heads: []head{{currency + " a day", false, 0}, {"of", true, 0}}}
	sums.add(money(s.PerDay["storage_requests_tables"]), fmt.Sprintf("storage, requests and tables (%s for a GB of lines)", money(s.PerGB)))
	sums.add(money(s.PerDay["machines"]), "machines and their disks")
	sums.add(money(s.PerDay["total"]), "total")
	sums.print(p.a, "-o json")
	fmt.Fprintln(p.a.out)

	lines := table{heads: []head{{currency + " a day", false, 0}, {"count a day", false, 3}, {"unit", true, 3}, {"line", true, 0}, {"measured", false, 2}, {"at", true, 2}, {"how", true, 4}}}
	for i := range s.Lines {
		l := &s.Lines[i]
		measured := ""
		if l.Path != "" {
			measured = strconv.FormatFloat(l.Measured, 'f', -1, 64)
		}
		lines.add(money(l.PerDay), countText(l.Count), l.Unit, l.Name, measured, l.Path, cli.Safe(l.How))
	}
	lines.print(p.a, "-o json")
	fmt.Fprintf(p.a.out, "\nCounts are those of the scale test of %s at %s.\n", cli.Safe(s.Measured.Date), cli.Safe(s.Measured.Commit))
	if len(s.Plan.Defaults) > 0 {
		fmt.Fprintf(p.a.out, "The plan leaves out: %s.\n", cli.Safe(strings.Join(s.Plan.Defaults, "; ")))
	}
	if len(s.Elsewhere) == 0 {
		return
	}
	fmt.Fprintln(p.a.out)
	others := table{heads: []head{{currency + " a day", false, 0}, {"elsewhere", true, 0}, {"of that", true, 1}}}
	for i := range s.Elsewhere {
		o := &s.Elsewhere[i]
		others.add(money(o.PerDay), cli.Safe(o.Name), cli.Safe(o.How))
	}
	others.print(p.a, "-o json")
	for i := range s.Elsewhere {
		if o := &s.Elsewhere[i]; o.Lacks != "" {
			fmt.Fprintf(p.a.out, "%s: %s.\n", cli.Safe(o.Name), cli.Safe(o.Lacks))
		}
	}
}

// countText writes a count with separators, and a small one with its fraction.
func countText(x float64) string {
	if x < 1000 || x >= 1e15 {
		return strconv.FormatFloat(x, 'g', 4, 64)
	}
	return cli.Thousands(int(x + 0.5))
}

type costAnswer struct {
	Unit   string             `json:"currency"`
	PerDay map[string]float64 `json:"per_day"`
	PerGB  float64            `json:"per_gb"`
	Lines  []bill.Line        `json:"lines"`
	// Elsewhere has the same load at others.
	Elsewhere []bill.Other `json:"elsewhere"`
	Prices    string       `json:"prices"`
	Measured  struct {
		Date   string `json:"date"`
		Commit string `json:"commit"`
	} `json:"measured"`
	Plan *bill.Plan `json:"plan"`
}

func (p *costPrinter) json() {
	s := p.sheet
	answer := costAnswer{Unit: p.prices.Currency, PerDay: s.PerDay, PerGB: s.PerGB, Lines: s.Lines, Elsewhere: s.Elsewhere, Prices: s.Dates, Plan: &s.Plan}
	answer.Measured.Date, answer.Measured.Commit = s.Measured.Date, s.Measured.Commit
	p.a.json(&answer)
}

// csv prints the lines only, without sums.
func (p *costPrinter) csv() {
	w := csv.NewWriter(p.a.out)
	_ = w.Write([]string{"name", "group", "per_day", "count", "unit", "price", "path", "measured", "how"})
	real := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	for i := range p.sheet.Lines {
		l := &p.sheet.Lines[i]
		_ = w.Write([]string{l.Name, l.Group, real(l.PerDay), real(l.Count), l.Unit, l.Price, l.Path, real(l.Measured), l.How})
	}
	w.Flush()
}
