package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/when"
	"blobtail/query"
	"blobtail/record"
)

type lsCmd struct {
	Service string `arg:"" optional:"" help:"List its days."`
	Day     string `arg:"" optional:"" help:"List the blobs of that day (UTC), such as 2026-11-20."`
	Output  string `short:"o" help:"pretty, json or csv; without it, into a pipe: fields between tabs." placeholder:"FORM"`
}

func (c *lsCmd) run(ctx context.Context, a *app) (int, error) {
	form, err := a.form(c.Output, "pretty", "json", "csv")
	if err != nil {
		return 0, err
	}
	if form == "json" && c.Output == "" {
		form = "tabs"
	}
	var day time.Time
	what := "service"
	if c.Service != "" {
		what = "day (UTC)"
	}
	if c.Day != "" {
		what = "blob"
		if day, _, err = when.Day(c.Day, a.now.UTC()); err != nil {
			return 0, &cli.UsageError{Err: err}
		}
	}
	reader, err := a.open(ctx)
	if err != nil {
		return 0, err
	}
	entries, sum, err := reader.List(ctx, serviceNames([]string{c.Service}), day)
	if err != nil {
		return 0, err
	}
	c.print(a, form, what, entries)
	if err := a.out.flush(); err != nil {
		return 0, err
	}
	sum.Records = int64(len(entries))
	switch {
	case len(entries) > 0 || !sum.Complete():
	case c.Day != "":
		a.Note("%s has no blobs of that day", c.Service)
	case c.Service == "":
		a.Note("%s is empty: no service has a blob yet", a.config.Store)
	}
	return a.verdict(&sum), nil
}

// print writes a table for people, with times in their zone. The other forms have plain
// bytes and UTC.
func (c *lsCmd) print(a *app, form, what string, entries []query.Total) {
	key, _, _ := strings.Cut(what, " ")
	switch form {
	case "tabs":
		for _, e := range entries {
			fmt.Fprintf(a.out, "%s\t%d\t%d\t%d\t%d\t%s\t%s\n", e.Name, e.Blobs, e.Records, e.Raw, e.Stored,
				rfc3339(e.First), rfc3339(e.Last))
		}
		return
	case "json":
		for _, e := range entries {
			fmt.Fprintf(a.out, `{"%s":"%s","blobs":%d,"records":%d,"bytes":%d,"stored":%d,"first":"%s","last":"%s"}`+"\n",
				key, e.Name, e.Blobs, e.Records, e.Raw, e.Stored, rfc3339(e.First), rfc3339(e.Last))
		}
		return
	case "csv":
		fmt.Fprintf(a.out, "%s,blobs,records,bytes,stored,first,last\n", key)
		for _, e := range entries {
			fmt.Fprintf(a.out, "%s,%d,%d,%d,%d,%s,%s\n", e.Name, e.Blobs, e.Records, e.Raw, e.Stored, rfc3339(e.First), rfc3339(e.Last))
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
