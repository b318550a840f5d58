package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/lease"
	"blobtail/record"
	"blobtail/storage"
)

type ingestersCmd struct {
	Output string `short:"o" help:"pretty or json." placeholder:"FORM"`
}

func (c *ingestersCmd) run(ctx context.Context, a *app) (int, error) {
	form, err := a.form(c.Output, "pretty", "json")
	if err != nil {
		return 0, err
	}
	from, err := a.open(ctx, false)
	if err != nil {
		return 0, err
	}
	found, now, unread, err := from.Ingesters(ctx)
	if errors.Is(err, storage.ErrUnauthorized) && a.config.Store.Remote() {
		// Tables need another role than blobs, and ExitCode would name that for blobs.
		a.Complain("%v; seeing the ingesters needs the role Storage Table Data Reader", err)
		return cli.Refused, nil
	}
	if err != nil && !errors.Is(err, storage.ErrNotExist) {
		return 0, err
	}
	found = slices.DeleteFunc(found, func(i lease.Ingester) bool { return i.Forgotten(now) })
	slices.SortStableFunc(found, func(x, y lease.Ingester) int {
		return cmp.Or(cmp.Compare(c.state(x, now), c.state(y, now)), x.Lane-y.Lane)
	})
	map[string]func(*app, []lease.Ingester, time.Time){"pretty": c.printTable, "json": c.printJSON}[form](a, found, now)
	if err := a.out.flush(); err != nil {
		return 0, err
	}
	c.warn(a, found, now)
	switch {
	case unread != nil:
		a.Complain("%v", unread)
		return lacking(unread), nil
	case len(found) == 0:
		a.Note("no ingester has announced itself in %s", from)
		return cli.Nothing, nil
	}
	return cli.OK, nil
}

// state is the word for an ingester in the list, which has them in this order: live,
// silent, stopped.
func (c *ingestersCmd) state(i lease.Ingester, now time.Time) string {
	switch {
	case i.State == lease.Stopped:
		return "stopped"
	case i.Live(now):
		return "live"
	}
	return "silent"
}

// holds reports whether the ingester may hold unflushed records.
func (c *ingestersCmd) holds(i *lease.Ingester) string {
	switch {
	case i.Lost.Any():
		return "lost some"
	case i.State == lease.Holding:
		return "yes"
	}
	return "no"
}

// warn names ingesters if records of theirs may be missing from reads.
func (c *ingestersCmd) warn(a *app, found []lease.Ingester, now time.Time) {
	for _, i := range found {
		if c.state(i, now) == "silent" && i.State == lease.Holding {
			a.Note("ingester %s on %s has been silent for %s and may hold records that are in no blob, so reads are incomplete: start it again on its log, or, if that is lost, %s%s",
				i.ID, i.Host, age(now.Sub(i.At)), i.WithoutLog(), lease.Whole(i.Floor))
		}
		if i.Lost.Any() {
			a.Note("ingester %s on %s has lost records, so reads are incomplete: ingest forget --lost %s acknowledges that", i.ID, i.Host, i.ID)
		}
	}
}

func (c *ingestersCmd) printJSON(a *app, found []lease.Ingester, now time.Time) {
	for _, i := range found {
		line := struct {
			ID        string  `json:"id"`
			State     string  `json:"state"`
			Lane      int     `json:"lane"`
			Host      string  `json:"host"`
			Address   string  `json:"address"`
			Version   string  `json:"version"`
			Started   stamp   `json:"started"`
			At        stamp   `json:"at"`
			Oldest    stamp   `json:"oldest_unflushed,omitzero"`
			Unflushed float64 `json:"unflushed_seconds"`
			Holds     string  `json:"holds"` // the state of its row: holding, idle or stopped
			StoreID   string  `json:"store_id,omitempty"`
			LostSince stamp   `json:"lost_since,omitzero"`
			LostUntil stamp   `json:"lost_until,omitzero"`
			Floor     stamp   `json:"floor,omitzero"` // of the times of records that it may hold
		}{ID: i.ID, State: c.state(i, now), Holds: string(i.State), StoreID: i.StoreID, Lane: i.Lane, Host: i.Host, Address: i.Address, Version: i.Version,
			Started: stamp{i.Started}, At: stamp{i.At}, Oldest: stamp{i.Oldest}, LostSince: stamp{i.Lost.Since}, LostUntil: stamp{i.Lost.Until}, Floor: stamp{i.Floor}}
		if !i.Oldest.IsZero() {
			line.Unflushed = max(0, now.Sub(i.Oldest).Round(time.Millisecond).Seconds())
		}
		a.json(line)
	}
}

// stamp is a time in JSON, such that texts sort like times.
type stamp struct{ time.Time }

// MarshalText implements [encoding.TextMarshaler].
func (s stamp) MarshalText() ([]byte, error) { return record.AppendTime(nil, s.UnixNano()), nil }

func (c *ingestersCmd) printTable(a *app, found []lease.Ingester, now time.Time) {
	if len(found) == 0 {
		return
	}
	t := table{heads: []head{{"ingester", true, 0}, {"state", true, 0}, {"holds", true, 4}, {"lane", false, 3}, {"oldest unflushed", true, 0},
		{"seen", true, 2}, {"host", true, 1}, {"address", true, 6}, {"version", true, 5}}}
	floors := slices.ContainsFunc(found, func(i lease.Ingester) bool { return !i.Floor.IsZero() })
	if floors {
		t.heads = append(t.heads, head{"floor", true, 7})
	}
	for _, i := range found {
		oldest := "-"
		if !i.Oldest.IsZero() {
			oldest = age(now.Sub(i.Oldest)) + " ago"
		}
		floor := "-"
		if !i.Floor.IsZero() {
			floor = i.Floor.UTC().Format(time.RFC3339)
		}
		cells := []string{i.ID, c.state(i, now), c.holds(&i), strconv.Itoa(i.Lane), oldest, age(now.Sub(i.At)) + " ago",
			cli.Safe(cmp.Or(i.Host, "-")), cli.Safe(cmp.Or(i.Address, "-")), cli.Safe(cmp.Or(i.Version, "-"))}
		if floors {
			cells = append(cells, floor)
		}
		t.add(cells...)
	}
	t.print(a, "-o json")
}

// age writes how long ago something was, to the second.
func age(d time.Duration) string { return max(0, d).Round(time.Second).String() }
