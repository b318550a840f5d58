package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobtail/catalog"
	"blobtail/internal/bill"
	"blobtail/internal/cli"
	"blobtail/internal/units"
	"blobtail/reading"
	"blobtail/record"
)

type billCmd struct {
	Services   []string `arg:"" optional:"" name:"service" help:"Services or globs; all if none."`
	By         string   `help:"service or day (UTC)." default:"service" placeholder:"WHAT"`
	Prices     string   `help:"Table of prices, an edited copy of configs/prices.yaml; else the one built in." placeholder:"FILE"`
	rangeFlags `group:"Time"`
	Output     string `short:"o" help:"text, json (the default into a pipe) or csv." placeholder:"FORM"`
}

func (c *billCmd) run(ctx context.Context, a *app) (int, error) {
	form, err := a.form(c.Output, "pretty", "json", "csv")
	if err != nil {
		return 0, err
	}
	if err := oneOf("--by", c.By, "service", "day"); err != nil {
		return 0, err
	}
	prices, err := bill.Load(c.Prices)
	if err != nil {
		return 0, cli.Usagef("--prices: %w", err)
	}
	rng, err := a.times(c.rangeFlags)
	if err != nil {
		return 0, err
	}
	if a.config.Store.Logs() {
		return 0, cli.Usagef("bill is for blobtail's own stores; logquery ls shows the stored bytes of Azure's own logs")
	}
	report, err := c.read(ctx, a, rng)
	if err != nil {
		return 0, err
	}
	b := billPrinter{a: a, by: c.By, prices: &prices, report: report, sums: report.Services}
	if c.By == "day" {
		b.sums = report.Days
	}
	if len(b.sums) > 0 {
		map[string]func(){"pretty": b.text, "json": b.json, "csv": b.csv}[form]()
		if err := a.out.flush(); err != nil {
			return 0, err
		}
	}
	return b.verdict(), nil
}

func (c *billCmd) read(ctx context.Context, a *app, rng reading.Range) (*bill.Report, error) {
	store, err := a.openStore(ctx, true)
	if err != nil {
		return nil, err
	}
	named, err := servicesOf(c.Services)
	if err != nil {
		return nil, err
	}
	names := named
	if len(names) == 0 {
		names = []string{"*", "_*"} // the services of the system too: they cost money
	}
	services, err := store.Stored(ctx, names)
	if err != nil {
		return nil, err
	}
	var periods catalog.Range
	if rng.From != reading.Oldest {
		periods.From = time.Unix(0, rng.From)
	}
	if rng.To != reading.Newest {
		periods.To = time.Unix(0, rng.To)
	}
	report, err := bill.Read(ctx, a.store.Blobs, services, periods, &a.progress)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(named, func(name string) bool {
		return !slices.ContainsFunc(report.Services, func(s bill.Sum) bool { return record.MatchService(name, s.Name) })
	}) {
		// Is only the range empty, or is there no such service? A minimal read tells.
		_, out, err := store.Keys(ctx, reading.Ask{Services: named, Range: reading.Range{From: 0, To: 1}, Live: reading.Off})
		if err != nil {
			return nil, err
		}
		for _, warning := range out.Warnings {
			if !strings.HasPrefix(warning.Error(), reading.LiveOff) { // nobody expects more of a bill
				a.noteOf(warning.Error())
			}
		}
		a.absent(ctx, out.Absent)
	}
	return report, nil
}

type billPrinter struct {
	a      *app
	by     string
	prices *bill.Prices
	report *bill.Report
	sums   []bill.Sum
}

