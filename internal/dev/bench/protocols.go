package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"blobtail/internal/dev/bench/report"
	"blobtail/internal/dev/bench/rig"
)

// protocolRecords is the number of records of the reference corpus that are sent by each
// protocol, and protocolBody that of a request.
const (
	protocolRecords = 400_000
	protocolBody    = 1000
)

// protocols compares the cost of the protocols with that of the same records as NDJSON. All go
// through one client, in turn.
func (b *bench) protocols(ctx context.Context) error {
	const prefix = "protocol-"
	all := rig.Protocols()
	if !slices.ContainsFunc(all[1:], func(p rig.Protocol) bool { return b.o.rows.Choose(prefix + p.ID) }) {
		return nil
	}
	entries, err := rig.ReadEntries(b.reference.File, min(protocolRecords, b.o.records))
	if err != nil {
		return err
	}
	cpu := map[string][]float64{}
	for range b.o.rounds {
		for _, p := range all {
			c, err := b.sendBy(ctx, p, entries)
			if err != nil {
				return fmt.Errorf("%s: %w", p.ID, err)
			}
			cpu[p.ID] = append(cpu[p.ID], c)
		}
	}
	// The highest costs, as multiples of that of NDJSON.
	reach := map[string]float64{"loki": 1.3, "bulk": 1.3, "otlp": 1.6}
	for _, p := range all[1:] {
		var ratios []float64
		for round, c := range cpu[p.ID] {
			ratios = append(ratios, c/cpu["ndjson"][round])
		}
		b.add(report.Row{ID: prefix + p.ID, Name: "ingest by " + p.ID + ", of the same records as NDJSON", Unit: "x",
			Reach: reach[p.ID], Records: len(entries),
			Measured: report.Measured{Runs: len(ratios), Figure: report.SpreadOf(ratios), CPUs: spread(cpu[p.ID])}})
	}
	return nil
}

// sendBy sends entries to a new ingester, flushes, and returns the CPU seconds of a million.
// All have to be in the store then.
func (b *bench) sendBy(ctx context.Context, p rig.Protocol, entries []rig.Entry) (cpu float64, err error) {
	store, err := os.MkdirTemp(b.work, "store-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(store)
	g, err := rig.StartIngester(ctx, b.sides[0].ingest, b.env, "--store", "dir:"+store)
	if err != nil {
		return 0, err
	}
	defer g.Kill()
	idle, _, err := g.Usage()
	if err != nil {
		return 0, err
	}
	bodies := p.Bodies(entries, protocolBody)
	if err := rig.Send(ctx, "http://"+g.Listen+p.Path, p.Header(), 1, bodies); err != nil {
		return 0, err
	}
	if err := g.Flush(); err != nil {
		return 0, err
	}
	if cpu, _, err = g.Usage(); err != nil {
		return 0, err
	}
	if err := g.Stop(); err != nil {
		return 0, err
	}
	out, _, _, err := b.runner.Run(ctx, b.env, b.sides[0].logquery, "*", "--count", "--store", "dir:"+store, "--from", "2020-01-01")
	if err != nil {
		return 0, err
	}
	if n := strings.TrimSpace(string(out)); n != strconv.Itoa(len(entries)) {
		return 0, fmt.Errorf("the store has %s records, not %d", n, len(entries))
	}
	return (cpu - idle) / float64(len(entries)) * 1e6, nil
}
