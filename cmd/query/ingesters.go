package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/heartbeat"
	"blobtail/internal/openstore"
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
	found, now, err := c.list(ctx, a)
	var bad *heartbeat.RowError
	if errors.Is(err, storage.ErrUnauthorized) && a.store.Remote() {
		// Tables need another role than blobs, and exitCode would name that for blobs.
		a.Complain("%v; seeing the ingesters needs the role Storage Table Data Reader", err)
		return cli.Refused, nil
	}
	if err != nil && !errors.As(err, &bad) {
		return 0, err
	}
	if form == "json" {
		werr := c.printJSON(a, found, now)
		if werr != nil {
			return 0, werr
		}
	} else if werr := c.printTable(a, found, now); werr != nil {
		return 0, werr
	}
	c.warn(a, found, now)
	switch {
	case err != nil:
		a.Complain("%v", err)
		return cli.Incomplete, nil
	case len(found) == 0:
		a.Note("no ingester has announced itself in %s", a.store)
		return cli.Nothing, nil
	}
	return cli.OK, nil
}

// list returns the rows of interest and the time to judge them by.
func (c *ingestersCmd) list(ctx context.Context, a *app) ([]heartbeat.Ingester, time.Time, error) {
	now := a.now
	store, err := openstore.Open(ctx, a.store, false)
	if err != nil {
		return nil, now, err
	}
	defer store.Close()
	all, err := heartbeat.List(ctx, store.Tables, a.store.Name())
	if errors.Is(err, storage.ErrNotExist) {
		err = nil
	}
	if len(all) > 0 {
		var cerr error
		if now, cerr = store.Now(ctx, now); cerr != nil {
			return nil, now, cerr
		}
	}
	var found []heartbeat.Ingester
	for _, i := range all {
		if !i.Forgotten(now) {
			found = append(found, i)
		}
	}
	rank := map[string]int{"live": 0, "silent": 1, "stopped": 2}
	slices.SortStableFunc(found, func(x, y heartbeat.Ingester) int {
		return cmp.Or(rank[c.state(x, now)]-rank[c.state(y, now)], x.Lane-y.Lane)
	})
	return found, now, err
}

// state is the word for an ingester in the list.
func (c *ingestersCmd) state(i heartbeat.Ingester, now time.Time) string {
	switch {
	case i.State == heartbeat.Stopped:
		return "stopped"
	case i.Live(now):
		return "live"
	}
	return "silent"
}

// holds reports whether the ingester may hold unflushed records.
func (c *ingestersCmd) holds(i *heartbeat.Ingester) string {
	switch {
	case i.Lost.Any():
		return "lost some"
	case i.State == heartbeat.Holding:
		return "yes"
	}
	return "no"
}

// warn names ingesters whose records may be missing from reads.
func (c *ingestersCmd) warn(a *app, found []heartbeat.Ingester, now time.Time) {
	for _, i := range found {
		if c.state(i, now) == "silent" && i.State == heartbeat.Holding {
			a.Note("ingester %s on %s has been silent for %s and may hold records that are in no blob, so reads are incomplete: start it again on its log, or run ingest forget %s if that is lost",
				i.ID, i.Host, age(now.Sub(i.At)), i.ID)
		}
		if i.Lost.Any() {
			a.Note("ingester %s on %s has lost records, so reads are incomplete: ingest forget --lost %s acknowledges that", i.ID, i.Host, i.ID)
		}
	}
}

func (c *ingestersCmd) printJSON(a *app, found []heartbeat.Ingester, now time.Time) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	for _, i := range found {
		line := struct {
			ID        string  `json:"id"`
			State     string  `json:"state"`
			Lane      int     `json:"lane"`
			Host      string  `json:"host"`
			Address   string  `json:"address"`
			Version   string  `json:"version"`
			Started   string  `json:"started"`
			At        string  `json:"at"`
			Oldest    string  `json:"oldest_unflushed,omitempty"`
			Unflushed float64 `json:"unflushed_seconds"`
			Holds     string  `json:"holds"` // the state of its row: holding, idle or stopped
			StoreID   string  `json:"store_id,omitempty"`
			LostSince string  `json:"lost_since,omitempty"`
			LostUntil string  `json:"lost_until,omitempty"`
		}{ID: i.ID, State: c.state(i, now), Holds: string(i.State), StoreID: i.StoreID, Lane: i.Lane, Host: i.Host, Address: i.Address, Version: i.Version,
			Started: rfc3339(i.Started.UnixNano()), At: rfc3339(i.At.UnixNano())}
		if i.Lost.Any() {
			line.LostUntil = rfc3339(i.Lost.Until.UnixNano())
			if !i.Lost.Since.IsZero() {
				line.LostSince = rfc3339(i.Lost.Since.UnixNano())
			}
		}
		if !i.Oldest.IsZero() {
			line.Oldest = rfc3339(i.Oldest.UnixNano())
			line.Unflushed = max(0, now.Sub(i.Oldest).Round(time.Millisecond).Seconds())
		}
		if err := enc.Encode(line); err != nil {
			return err
		}
	}
	return a.out.flush()
}

func (c *ingestersCmd) printTable(a *app, found []heartbeat.Ingester, now time.Time) error {
	if len(found) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "ingester\tstate\tholds\tlane\toldest unflushed\tseen\thost\taddress\tversion")
	for _, i := range found {
		oldest := "-"
		if !i.Oldest.IsZero() {
			oldest = age(now.Sub(i.Oldest)) + " ago"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s ago\t%s\t%s\t%s\n", i.ID, c.state(i, now), c.holds(&i), i.Lane, oldest, age(now.Sub(i.At)),
			cli.Safe(cmp.Or(i.Host, "-")), cli.Safe(cmp.Or(i.Address, "-")), cli.Safe(cmp.Or(i.Version, "-")))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return a.out.flush()
}

// age writes how long ago something was, to the second.
func age(d time.Duration) string { return max(0, d).Round(time.Second).String() }
