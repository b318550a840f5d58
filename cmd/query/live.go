package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/heartbeat"
	"blobtail/internal/openstore"
	"blobtail/internal/storeid"
	"blobtail/newest"
	"blobtail/newest/live"
	"blobtail/query"
	"blobtail/tailindex"
)

// logs is the source of a command's records: blobs, and newer records.
type logs struct {
	blobs  *query.Reader
	newest *newest.Reader
	close  func()
}

// openLogs opens the store and finds the ingesters to ask for unflushed records: the URL
// of the environment or the file, and on a dir store the announced ones. With alive false
// it asks none.
func (a *app) openLogs(ctx context.Context, alive bool) (*logs, error) {
	store, err := openstore.Open(ctx, a.store, false)
	if err != nil {
		return nil, err
	}
	l := &logs{blobs: a.reader(store.Blobs), close: func() { _ = store.Close() }} // it was only read
	clock := &storeClock{host: a.clock}
	ingesters := a.ingesters(store, clock)
	o := newest.Options{
		Unasked: !alive,
		Name:    a.store.String(),
		Blobs:   l.blobs, Ingesters: ingesters, Store: func(ctx context.Context) (string, error) { return storeid.Read(ctx, store.Blobs) },
		Tail: tailindex.NewReader(store.Tables, tailindex.Options{
			Prefix: a.tail.Prefix, Shards: a.tail.Shards, Store: a.store.Name(), Now: clock.now,
		}),
	}
	switch {
	case !alive:
	case a.live != "":
		client, err := live.NewClient(a.live, live.ClientOptions{})
		if err != nil {
			l.close()
			return nil, cli.Usagef("BLOBTAIL_LIVE: %w", err)
		}
		o.Live = client
	case !a.store.Remote():
		o.Dial = dial
	}
	l.newest = newest.New(o)
	return l, nil
}

// whole is a read of blobs and of unflushed records.
type whole struct {
	query query.Query
	mode  newest.Mode
	stats bool
	// print prints the records of the completed query.
	print func(blobs *query.Reader, q query.Query) (query.Summary, error)
	notes func(sum *query.Summary) // about records that the output does not show
}

func (w *whole) run(ctx context.Context, a *app) (int, error) {
	logs, err := a.openLogs(ctx, w.mode != newest.Off)
	if err != nil {
		return 0, err
	}
	defer logs.close()
	a.echo(w.query.Range)
	// Unflushed records first: records that leave the logs meanwhile are in blobs then.
	g, err := logs.newest.Gather(ctx, w.query, w.mode)
	if err != nil {
		return 0, err
	}
	defer g.Close()
	blobs := logs.blobs
	if w.mode == newest.Only {
		blobs = query.Without(query.Options{})
	}
	sum, err := w.print(blobs, g.Query)
	if err = a.unknown(err, w.mode, &g.Report); err == nil {
		err = a.out.flush()
	}
	if w.stats {
		a.stats(&sum, time.Since(a.started))
	}
	if err != nil {
		a.report(&g.Report)
		return 0, err
	}
	w.notes(&sum)
	a.report(&g.Report)
	sum.Problems = append(sum.Problems, g.Report.Problems...)
	return a.verdict(&sum), nil
}

// unknown decides about the error for an unknown service. It is no error in two cases.
// With live records only, a service may well have none. If some records are missing, the
// service may be among them.
func (a *app) unknown(err error, mode newest.Mode, report *newest.Report) error {
	var none *query.NoServiceError
	switch {
	case !errors.As(err, &none):
		return err
	case len(report.Problems) > 0:
		a.Note("%v in blobs", none)
		return nil
	case mode == newest.Only:
		return nil
	}
	return err
}

// clock is the time now, for a run that may last.
func (a *app) clock() time.Time { return a.now.Add(time.Since(a.started)) }

// storeClock is the time of the store, after the first question for it.
type storeClock struct {
	host  func() time.Time
	ahead atomic.Int64 // of our own clock, in ns
}

func (c *storeClock) now() time.Time { return c.host().Add(time.Duration(c.ahead.Load())) }

// ingesters lists the rows of the store's ingesters, with the time to judge them by. An
// error may name unreadable rows, next to the readable ones.
func (a *app) ingesters(store *openstore.Store, own *storeClock) func(context.Context) ([]heartbeat.Ingester, time.Time, error) {
	return func(ctx context.Context) ([]heartbeat.Ingester, time.Time, error) {
		rows, err := heartbeat.List(ctx, store.Tables, a.store.Name())
		unread, err := heartbeat.Unread(err)
		if err != nil {
			return nil, a.clock(), err
		}
		now := a.clock()
		if len(rows) > 0 {
			if now, err = store.Now(ctx, now); err != nil {
				return nil, a.clock(), fmt.Errorf("ask the store for its time: %w", err)
			}
			if store.Clock != nil {
				own.ahead.Store(int64(now.Sub(a.clock())))
			}
		}
		return rows, now, unread
	}
}

// hasty is how long a silent ingester may take to answer: most likely it is gone.
const hasty = time.Second

// dial makes a client of the ingester at an address.
func dial(address string, silent bool) (newest.Asker, error) {
	o := live.ClientOptions{}
	if silent {
		o.Wait = hasty
	}
	client, err := live.NewClient(address, o)
	if err != nil { // an interface that holds a nil pointer is not nil
		return nil, err
	}
	return client, nil
}
