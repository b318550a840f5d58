package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"blobtail/internal/bill"
	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/openstore"
	"blobtail/internal/trust"
	"blobtail/reading"
	"blobtail/reading/blobs"
	"blobtail/tailindex"
)

// open opens the source from which a verb reads, until the end of the run. With alive false no
// ingester is asked.
func (a *app) open(ctx context.Context, alive bool) (reading.Source, error) {
	if a.flags.Server != "" {
		return a.openServer()
	}
	store, err := a.openStore(ctx, alive)
	if err != nil {
		return nil, err
	}
	return store, nil
}

// openStore opens the store with its ingesters: the URL of the environment or the file, or else
// those at the addresses in their rows. With alive false it asks none.
func (a *app) openStore(ctx context.Context, alive bool) (*reading.Store, error) {
	r, err := a.openReader(ctx, alive, reading.OpenOptions{})
	if err != nil {
		return nil, err
	}
	store := r.For(nil)
	a.source = store
	return store, nil
}

// mostRemembered is how many bytes of names and attributes of a store in a directory a server keeps.
const mostRemembered = 16 << 20

// openReader returns a reader of the store. A read ends before the blobs that it listed can be
// deleted.
func (a *app) openReader(ctx context.Context, alive bool, o reading.OpenOptions) (*reading.Reader, error) {
	if a.flags.Server != "" {
		return nil, cli.Usagef("logquery %s reads the store itself, which the server %s does not hand out; run it where the store can be reached, with --store instead of --server", a.verb.Name, a.flags.Server)
	}
	late, of := time.Duration(a.flags.Late), a.config.Store
	if late < 0 || late != openstore.DefaultLate && !of.Logs() {
		return nil, cli.Usagef("--late is for a store azurelogs:..., and a length of time such as 6h")
	}
	if late == 0 {
		late = openstore.NeverLate
	}
	remember := int64(0)
	if o.KeepIndexes {
		remember = mostRemembered
	}
	var err error
	so := openstore.Options{Late: late, Ignore: a.config.AzureLogs.Ignore, Reads: true, Remember: remember}
	if a.store, err = openstore.OpenWith(ctx, of, false, so); err != nil {
		return nil, err
	}
	a.Explain = a.store.Explain
	o.Blobs, o.Tables, o.Name, o.Now = a.store.Blobs, a.store.Tables, of.String(), a.clock
	o.Tail = tailindex.Options{Prefix: a.config.Tail.Prefix, Shards: a.config.Tail.Shards, Store: of.Name()}
	o.Distant, o.MaxAge, o.Progress = of.Remote(), time.Duration(a.config.Retention.Grace)/2, &a.progress
	if a.verb.Name != "serve" { // its readers get a warning with their answer
		o.Cool = a.tellCool
	}
	if of.Logs() { // their blobs are made on this host, and last as long as the run
		o.Distant, o.MaxAge = false, math.MaxInt64
	}
	if o.Trust, err = a.trust(); err != nil {
		return nil, err
	}
	o.Off, o.Unasked, o.PlainHTTP, o.Sent = !alive, of.Logs(), a.flags.PlainHTTP, &a.sent
	if alive && !o.Unasked {
		if o.Token, err = a.token(); err != nil {
			return nil, &cli.UsageError{Err: err}
		}
		if !a.config.LiveOff() {
			o.Live = a.config.Live
		}
	}
	if a.config.Workers != "" && !of.Logs() {
		if o.Sharing, err = openWorkers(a, o.Trust); err != nil {
			return nil, err
		}
	}
	r, err := reading.Open(o)
	if err != nil {
		return nil, cli.Usagef("BLOBTAIL_LIVE: %w", err)
	}
	return r, nil
}

// mostStored is [reading.Here.MaxStored] of a question: an unbounded read of a remote store must
// not cost more than intended. 0: there is no bound.
func (a *app) mostStored(most *config.Size, ask *reading.Ask) int64 {
	if most == nil || !a.config.Store.Remote() || a.config.Store.Logs() || ask.Range.Bounded() || ask.Limit > 0 || ask.First > 0 {
		return 0
	}
	return int64(*most)
}

// token is the token for ingesters, "" if there is none. A file that is named counts more
// than BLOBTAIL_TOKEN, and that more than the configuration.
func (a *app) token() (string, error) {
	if file := a.flags.TokenFile; file != "" {
		return config.Token(func(string) string { return "" }, "", file)
	}
	return config.Token(a.env.getenv, "BLOBTAIL_TOKEN", a.config.Access.TokenFile)
}

// trust says which ingesters, or which server, are believed over TLS.
func (a *app) trust() (*trust.Trust, error) {
	of := a.config.TLS
	t, err := trust.New(trust.Options{CA: cmp.Or(a.flags.CA, of.CA), Name: cmp.Or(a.flags.ServerName, of.ServerName)}, a.now)
	if err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	return t, nil
}

// clock is the time now, for a run that may last.
func (a *app) clock() time.Time { return a.now.Add(time.Since(a.started)) }

// tellCool says on stderr what a read of cooler tiers costs, by the built-in prices.
func (a *app) tellCool(e *blobs.CoolError) {
	price := ""
	if prices, err := bill.Load(""); err == nil {
		if cost, seen, ok := prices.Retrieval(e.Bytes); ok {
			price = fmt.Sprintf(" (%s %s at the prices of %s)", prices.Currency, money(cost), seen)
		}
	}
	a.Note("%v%s", e, price)
}