// text prints a table of the sums, and one of the total cost. The first of the prices
// elsewhere has a column in the upper table.
func (b *billPrinter) text() {
	other := "elsewhere"
	if len(b.prices.Elsewhere) > 0 {
		other = b.prices.Elsewhere[0].Name
	}
	t := table{heads: []head{{"blobs", false, 6}, {"records", false, 2}, {"bytes", false, 3}, {"stored", false, 4}, {"ratio", false, 5},
		{"here, " + b.prices.Currency, false, 0}, {cli.Safe(other), false, 1}, {strings.Replace(b.by, "day", "day (UTC)", 1), true, 0}}}
	total := b.report.Total
	total.Name = "total"
	for _, s := range append(slices.Clone(b.sums), total) {
		cost, elsewhere := b.cost(&s), "-"
		if len(cost.Elsewhere) > 0 {
			elsewhere = money(cost.Elsewhere[0])
		}
		t.add(cli.Thousands(int(s.Blobs)), cli.Thousands(int(s.Records)), bytesText(s.Raw), bytesText(s.Stored), fmt.Sprintf("%.2f", s.Ratio()),
			money(cost.Here()), elsewhere, cli.Safe(s.Name))
	}
	t.print(b.a, "-o json")
	fmt.Fprintln(b.a.out)
	b.costs()
}

func (b *billPrinter) cost(s *bill.Sum) bill.Cost {
	return b.prices.Cost(s, time.Duration(b.a.config.Retention.Tail))
}

// costs prints the cost of the total, and of a month like it.
func (b *billPrinter) costs() {
	type column struct {
		*bill.Sum
		cost bill.Cost
	}
	columns := []column{{&b.report.Total, b.cost(&b.report.Total)}}
	t := table{heads: []head{{b.prices.Currency, true, 0}, {"all of these", true, 0}}}
	month, ok := b.report.Month(b.a.now)
	if ok {
		columns = append(columns, column{&month.Sum, b.cost(&month.Sum)})
		t.heads = append(t.heads, head{"30 days (estimated)", true, 1})
	}
	t.heads = append(t.heads, head{"kept", true, 2})
	line := func(name, kept string, value func(c column) string) {
		row := []string{cli.Safe(name)}
		for _, c := range columns {
			row = append(row, value(c))
		}
		t.add(append(row, kept)...)
	}
	line("bytes of lines", "", func(c column) string { return bytesText(c.Raw) })
	line("bytes stored", "", func(c column) string { return bytesText(c.Stored) })
	line("here: "+b.prices.Here.Name, "", func(c column) string { return money(c.cost.Here()) })
	line("  kept for a month", "", func(c column) string { return money(c.cost.Storage) })
	line("  PUTs, once", "", func(c column) string { return fmt.Sprintf("%s for %d", money(c.cost.Puts), c.Puts) })
	line("  tables of the newest, once (estimated)", "", func(c column) string { return money(c.cost.Tail) })
	line("  each LIST of it (not in the sum)", "", func(c column) string { return fmt.Sprintf("%s for %d", money(c.cost.Lists), c.Lists()) })
	for i := range b.prices.Elsewhere {
		e := &b.prices.Elsewhere[i]
		kept := ""
		if e.Keeps > 0 {
			kept = units.Count(e.Keeps, "day")
		}
		line("elsewhere: "+e.Name, kept, func(c column) string { return money(c.cost.Elsewhere[i]) })
	}
	t.print(b.a, "-o json")
	for i := range b.prices.Elsewhere {
		if e := &b.prices.Elsewhere[i]; e.Lacks != "" {
			fmt.Fprintf(b.a.out, "%s: %s.\n", cli.Safe(e.Name), cli.Safe(e.Lacks))
		}
	}
	if ok {
		fmt.Fprintf(b.a.out, "The estimate is for 30 days like %s.\n", monthText(&month))
	}
}

// monthText names the days that a month is projected from.
func monthText(m *bill.Month) string {
	switch {
	case m.Partial && m.Days == 1:
		return m.From + ", which is not over"
	case m.Days == 1:
		return m.From
	}
	return fmt.Sprintf("the %d from %s to %s", m.Days, m.From, m.To)
}

