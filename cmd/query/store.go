package main

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"blobtail/catalog"
	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/heartbeat"
	"blobtail/internal/storeid"
	"blobtail/newest"
	"blobtail/newest/live"
	"blobtail/query"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/traffic"
	"blobtail/tailindex"
)

// storePlace is the store of the run with its ingesters.
type storePlace struct {
	a     *app
	blobs *query.Reader
	logs  *newest.Reader
}

// openStore opens the store, and returns readers of its blobs and of newer records. It finds
// the ingesters to ask for unflushed records: the URL of the environment or the file, or else
// those at the addresses in their rows. With alive false it asks none.
func (a *app) openStore(ctx context.Context, alive bool) (*storePlace, error) {
	if a.flags.Server != "" {
		return nil, cli.Usagef("logquery %s reads the store itself, which the server %s does not hand out; run it where the store can be reached, with --store instead of --server", a.verb.Name, a.flags.Server)
	}
	blobs, err := a.openBlobs(ctx)
	if err != nil {
		return nil, err
	}
	p := &storePlace{a: a, blobs: blobs}
	var ahead atomic.Int64 // the store's clock ahead of ours in ns, after the first question for it
	ingesters := func(ctx context.Context) ([]heartbeat.Ingester, time.Time, error) {
		rows, now, unread, err := p.ingesters(ctx)
		if len(rows) > 0 {
			ahead.Store(int64(now.Sub(a.clock())))
		}
		return rows, now, cmp.Or(err, unread)
	}
	o := newest.Options{
		Unasked: a.config.Store.Logs(), Off: !alive, PlainHTTP: a.flags.PlainHTTP, Distant: a.config.Store.Remote(),
		Name:  a.config.Store.String(),
		Blobs: blobs, Ingesters: ingesters, Store: func(ctx context.Context) (string, error) { return storeid.Read(ctx, a.store.Blobs) },
		Tail: tailindex.NewReader(a.store.Tables, tailindex.Options{
			Prefix: a.config.Tail.Prefix, Shards: a.config.Tail.Shards, Store: a.config.Store.Name(),
			Now: func() time.Time { return a.clock().Add(time.Duration(ahead.Load())) },
		}),
	}
	if alive = alive && !o.Unasked; alive {
		if o.Token, err = a.token(); err != nil {
			return nil, &cli.UsageError{Err: err}
		}
	}
	switch {
	case !alive:
	case a.config.Live != "" && !a.config.LiveOff():
		client, err := live.NewClient(a.config.Live, live.ClientOptions{HTTP: a.counted(), Token: o.Token, PlainHTTP: o.PlainHTTP})
		if err != nil {
			return nil, cli.Usagef("BLOBTAIL_LIVE: %w", err)
		}
		o.Live = client
	default:
		o.Announced = a.counted()
	}
	p.logs = newest.New(o)
	a.place = p
	return p, nil
}

// counted is a client for ingesters whose requests are counted.
func (a *app) counted() *http.Client {
	c := live.NewHTTP()
	c.Transport = a.sent.Transport(traffic.Live, c.Transport)
	return c
}

func (p *storePlace) name() string { return p.a.config.Store.String() }

func (p *storePlace) look(ctx context.Context, q query.Query, mode newest.Mode) (view, error) {
	g, err := p.logs.Gather(ctx, q, mode)
	if err != nil {
		return nil, err
	}
	v := &storeView{a: p.a, blobs: p.blobs, gathered: g}
	if mode == newest.Only {
		v.blobs = query.Without(query.Options{})
	}
	return v, nil
}

func (p *storePlace) tail(ctx context.Context, q query.Query, print func(lines []byte) error) (query.Summary, *newest.Report, error) {
	return p.logs.Tail(ctx, q, func(e *record.Entry) error { return print(e.Line) })
}

func (p *storePlace) follow(ctx context.Context, o newest.FollowOptions) (newest.Cursor, error) {
	return p.logs.Follow(ctx, o)
}

func (p *storePlace) holds(ctx context.Context, service string) bool {
	holds, _ := p.logs.Holds(ctx, service) // if nobody can tell, it stays unknown
	return holds
}

