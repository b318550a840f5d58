package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/heartbeat"
	"blobtail/internal/storeid"
	"blobtail/newest"
	"blobtail/newest/live"
	"blobtail/query"
	"blobtail/storage"
	"blobtail/storage/traffic"
	"blobtail/tailindex"
)

// openLogs opens the store, and returns readers of its blobs and of newer records. It finds
// the ingesters to ask for unflushed records: the URL of the environment or the file, and
// on a dir store the announced ones. With alive false it asks none.
func (a *app) openLogs(ctx context.Context, alive bool) (*query.Reader, *newest.Reader, error) {
	blobs, err := a.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	alive = alive && !a.config.Store.Logs() // no ingester writes there
	var ahead atomic.Int64                  // the store's clock ahead of ours in ns, after the first question for it
	ingesters := func(ctx context.Context) ([]heartbeat.Ingester, time.Time, error) {
		rows, now, unread, err := a.ingesters(ctx)
		if len(rows) > 0 {
			ahead.Store(int64(now.Sub(a.clock())))
		}
		return rows, now, cmp.Or(err, unread)
	}
	o := newest.Options{
		Unasked: !alive,
		Name:    a.config.Store.String(),
		Blobs:   blobs, Ingesters: ingesters, Store: func(ctx context.Context) (string, error) { return storeid.Read(ctx, a.store.Blobs) },
		Tail: tailindex.NewReader(a.store.Tables, tailindex.Options{
			Prefix: a.config.Tail.Prefix, Shards: a.config.Tail.Shards, Store: a.config.Store.Name(),
			Now: func() time.Time { return a.clock().Add(time.Duration(ahead.Load())) },
		}),
	}
	if alive {
		if o.Token, err = a.token(); err != nil {
			return nil, nil, &cli.UsageError{Err: err}
		}
	}
	switch {
	case !alive:
	case a.config.Live != "":
		client, err := live.NewClient(a.config.Live, live.ClientOptions{HTTP: a.counted(), Token: o.Token})
		if err != nil {
			return nil, nil, cli.Usagef("BLOBTAIL_LIVE: %w", err)
		}
		o.Live = client
	case !a.config.Store.Remote():
		o.Announced = a.counted()
	}
	a.logs = newest.New(o)
	return blobs, a.logs, nil
}

// whole is a read of blobs and of unflushed records.
type whole struct {
	query query.Query
	live  string // --live
	mode  newest.Mode
	stats bool
	// listing says that the verb lists blobs: it has no range, and unflushed records that
	// cannot be read are a note.
	listing bool
	// explains says that the verb prints what it would read. That there is nothing is an
	// answer.
	explains bool
	// most bounds the bytes of Azure's own logs that a read without a range takes from a remote
	// store; 0: no bound.
	most config.Size
	// print prints the records of the completed query.
	print func(blobs *query.Reader, q query.Query) (query.Summary, error)
}

func (w *whole) run(ctx context.Context, a *app) (int, error) {
	if err := oneOf("--live", w.live, "auto", "off", "only"); err != nil {
		return 0, err
	}
	w.mode = map[string]newest.Mode{"auto": newest.Auto, "off": newest.Off, "only": newest.Only}[w.live]
	blobs, logs, err := a.openLogs(ctx, w.mode != newest.Off)
	if err != nil {
		return 0, err
	}
	if err := a.boundedLogs(ctx, w.most, w.query); err != nil {
		return 0, err
	}
	if !w.listing {
		a.echo(w.query.Range)
	}
	// Unflushed records first: records that leave the logs meanwhile are in blobs then.
	g, err := logs.Gather(ctx, w.query, w.mode)
	if err != nil {
		return 0, err
	}
	defer g.Close()
	if w.mode == newest.Only {
		blobs = query.Without(query.Options{})
	}
	sum, err := w.print(blobs, g.Query)
	if sum.Higher > 0 {
		sum.Warnings = append(sum.Warnings, fmt.Errorf("at least %d of higher levels left out; --level %s+ has them", sum.Higher, w.query.Filter.Levels.Lowest()))
	}
	return w.end(ctx, a, &sum, &g.Report, err)
}