// money writes a sum of money with at least two significant digits.
func money(x float64) string {
	switch {
	case x == 0:
		return "0"
	case x < 0.0001:
		return "<0.0001"
	case x < 1:
		return strconv.FormatFloat(x, 'f', 4, 64)
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}

type billLine struct {
	Service string      `json:"service,omitempty"`
	Day     string      `json:"day,omitempty"`
	Total   bool        `json:"total,omitempty"`
	Month   *bill.Month `json:"month,omitempty"`
	bill.Sum
	Lists  int64     `json:"lists"`
	Prices string    `json:"prices"`
	Unit   string    `json:"currency"`
	Here   bill.Cost `json:"here"`
	// Elsewhere is by name.
	Elsewhere map[string]float64 `json:"elsewhere"`
}

func (b *billPrinter) line(s *bill.Sum) billLine {
	l := billLine{
		Sum: *s, Lists: s.Lists(), Prices: b.prices.Dates(), Unit: b.prices.Currency, Here: b.cost(s), Elsewhere: make(map[string]float64),
	}
	for i := range b.prices.Elsewhere {
		l.Elsewhere[b.prices.Elsewhere[i].Name] = l.Here.Elsewhere[i]
	}
	return l
}

func (b *billPrinter) json() {
	for i := range b.sums {
		l := b.line(&b.sums[i])
		if b.by == "day" {
			l.Day = l.Name
		} else {
			l.Service = l.Name
		}
		b.a.json(&l)
	}
	total := b.line(&b.report.Total)
	total.Total = true
	b.a.json(&total)
	if m, ok := b.report.Month(b.a.now); ok {
		month := b.line(&m.Sum)
		month.Month = &m
		b.a.json(&month)
	}
}

// csv prints the sums only, without a total.
func (b *billPrinter) csv() {
	w := csv.NewWriter(b.a.out)
	head := []string{b.by, "blobs", "records", "raw", "stored", "unknown", "puts", "lists", "here_storage_month", "here_puts", "here_lists", "here_tail_estimate"}
	for i := range b.prices.Elsewhere {
		head = append(head, b.prices.Elsewhere[i].Name)
	}
	_ = w.Write(head)
	for i := range b.sums {
		s := &b.sums[i]
		cost := b.cost(s)
		row := []string{s.Name}
		for _, n := range []int64{s.Blobs, s.Records, s.Raw, s.Stored, s.Unknown, s.Puts, s.Lists()} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		for _, x := range append([]float64{cost.Storage, cost.Puts, cost.Lists, cost.Tail}, cost.Elsewhere...) {
			row = append(row, strconv.FormatFloat(x, 'f', -1, 64))
		}
		_ = w.Write(row)
	}
	w.Flush()
}

// verdict prints notes about the figures, and returns the exit code.
func (b *billPrinter) verdict() int {
	a, r := b.a, b.report
	if r.Foreign > 0 {
		a.Note("%s with %s %s of ours and not in the sums, such as %s", units.Count(r.Foreign, "object"), bytesText(r.ForeignBytes),
			units.Word(r.Foreign, "is no blob", "are no blobs"), cli.SafeLine(r.ForeignKey))
	}
	if r.Total.Puts == 0 {
		a.Note("nothing is stored of these")
		return cli.Nothing
	}
	if r.Twice > 0 {
		a.Note("in %s there are compacted blobs, and blobs that they may have replaced: if so, the records of these are counted twice until retention deletes them", units.Count(r.Twice, "hour"))
	}
	remote := ""
	if !a.config.Store.Remote() {
		remote = fmt.Sprintf("; %s is a directory, and priced as if it were there", a.config.Store)
	}
	a.Note("prices of %s: look yours up and give them by --prices FILE%s", b.prices.Dates(), remote)
	if cost := a.config.Forms.Cost(); cost != "" {
		a.Note("%s", cost)
	}
	a.Note("not in it: what reading, traffic and deleted blobs that are still kept cost, and machines")
	if r.Total.Unknown > 0 {
		a.Complain("INCOMPLETE: the metadata of %s do not tell what %s; %s size is counted, %s records are not",
			units.Count(r.Total.Unknown, "blob"), units.Word(r.Total.Unknown, "it holds", "they hold"), units.Word(r.Total.Unknown, "its", "their"), units.Word(r.Total.Unknown, "its", "their"))
		return cli.Incomplete
	}
	return cli.OK
}
