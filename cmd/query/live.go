package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"blobtail/heartbeat"
	"blobtail/internal/openstore"
	"blobtail/live"
	"blobtail/newest"
	"blobtail/query"
	"blobtail/storage"
	"blobtail/tailindex"
)

// logs is all that a command reads: blobs, and what is newer.
type logs struct {
	blobs  *query.Reader
	newest *newest.Reader
	close  func()
}

// openLogs opens the store and finds out whom to ask for live records: the URL of
// the environment or the file, and on a dir store whoever announces itself there.
// alive is false for who does not want to ask.
func (a *app) openLogs(ctx context.Context, alive bool) (*logs, error) {
	blobs, closeStore, err := openstore.Open(ctx, a.store, false)
	if err != nil {
		return nil, err
	}
	tables, closeTables, err := openstore.Tables(a.store, blobs)
	if err != nil {
		return nil, errors.Join(err, closeStore())
	}
	l := &logs{blobs: a.reader(blobs), close: func() {
		// What was only read needs no care.
		_ = closeTables()
		_ = closeStore()
	}}
	clock := &storeClock{host: a.clock}
	ingesters := a.ingesters(blobs, tables, clock)
	o := newest.Options{
		Blobs: l.blobs, Ingesters: ingesters,
		Tail: tailindex.NewReader(tables, tailindex.ReaderOptions{
			Prefix: a.tail.Prefix, Shards: a.tail.Shards, Store: openstore.Name(a.store), Now: clock.now,
		}),
	}
	switch {
	case !alive:
	case a.live != "":
		client, err := live.NewClient(a.live, live.ClientOptions{})
		if err != nil {
			l.close()
			return nil, usagef("BLOBTAIL_LIVE: %w", err)
		}
		o.Live = &named{client: client, url: a.live, store: a.store, ingesters: ingesters, ours: map[string]bool{}}
	case !openstore.Remote(a.store):
		o.Live = &neighbours{ingesters: ingesters, clients: map[string]*live.Client{}}
	}
	l.newest = newest.New(o)
	return l, nil
}

// whole is a read of blobs and of what they do not have yet.
type whole struct {
	query query.Query
	mode  newest.Mode
	stats bool
	// print prints what a reader has of the query, which has been completed.
	print func(blobs *query.Reader, q query.Query) (query.Summary, error)
	notes func(sum *query.Summary) // what the output does not show
}

func (w *whole) run(ctx context.Context, a *app) (int, error) {
	logs, err := a.openLogs(ctx, w.mode != newest.Off)
	if err != nil {
		return 0, err
	}
	defer logs.close()
	a.echo(w.query.Range)
	// What is in no blob first: what leaves the logs meanwhile is in a blob then.
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
		return 0, err
	}
	w.notes(&sum)
	a.report(&g.Report)
	sum.Problems = append(sum.Problems, g.Report.Problems...)
	return a.verdict(&sum), nil
}

// unknown decides about the error that there is no such service. It is none where
// only live records are read, because a service may well have none of these, and
// where some could not be had, because the service may be among them.
func (a *app) unknown(err error, mode newest.Mode, report *newest.Report) error {
	var none *query.NoServiceError
	switch {
	case !errors.As(err, &none):
		return err
	case len(report.Problems) > 0:
		a.note("%v in blobs", none)
		return nil
	case mode == newest.Only:
		return nil
	}
	return err
}

// clock is the time now, for a run that may last.
func (a *app) clock() time.Time { return a.now.Add(time.Since(a.started)) }

// storeClock is the time of the store, once it was asked for.
type storeClock struct {
	host  func() time.Time
	ahead atomic.Int64 // of our own clock, in ns
}

func (c *storeClock) now() time.Time { return c.host().Add(time.Duration(c.ahead.Load())) }

// ingesters lists the rows of the ingesters of the store, with the time to judge
// them by. Rows of a newer version are no failure here: logquery ingesters tells.
func (a *app) ingesters(blobs storage.BlobStore, tables storage.TableStore, own *storeClock) func(context.Context) ([]heartbeat.Ingester, time.Time, error) {
	return func(ctx context.Context) ([]heartbeat.Ingester, time.Time, error) {
		rows, err := heartbeat.List(ctx, tables, openstore.Name(a.store))
		var bad *heartbeat.RowError
		if err != nil && !errors.As(err, &bad) {
			return nil, time.Time{}, err
		}
		now := a.clock()
		if clock, ok := blobs.(storage.Clock); ok && len(rows) > 0 {
			if now, err = clock.Now(ctx); err != nil {
				return nil, time.Time{}, fmt.Errorf("ask the store for its time: %w", err)
			}
			own.ahead.Store(int64(now.Sub(a.clock())))
		}
		return rows, now, nil
	}
}

