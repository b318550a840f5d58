package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/spelling"
	"blobtail/internal/units"
	"blobtail/internal/when"
	"blobtail/reading"
	"blobtail/record"
)

type lsCmd struct {
	Service string `arg:"" optional:"" help:"List its days."`
	Day     string `arg:"" optional:"" help:"List the blobs of that day (UTC), such as 2026-11-20."`
	Live    string `help:"auto or off: count records that are in no blob yet (auto)." placeholder:"WHEN"`
	Output  string `short:"o" help:"pretty, json or csv; without it, into a pipe: fields between tabs." placeholder:"FORM"`
	Sort    string `help:"name (the default), records, blobs, bytes, size (stored), unflushed, first or last: names from a to z, the others from the largest or the newest on." placeholder:"KEY"`
	Reverse bool   `short:"r" help:"The other way round."`

	Names      bool `help:"Print the names of the blobs that a read takes, one a line, for other tools."`
	rangeFlags `group:"Time of --names"`
}

func (c *lsCmd) run(ctx context.Context, a *app) (int, error) {
	form, err := a.form(c.Output, "pretty", "json", "csv")
	if err != nil {
		return 0, err
	}
	if form == "json" && c.Output == "" {
		form = "tabs"
	}
	order, err := c.order(a.config.Store.Logs())
	if err != nil {
		return 0, err
	}
	if c.Names {
		return c.names(ctx, a)
	}
	if c.rangeFlags != (rangeFlags{}) {
		return 0, cli.Usagef("ls has no range of times, but with --names; logquery ls SERVICE DAY lists the blobs of a day")
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
	services := []string{"*", "_*"}
	if c.Service != "" {
		if services, err = servicesOf([]string{c.Service}); err != nil {
			return 0, err
		}
	}
	if a.config.Store.Logs() {
		return c.logs(ctx, a, form, what, day, order)
	}
	w := whole{
		ask: reading.Ask{Services: services, Range: reading.Always()}, live: c.Live, listing: true,
		read: func(from reading.Source, ask reading.Ask) (*reading.Outcome, error) {
			entries, out, err := c.list(ctx, from, ask, day)
			if err == nil {
				slices.SortStableFunc(entries, order)
				c.print(a, form, what, entries, false)
				c.note(a, entries, out)
				out.Records = int64(len(entries))
			}
			return out, err
		},
	}
	return w.run(ctx, a)
}

// order compares two rows by --sort. Equal ones are in the order of their names, in which those of the
// system are the last ones. Nobody counts the records of Azure's own logs.
func (c *lsCmd) order(logs bool) (func(x, y reading.Total) int, error) {
	byName := func(x, y reading.Total) int {
		system := func(t reading.Total) int { return strings.Count(t.Name[:min(1, len(t.Name))], "_") }
		return cmp.Or(system(x)-system(y), strings.Compare(x.Name, y.Name))
	}
	keys := map[string]func(t reading.Total) int64{
		"records":   func(t reading.Total) int64 { return t.Records },
		"blobs":     func(t reading.Total) int64 { return int64(t.Blobs) },
		"bytes":     func(t reading.Total) int64 { return t.Raw },
		"size":      func(t reading.Total) int64 { return t.Stored },
		"stored":    func(t reading.Total) int64 { return t.Stored }, // as the column is called
		"unflushed": func(t reading.Total) int64 { return t.Unflushed },
		"first":     func(t reading.Total) int64 { return t.First },
		"last":      func(t reading.Total) int64 { return t.Last },
	}
	turn := 1
	if c.Reverse {
		turn = -1
	}
	key := keys[c.Sort]
	switch {
	case (c.Sort != "" || c.Reverse) && c.Names:
		return nil, cli.Usagef("--names prints names in their order; leave out --sort and -r")
	case c.Sort == "" || c.Sort == "name":
		return func(x, y reading.Total) int { return turn * byName(x, y) }, nil
	case key == nil:
		return nil, unsorted(c.Sort)
	case logs && (c.Sort == "records" || c.Sort == "bytes" || c.Sort == "unflushed"):
		return nil, cli.Usagef("--sort %s: nobody counts the records of Azure's own logs; sort by name, blobs, size, first or last", c.Sort)
	}
	return func(x, y reading.Total) int { return cmp.Or(turn*cmp.Compare(key(y), key(x)), byName(x, y)) }, nil
}

// unsorted is the error for a key that is none.
func unsorted(key string) error {
	keys := []string{"name", "records", "blobs", "bytes", "size", "unflushed", "first", "last"}
	meant := map[string]string{"time": "last", "date": "last", "newest": "last", "oldest": "first", "count": "records", "service": "name", "day": "name", "blob": "name"}
	hint := cmp.Or(meant[strings.ToLower(key)], spelling.Near(strings.ToLower(key), keys))
	if name, down := strings.CutPrefix(key, "-"); down && slices.Contains(keys, name) {
		return cli.Usagef("--sort %s: for the other way round: --sort %s -r", key, name)
	}
	if hint != "" {
		hint = "; did you mean " + hint + "?"
	}
	return cli.Usagef("--sort %s: it must be %s or %s%s", key, strings.Join(keys[:len(keys)-1], ", "), keys[len(keys)-1], hint)
}

// list sums up the services, those of the system last; or the days of some; or the blobs of a day.
func (c *lsCmd) list(ctx context.Context, from reading.Source, ask reading.Ask, day time.Time) (entries []reading.Total, out *reading.Outcome, err error) {
	if c.Service == "" {
		all, out, err := from.Services(ctx, ask)
		for _, system := range []bool{false, true} {
			for i := range all {
				if s := &all[i]; system == (s.Name[0] == '_') {
					entries = append(entries, reading.Total{
						Name: s.Name, Blobs: s.Blobs, Records: s.Records, Raw: s.Bytes, Stored: s.Stored, Unflushed: s.Unflushed, First: s.First, Last: s.Last,
					})
				}
			}
		}
		return entries, out, err
	}
	list := from.Days
	if !day.IsZero() {
		list = from.Blobs
		ask.Range = reading.Range{From: day.UnixNano(), To: day.AddDate(0, 0, 1).UnixNano()}
	}
	all, out, err := list(ctx, ask)
	at := map[string]int{} // days of several services are one
	for i := range all {
		t := &all[i].Total
		n, known := at[t.Name]
		if !known {
			at[t.Name], entries = len(entries), append(entries, *t)
			continue
		}
		e := &entries[n]
		e.Blobs, e.Records, e.Raw, e.Stored, e.Unflushed = e.Blobs+t.Blobs, e.Records+t.Records, e.Raw+t.Raw, e.Stored+t.Stored, e.Unflushed+t.Unflushed
		e.First, e.Last = min(e.First, t.First), max(e.Last, t.Last)
	}
	if day.IsZero() {
		slices.SortFunc(entries, func(x, y reading.Total) int { return strings.Compare(x.Name, y.Name) })
	}
	return entries, out, err
}

// names prints the names of the blobs that a read of the range takes. It asks no ingester.
func (c *lsCmd) names(ctx context.Context, a *app) (int, error) {
	switch {
	case c.Output != "":
		return 0, cli.Usagef("--names prints one name a line; leave out -o")
	case c.Live != "" && c.Live != "off":
		return 0, cli.Usagef("--names is of blobs alone; leave out --live")
	case a.config.Store.Logs():
		return 0, cli.Usagef("--names is for the blobs of blobtail's own stores; Azure's own logs are no JSON in zstd")
	case c.Day != "" && c.rangeFlags != (rangeFlags{}):
		return 0, cli.Usagef("DAY is a range already; leave out --from, --to, --since and --day")
	}
	rng, err := a.times(c.rangeFlags)
	if c.Day != "" {
		var from, to time.Time
		from, to, err = when.Day(c.Day, a.now.UTC())
		rng = reading.Range{From: from.UnixNano(), To: to.UnixNano()}
	}
	if err != nil {
		return 0, &cli.UsageError{Err: err}
	}
	services, err := servicesOf([]string{cmp.Or(c.Service, "*")})
	if err != nil {
		return 0, err
	}
	return keys(ctx, a, services, rng, func(name string) { fmt.Fprintln(a.out, cli.SafeLine(name)) })
}

// keys finds the blobs that a read takes. It asks no ingester.
func keys(ctx context.Context, a *app, services []string, rng reading.Range, each func(name string)) (code int, err error) {
	w := whole{ask: reading.Ask{Services: services, Range: rng}, live: "off", listing: true, blobs: true}
	w.read = func(from reading.Source, ask reading.Ask) (*reading.Outcome, error) {
		store, ok := from.(*reading.Store)
		if !ok {
			return nil, cli.Usagef("--names and duckdb are for tools that read the store: it needs the store itself")
		}
		names, out, err := store.Keys(ctx, ask)
		for _, name := range names {
			each(name)
		}
		out.Records = int64(len(names))
		return out, err
	}
	return w.run(ctx, a)
}

// note adds facts that the table does not show.
func (c *lsCmd) note(a *app, entries []reading.Total, out *reading.Outcome) {
	switch {
	case len(entries) > 0 || !out.Complete():
		for _, e := range entries {
			if e.Name == "" {
				a.Note("%s of that day in no blob yet", units.Count(e.Unflushed, "record"))
			}
		}
	case c.Day != "":
		a.Note("%s has no blobs of that day", c.Service)
	case c.Service == "":
		a.Note("%s is empty: no service has a record yet", a.source)
	}
}

// print writes a table for people, with times in their zone. The other forms have plain
// bytes and UTC. Records of a day that are in no blob have no row among its blobs. unread says
// that the records were not counted.
func (c *lsCmd) print(a *app, form, what string, entries []reading.Total, unread bool) {
	key, _, _ := strings.Cut(what, " ")
	t := table{heads: []head{{"first", true, 4}, {"last", true, 2}, {"blobs", false, 5}, {"records", false, 0}, {"in no blob", false, 1},
		{"bytes", false, 6}, {"stored", false, 3}, {what, true, 0}}}
	if form == "csv" {
		fmt.Fprintf(a.out, "%s,blobs,records,bytes,stored,first,last,unflushed\n", key)
	}
	number := func(n int64, unknown string) string {
		if unread {
			return unknown
		}
		return strconv.FormatInt(n, 10)
	}
	for _, e := range entries {
		if e.Name == "" {
			continue
		}
		switch form {
		case "tabs":
			fmt.Fprintf(a.out, "%s\t%d\t%s\t%s\t%d\t%s\t%s\t%d\n", cli.SafeLine(e.Name), e.Blobs, number(e.Records, "-"), number(e.Raw, "-"), e.Stored,
				rfc3339(e.First), rfc3339(e.Last), e.Unflushed)
		case "json":
			fmt.Fprintf(a.out, `{"%s":"%s","blobs":%d,"records":%s,"bytes":%s,"stored":%d,"first":"%s","last":"%s","unflushed":%d}`+"\n",
				key, record.AppendEscaped(nil, []byte(e.Name)), e.Blobs, number(e.Records, "null"), number(e.Raw, "null"), e.Stored, rfc3339(e.First), rfc3339(e.Last), e.Unflushed)
		case "csv":
			fmt.Fprintf(a.out, "%s,%d,%s,%s,%d,%s,%s,%d\n", csvText(e.Name), e.Blobs, number(e.Records, ""), number(e.Raw, ""), e.Stored, rfc3339(e.First), rfc3339(e.Last), e.Unflushed)
		default:
			records, raw := cli.Thousands(int(e.Records)), bytesText(e.Raw)
			if unread {
				records, raw = "-", "-"
			}
			t.add(a.at(e.First).Format(time.DateTime), a.at(e.Last).Format(time.DateTime), cli.Thousands(e.Blobs), records,
				cli.Thousands(int(e.Unflushed)), raw, bytesText(e.Stored), cli.Safe(e.Name))
		}
	}
	if len(t.rows) > 0 {
		t.print(a, "-o json")
	}
}

// rfc3339 writes a time such that texts sort like times.
func rfc3339(ns int64) string { return string(record.AppendTime(nil, ns)) }

// csvText writes a text as a field of CSV.
func csvText(text string) string {
	if !strings.ContainsAny(text, "\",\r\n") {
		return text
	}
	return `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
}