func (p *storePlace) held(ctx context.Context) []string {
	names, _, _ := p.logs.Services(ctx) // they are a help only
	return names
}

func (p *storePlace) services(ctx context.Context) ([]string, error) {
	return catalog.Services(ctx, p.a.store.Blobs)
}

func (p *storePlace) ingesters(ctx context.Context) (rows []heartbeat.Ingester, now time.Time, unread, err error) {
	a := p.a
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

func (p *storePlace) body(ctx context.Context, key string) (body []byte, warning, err error) {
	if p.a.store.Logs != nil {
		return nil, nil, cli.Usagef("cat is for the blobs of blobtail's own stores; logquery SERVICE prints Azure's own logs")
	}
	return p.blobs.Body(ctx, key)
}

// storeView reads the blobs of a store, and unflushed records that were gathered before. It has
// the ingesters decide about services that are in no blob.
type storeView struct {
	a        *app
	blobs    *query.Reader
	gathered *newest.Gathered
}

func (v *storeView) query() query.Query     { return v.gathered.Query }
func (v *storeView) report() *newest.Report { return &v.gathered.Report }
func (v *storeView) close()                 { v.gathered.Close() }

func (v *storeView) lines(ctx context.Context, q query.Query, _ []string, emit func(lines []byte) error) (sum query.Summary, err error) {
	if q.Limit > 0 {
		sum, err = v.blobs.Newest(ctx, q, emit)
	} else if plan, perr := v.plan(ctx, q); perr != nil {
		err = perr
	} else {
		sum, err = plan.Read(ctx, emit)
	}
	return sum, v.gathered.Settle(ctx, &sum, err)
}

// plan plans a read that is not longer than intended.
func (v *storeView) plan(ctx context.Context, q query.Query) (*query.Plan, error) {
	plan, err := v.blobs.Plan(ctx, q)
	if err == nil {
		err = v.bounded(q, plan)
	}
	return plan, err
}

func (v *storeView) count(ctx context.Context, q query.Query) (n int64, sum query.Summary, err error) {
	plan, err := v.blobs.Plan(ctx, q)
	if err == nil {
		n, sum, err = plan.Count(ctx)
	}
	return n, sum, v.gathered.Settle(ctx, &sum, err)
}

func (v *storeView) histogram(ctx context.Context, q query.Query, _ time.Duration, cut cutter) (buckets []query.Bucket, sum query.Summary, err error) {
	plan, err := v.blobs.Plan(ctx, q)
	if err != nil {
		return nil, sum, v.gathered.Settle(ctx, &sum, err)
	}
	by, err := cut(plan.Span())
	if err == nil && (q.Filter.ReadsLines() || by.Length%time.Minute != 0) {
		err = v.bounded(q, plan)
	}
	if err == nil {
		buckets, sum, err = plan.Histogram(ctx, by)
	}
	return buckets, sum, v.gathered.Settle(ctx, &sum, err)
}

func (v *storeView) list(ctx context.Context, q query.Query, day time.Time) ([]query.Total, query.Summary, error) {
	entries, sum, err := v.blobs.List(ctx, q, day)
	return entries, sum, v.gathered.Settle(ctx, &sum, err)
}

func (v *storeView) explain(ctx context.Context, q query.Query) (x query.Explanation, sum query.Summary, err error) {
	plan, err := v.blobs.Plan(ctx, q)
	if err == nil {
		x, sum, err = plan.Explain(ctx)
	}
	return x, sum, v.gathered.Settle(ctx, &sum, err)
}

func (v *storeView) bounded(q query.Query, plan *query.Plan) error {
	if v.a.most == nil {
		return nil
	}
	return v.a.bounded(*v.a.most, q, plan)
}

// bounded refuses an unbounded remote read that costs more than intended.
func (a *app) bounded(most config.Size, q query.Query, plan *query.Plan) error {
	if !a.config.Store.Remote() || a.config.Store.Logs() || q.Range.Bounded() || q.Limit > 0 || q.First > 0 || plan.Bytes() <= int64(most) {
		return nil
	}
	return cli.Usagef("this would read %s of blobs, more than --max-bytes %s; give --from or --since, -n, or a larger --max-bytes",
		bytesText(plan.Bytes()), most)
}