// named asks the ingester that it was told of, and makes sure that it writes to the
// store that is read: what another store's ingester answers would be taken for
// complete.
type named struct {
	client     *live.Client
	url, store string
	ingesters  func(context.Context) ([]heartbeat.Ingester, time.Time, error)
	ours       map[string]bool // by id: what was found out
}

// Ask implements [newest.Asker]. It is for one goroutine.
func (n *named) Ask(ctx context.Context, q live.Query) (*live.Answer, error) {
	answer, err := n.client.Ask(ctx, q)
	if err != nil {
		return nil, err
	}
	id := answer.Ingester()
	if !n.ours[id] && !n.isOurs(ctx, id) {
		answer.Close()
		return nil, fmt.Errorf("ingester %s at %s has never written to %s: is it the store of that ingester, and BLOBTAIL_LIVE (live, --live-url) the URL of one of its own?", id, n.url, n.store)
	}
	n.ours[id] = true
	return answer, nil
}

// isOurs says whether the store has a row of an ingester. Where that cannot be told
// it is believed: the tables may be away.
func (n *named) isOurs(ctx context.Context, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	rows, _, err := n.ingesters(ctx)
	return err != nil || len(rows) == 0 || slices.ContainsFunc(rows, func(i heartbeat.Ingester) bool { return i.ID == id })
}

// neighbours asks an ingester of a dir store, whose address is in the store. It is
// of one goroutine.
type neighbours struct {
	ingesters func(context.Context) ([]heartbeat.Ingester, time.Time, error)
	clients   map[string]*live.Client
	last      string // who answered last
}

// listWait bounds the search for an ingester in tables that may be silent.
const listWait = 3 * time.Second

// Ask implements [newest.Asker]: whoever answers does so for all. Who answered
// last is asked without looking for others, so that a follower does not hang on
// the tables.
func (n *neighbours) Ask(ctx context.Context, q live.Query) (*live.Answer, error) {
	var failed error
	if n.last != "" {
		answer, err := n.ask(ctx, n.last, q)
		if err == nil || !elsewhere(err) {
			return answer, err
		}
		failed = err
	}
	addresses, err := n.addresses(ctx)
	if err != nil {
		return nil, cmp.Or(failed, err)
	}
	for _, address := range addresses {
		if failed != nil && address == n.last {
			continue
		}
		answer, err := n.ask(ctx, address, q)
		if err == nil {
			n.last = address
			return answer, nil
		}
		failed = cmp.Or(failed, err)
		if !elsewhere(err) {
			return nil, err
		}
	}
	if len(addresses) == 0 {
		return nil, newest.ErrNobody
	}
	return nil, failed
}

// elsewhere says whether another ingester may answer a question that failed so:
// this one cannot be reached, or another program has its port now.
func elsewhere(err error) bool {
	var unreachable *live.UnreachableError
	var refused *live.RefusedError
	return errors.As(err, &unreachable) || errors.As(err, &refused)
}

func (n *neighbours) ask(ctx context.Context, address string, q live.Query) (*live.Answer, error) {
	client := n.clients[address]
	if client == nil {
		var err error
		if client, err = live.NewClient(address, live.ClientOptions{}); err != nil {
			return nil, err
		}
		n.clients[address] = client
	}
	return client.Ask(ctx, q)
}

// addresses are those of the ingesters that run, the one heard of last first.
func (n *neighbours) addresses(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	rows, now, err := n.ingesters(ctx)
	if err != nil {
		return nil, fmt.Errorf("no ingester to ask is known: %w", err)
	}
	rows = slices.DeleteFunc(rows, func(i heartbeat.Ingester) bool { return i.Address == "" || !i.Live(now) })
	slices.SortStableFunc(rows, func(x, y heartbeat.Ingester) int { return y.At.Compare(x.At) })
	var out []string
	for _, i := range rows {
		out = append(out, i.Address)
	}
	return out, nil
}
