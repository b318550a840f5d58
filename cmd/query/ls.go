package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/when"
	"blobtail/query"
	"blobtail/record"
)

type lsCmd struct {
	Service string `arg:"" optional:"" help:"List its days."`
	Day     string `arg:"" optional:"" help:"List the blobs of that day (UTC), such as 2026-11-20."`
	Live    string `help:"auto or off: count records that are in no blob yet." default:"auto" placeholder:"WHEN"`
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
	w := whole{
		query: query.Query{Services: serviceNames([]string{c.Service}), Range: query.Always()}, live: c.Live, listing: true,
		print: func(blobs *query.Reader, q query.Query) (query.Summary, error) {
			if c.Service == "" {
				q.Services = nil
			}
			entries, sum, err := blobs.List(ctx, q, day)
			if err == nil {
				c.print(a, form, what, entries)
				c.note(a, entries, &sum)
			}
			sum.Records = int64(len(entries))
			return sum, err
		},
	}
	if c.Service == "" {
		w.query.Services = []string{"*", "_*"}
	}
	return w.run(ctx, a)
}

// note tells what the table does not show.
func (c *lsCmd) note(a *app, entries []query.Total, sum *query.Summary) {
	switch {
	case len(entries) > 0 || !sum.Complete():
		for _, e := range entries {
			if e.Name == "" {
				a.Note("%s of that day in no blob yet", countOf(e.Unflushed, "record"))
			}
		}
	case c.Day != "":
		a.Note("%s has no blobs of that day", c.Service)
	case c.Service == "":
		a.Note("%s is empty: no service has a record yet", a.config.Store)
	}
}

// print writes a table for people, with times in their zone. The other forms have plain
// bytes and UTC. Records of a day that are in no blob have no row among its blobs.
func (c *lsCmd) print(a *app, form, what string, entries []query.Total) {
	key, _, _ := strings.Cut(what, " ")
	t := table{heads: []head{{"first", true, 4}, {"last", true, 2}, {"blobs", false, 5}, {"records", false, 0}, {"in no blob", false, 1},
		{"bytes", false, 6}, {"stored", false, 3}, {what, true, 0}}}
	if form == "csv" {
		fmt.Fprintf(a.out, "%s,blobs,records,bytes,stored,first,last,unflushed\n", key)
	}
	for _, e := range entries {
		if e.Name == "" {
			continue
		}
		switch form {
		case "tabs":
			fmt.Fprintf(a.out, "%s\t%d\t%d\t%d\t%d\t%s\t%s\t%d\n", e.Name, e.Blobs, e.Records, e.Raw, e.Stored,
				rfc3339(e.First), rfc3339(e.Last), e.Unflushed)
		case "json":
			fmt.Fprintf(a.out, `{"%s":"%s","blobs":%d,"records":%d,"bytes":%d,"stored":%d,"first":"%s","last":"%s","unflushed":%d}`+"\n",
				key, e.Name, e.Blobs, e.Records, e.Raw, e.Stored, rfc3339(e.First), rfc3339(e.Last), e.Unflushed)
		case "csv":
			fmt.Fprintf(a.out, "%s,%d,%d,%d,%d,%s,%s,%d\n", e.Name, e.Blobs, e.Records, e.Raw, e.Stored, rfc3339(e.First), rfc3339(e.Last), e.Unflushed)
		default:
			t.add(a.at(e.First).Format(time.DateTime), a.at(e.Last).Format(time.DateTime), cli.Thousands(e.Blobs), cli.Thousands(int(e.Records)),
				cli.Thousands(int(e.Unflushed)), bytesText(e.Raw), bytesText(e.Stored), cli.Safe(e.Name))
		}
	}
	if len(t.rows) > 0 {
		t.print(a, "-o json")
	}
}

// rfc3339 writes a time such that texts sort like times.
func rfc3339(ns int64) string { return string(record.AppendTime(nil, ns)) }
