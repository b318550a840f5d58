package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"blobtail/internal/dev/bench/answers"
	"blobtail/internal/dev/bench/rig"
	"blobtail/internal/dev/corpus"
	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit/meter"
)

// remote measures reads of stores in an emulator of Azure behind a delay: of the reference corpus,
// with records too old for the tables of the newest ones; of logs that end now, so that a guess
// of the newest hour is right; and of 1,000 blobs, each of a body of 1,000 records.
func (d *driver) remote(ctx context.Context) {
	now := time.Now().UTC().Truncate(time.Second)
	const week = 7 * 24 * time.Hour
	for _, part := range []struct {
		of   corpus.Options // without records: the reference corpus
		args []string
		rows []read
	}{
		{corpus.Options{}, nil, []read{
			{"remote-i", "remote: i", "i", 110, 0},
			{"remote-ii", "remote: ii", "ii", 160, 0},
			{"remote-hist", "remote: hist '*'", "v", 280, 0},
			{"remote-iv", "remote: -n 100", "iv", 160, 0},
			{"remote-tail", "remote: tail -n 100", "tail", 220, 0},
			{"remote-F", "remote: -F needle over everything", "iii-F", 400, 0}}},
		{corpus.Options{Records: 200_000, Services: 8, Seed: corpus.ReferenceSeed, From: now.Add(-6 * time.Hour), Span: 6 * time.Hour}, nil, []read{
			{"remote-fresh-iv", "remote: -n 100 of logs of today", "iv", 160, 0},
			{"remote-fresh-tail", "remote: tail -n 100 of logs of today", "tail", 220, 0}}},
		{corpus.Options{Records: 1_000_000, Services: 1, Seed: corpus.ReferenceSeed, From: rig.Start.Add(-week), Span: week}, []string{"--flush-size", "64KiB"}, []read{
			{"remote-w-1000", "remote: -w an id over 1,000 blobs", "iii-w", 900, 0}}},
	} {
		if !slices.ContainsFunc(part.rows, func(r read) bool { return d.rows.Choose(r.id) }) {
			continue
		}
		c, variants := d.corpus, d.variants
		if part.of.Records > 0 {
			c = must(rig.Generate(part.of, filepath.Join(d.dir, "remote.ndjson")))
			variants = must(answers.New(c, d.index.Seed)).Table()
		}
		d.far(ctx, c, variants, part.args, part.rows)
	}
}

// far loads a corpus into a new emulator, and measures rows through a proxy before each of its
// services. Without an emulator it says so. Its blobs are reached without the queue that tests share.
func (d *driver) far(ctx context.Context, c *rig.Corpus, variants map[string]*answers.Variant, args []string, rows []read) {
	// Accounts are in the order of the sides. Containers of one account have the tables of the newest
	// records in common, and a request costs the emulator time in proportion to the blobs of its account.
	accounts, stop, err := testenv.Start(len(d.sides))
	if err != nil {
		d.note("%s and others are not measured: %v", rows[0].id, err)
		return
	}
	defer stop()
	host := func(endpoint string) string { return strings.Split(endpoint, "/")[2] }
	blobs, tables := must(meter.New(accounts[0].Emulator)), must(meter.New(host(accounts[0].TableURL)))
	defer blobs.Close()
	defer tables.Close()
	through := strings.NewReplacer(host(accounts[0].BlobURL), blobs.Address(), host(accounts[0].TableURL), tables.Address())
	at := map[*side]place{} // by way of the proxies
	for i, s := range d.sides {
		d.say("load %d records into the emulator", c.Records)
		direct := place{"azure:logs", []string{"AZURE_STORAGE_CONNECTION_STRING=" + accounts[i].ConnectionString}, append([]string{"--wal", d.temp()}, args...)}
		d.load(ctx, s, direct, deliver(1000, c), nil)
		at[s] = place{store: direct.store, env: []string{through.Replace(direct.env[0])}}
	}
	const delay = 30 * time.Millisecond
	for _, r := range rows {
		d.row(r, variants[r.by], func(s *side) sample {
			undelayed := d.once(ctx, s, at[s], r.id, variants[r.by])
			take := func() []meter.Request { return slices.Concat(blobs.Take(), tables.Take()) }
			take()
			blobs.Delay(delay)
			tables.Delay(delay)
			m := d.once(ctx, s, at[s], r.id, variants[r.by])
			blobs.Delay(0)
			tables.Delay(0)
			requests, bytes := take(), int64(0)
			for _, q := range requests {
				bytes += q.Bytes
			}
			// The chain is the longest sequence of requests in which each began after the one before had ended.
			m.more = map[string]float64{"requests": float64(len(requests)), "chain": float64(meter.Chain(requests)), "bytes": float64(bytes),
				"undelayed_ms": undelayed.WallMS, "delay_ms": float64(delay.Milliseconds())}
			return m
		})
	}
}
