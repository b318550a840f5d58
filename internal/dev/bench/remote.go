package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit/meter"

	"blobtail/internal/dev/bench/rig"
)

// far is an emulator of Azure with a proxy before each of its services.
type far struct {
	// accounts are in the order of the sides. Containers of one account have the tables of
	// the newest records in common, and a request costs the emulator time in proportion to
	// the blobs of its account.
	accounts []*testenv.Azurite
	blobs    *meter.Proxy
	tables   *meter.Proxy
	through  *strings.Replacer // turns connection strings into those by way of the proxies
	stop     func()
}

// exchange is the traffic of one remote read.
type exchange struct {
	delay                  time.Duration
	requests, chain, bytes int
	undelayedMS            float64
}

// startFar starts an emulator with n accounts. Its blobs are reached without the queue that
// tests share.
func startFar(n int) (*far, error) {
	accounts, stop, err := testenv.Start(n)
	if err != nil {
		return nil, err
	}
	f := &far{accounts: accounts, stop: stop}
	host := func(endpoint string) string {
		_, rest, _ := strings.Cut(endpoint, "://")
		host, _, _ := strings.Cut(rest, "/")
		return host
	}
	blobs, tables := host(accounts[0].BlobURL), host(accounts[0].TableURL)
	if f.blobs, err = meter.New(accounts[0].Emulator); err != nil {
		stop()
		return nil, err
	}
	if f.tables, err = meter.New(tables); err != nil {
		f.blobs.Close()
		stop()
		return nil, err
	}
	f.through = strings.NewReplacer(blobs, f.blobs.Address(), tables, f.tables.Address())
	return f, nil
}

// container is the store of a part, in the account of a side.
const container = "azure:logs"

// direct returns the place of a side for its ingester.
func (b *bench) direct(f *far, s *side) place {
	return place{container, []string{"AZURE_STORAGE_CONNECTION_STRING=" + f.accounts[slices.Index(b.sides, s)].ConnectionString}}
}

// proxied returns the same place by way of the proxies.
func (b *bench) proxied(f *far, s *side) place {
	at := b.direct(f, s)
	return place{at.store, []string{f.through.Replace(at.env[0])}}
}

func (f *far) close() {
	f.blobs.Close()
	f.tables.Close()
	f.stop()
}

func (f *far) delay(d time.Duration) { f.blobs.Delay(d); f.tables.Delay(d) }

func (f *far) take() []meter.Request { return slices.Concat(f.blobs.Take(), f.tables.Take()) }

// remote measures the rows of remote stores. Each part has an emulator of its own.
func (b *bench) remote(ctx context.Context) error {
	for _, part := range []struct {
		rows    []string
		measure func(context.Context, *far) error
	}{
		{[]string{"remote-i", "remote-ii", "remote-hist", "remote-iv", "remote-tail", "remote-F"}, b.farReference},
		{[]string{"remote-fresh-iv", "remote-fresh-tail"}, b.farFresh},
		{[]string{"remote-w-1000"}, b.farMany},
	} {
		if !b.o.rows.Choose(part.rows...) {
			continue
		}
		f, err := startFar(len(b.sides))
		if err != nil {
			b.note("nothing remote is measured: %v", err)
			return nil
		}
		err = part.measure(ctx, f)
		f.close()
		if err != nil {
			return err
		}
	}
	return nil
}

// farLoad loads a corpus into the store of each side.
func (b *bench) farLoad(ctx context.Context, f *far, c *rig.Corpus, args ...string) error {
	for _, s := range b.sides {
		b.say("load %d records into the emulator", c.Records)
		wal, err := os.MkdirTemp(b.work, "wal-")
		if err != nil {
			return err
		}
		at := b.direct(f, s)
		if _, err := b.load(ctx, s, at.store, at.env, 1000, append([]string{"--wal", wal}, args...), c); err != nil {
			return err
		}
		if err := os.RemoveAll(wal); err != nil {
			return err
		}
	}
	return nil
}

// farRows measures reads.
func (b *bench) farRows(ctx context.Context, f *far, reads ...read) error {
	for _, r := range reads {
		err := b.row(ctx, r, func(s *side) (m sample, err error) {
			at := b.proxied(f, s)
			f.delay(0)
			undelayed, err := b.once(ctx, s, at, r)
			if err != nil {
				return undelayed, err
			}
			f.take()
			f.delay(b.o.delay)
			if m, err = b.once(ctx, s, at, r); err != nil {
				return m, err
			}
			m.remote = &exchange{delay: b.o.delay, undelayedMS: undelayed.WallMS}
			m.remote.count(f.take())
			return m, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (x *exchange) count(requests []meter.Request) {
	x.requests, x.chain = len(requests), meter.Chain(requests)
	for _, r := range requests {
		x.bytes += int(r.Bytes)
	}
}

// farReference reads the reference corpus. Its records are too old for the tables of the
// newest ones.
func (b *bench) farReference(ctx context.Context, f *far) error {
	if err := b.farLoad(ctx, f, b.reference); err != nil {
		return err
	}
	q := b.queries
	return b.farRows(ctx, f,
		remoteRow(q.i(), "remote-i", "remote: i", 110, 95),
		remoteRow(q.ii(), "remote-ii", "remote: ii", 160, 130),
		remoteRow(b.minutes(), "remote-hist", "remote: hist '*'", 280, 200),
		remoteRow(q.iv(), "remote-iv", "remote: -n 100", 160, 100),
		remoteRow(q.tail(), "remote-tail", "remote: tail -n 100", 220, 130),
		remoteRow(q.iii("-F"), "remote-F", "remote: -F needle over everything", 400, 200))
}

// farFresh reads the newest records of logs that end now. The other rows have logs of some
// days ago, so that a guess of the newest hour fails.
func (b *bench) farFresh(ctx context.Context, f *far) error {
	to := time.Now().UTC().Truncate(time.Second)
	c, err := b.tools.Generate(ctx, rig.Plan{Records: 200_000, ServiceCount: 8, Seed: 42, From: to.Add(-6 * time.Hour), To: to}, b.work, "fresh")
	if err != nil {
		return err
	}
	q, err := b.queriesOf(c)
	if err == nil {
		err = b.farLoad(ctx, f, c)
	}
	if err != nil {
		return err
	}
	return b.farRows(ctx, f,
		remoteRow(q.iv(), "remote-fresh-iv", "remote: -n 100 of logs of today", 160, 100),
		remoteRow(q.tail(), "remote-fresh-tail", "remote: tail -n 100 of logs of today", 220, 130))
}

// farMany searches 1,000 blobs. Each body of 1,000 records makes one.
func (b *bench) farMany(ctx context.Context, f *far) error {
	c, err := b.tools.Generate(ctx, rig.Plan{Records: 1_000_000, ServiceCount: 1, Seed: 42, From: rig.ReferenceStart.Add(-7 * 24 * time.Hour), To: rig.ReferenceStart}, b.work, "thousand")
	if err != nil {
		return err
	}
	defer os.Remove(c.File)
	q, err := b.queriesOf(c)
	if err == nil {
		err = b.farLoad(ctx, f, c, "--flush-size", "64KiB")
	}
	if err != nil {
		return err
	}
	return b.farRows(ctx, f, remoteRow(q.iii("-w"), "remote-w-1000", "remote: -w an id over 1,000 blobs", 900, 400))
}

// remoteRow makes a remote row of a local one.
func remoteRow(r read, id, name string, reach, aim float64) read {
	r.id, r.name, r.reach, r.aim, r.memory, r.versionToo = id, name, reach, aim, 0, false
	return r
}