// end prints the facts about a read, after its records, and returns its exit code. An
// unknown service is no error in three cases. An ingester may have records of it that the
// query does not want. With live records only, a service may well have none. If some records
// are missing, the service may be among them.
func (w *whole) end(ctx context.Context, a *app, sum *query.Summary, report *newest.Report, err error) (int, error) {
	held := func(err error) bool {
		none, ok := errors.AsType[*query.NoServiceError](err)
		if !ok || w.mode == newest.Off || !a.held(ctx, none.Name) {
			return false
		}
		if sum.Records == 0 {
			a.Note("%s has records in no blob yet, and none that match", none.Name)
		}
		return true
	}
	sum.Problems = slices.DeleteFunc(sum.Problems, held)
	if none, ok := errors.AsType[*query.NoServiceError](err); ok && len(report.Problems) > 0 {
		a.Note("%v in blobs", none)
		err = nil
	} else if ok && (w.mode == newest.Only || held(err)) {
		err = nil
	}
	if err == nil {
		err = a.out.flush()
	}
	if w.stats {
		a.stats(sum, time.Since(a.started))
	}
	a.report(report)
	if err != nil {
		return 0, err
	}
	if a.store.Problems != nil {
		sum.Problems = append(sum.Problems, a.store.Problems()...)
		for _, note := range a.store.Notes() {
			a.Note("%s", note)
		}
	}
	if w.query.Filter.Where != nil {
		for _, note := range w.query.Filter.Where.Notes() {
			a.Note("--where: %s", note)
		}
	}
	if w.listing && sum.Records > 0 {
		for _, err := range report.Problems {
			a.Complain("%v", err) // the blobs are listed, but services may be missing
		}
		return a.verdict(ctx, sum), nil
	}
	sum.Problems = append(sum.Problems, report.Problems...)
	if sum.Complete() && sum.Records+sum.Examined == 0 && !w.listing && !w.explains && w.query.Range != query.Always() {
		a.Note("0 records in that range")
	}
	code := a.verdict(ctx, sum)
	if w.explains && code == cli.Nothing {
		return 0, nil
	}
	if code == cli.Nothing && !a.Quiet {
		if hint := a.meant(ctx, &w.query); hint != "" {
			a.Note("%s", hint)
		}
	}
	return code, nil
}

// held reports whether a service that is in no blob exists.
func (a *app) held(ctx context.Context, service string) bool {
	if a.logs == nil || ctx.Err() != nil {
		return false
	}
	holds, _ := a.logs.Holds(ctx, service) // if nobody can tell, it stays unknown
	return holds
}

// token is the token for ingesters, "" if there is none. A file that is named counts more
// than BLOBTAIL_TOKEN, and that more than the configuration.
func (a *app) token() (string, error) {
	if file := a.flags.TokenFile; file != "" {
		return config.Token(func(string) string { return "" }, "", file)
	}
	return config.Token(a.env.getenv, "BLOBTAIL_TOKEN", a.config.Access.TokenFile)
}

// counted is a client for ingesters whose requests are counted.
func (a *app) counted() *http.Client {
	c := live.NewHTTP()
	c.Transport = a.sent.Transport(traffic.Live, c.Transport)
	return c
}

// report prints the notes and gaps of a report.
func (a *app) report(report *newest.Report) {
	for _, text := range report.Notes {
		a.Note("%s", text)
	}
	for _, g := range report.Gaps {
		a.gap(g)
	}
}

// clock is the time now, for a run that may last.
func (a *app) clock() time.Time { return a.now.Add(time.Since(a.started)) }

// ingesters lists the rows of the store's ingesters, with the time to judge them by.
// unread is the error of unreadable rows, next to the readable ones.
func (a *app) ingesters(ctx context.Context) (rows []heartbeat.Ingester, now time.Time, unread, err error) {
	var timeless error
	var asking sync.WaitGroup
	asking.Go(func() { now, timeless = storage.Now(ctx, a.store.Blobs, a.clock()) })
	rows, err = heartbeat.List(ctx, a.store.Tables, a.config.Store.Name())
	asking.Wait()
	unread, err = heartbeat.Unread(err)
	if err != nil || len(rows) == 0 {
		return rows, a.clock(), unread, err
	}
	if timeless != nil {
		return nil, a.clock(), nil, timeless
	}
	return rows, now, unread, nil
}
