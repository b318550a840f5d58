package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"blobtail/internal/dev/bench/report"
	"blobtail/internal/dev/bench/rig"
)

// load is an ingest run.
type load struct {
	cpu, peak float64       // CPU seconds, and MB
	took      time.Duration // from the first request to the end of the flush
	sent      rig.Sent      // of the last corpus
	flush     time.Duration // how long /flush took
	blobs     int
	stored    int64
}

// ingestRow is a way of ingesting the reference corpus.
type ingestRow struct {
	id, name   string
	perRequest int
	filters    bool // false: without them, if the ingester has a flag for that
	reach, aim float64
}

// cost is one measured ingest run.
type cost struct {
	load
	yard float64
}

// inYards is the cost of a million records as a multiple of the yardstick.
func (c cost) inYards(records int) float64 { return c.cpu / float64(records) * 1e6 / c.yard }

// load starts an ingester on a store, sends corpora to it and flushes. The ingester is
// stopped afterwards.
func (b *bench) load(ctx context.Context, s *side, store string, env []string, perRequest int, args []string, parts ...*rig.Corpus) (l load, err error) {
	g, err := rig.StartIngester(ctx, s.ingest, append(b.env[:len(b.env):len(b.env)], env...), append([]string{"--store", store}, args...)...)
	if err != nil {
		return l, err
	}
	defer g.Kill()
	idle, _, err := g.Usage()
	if err != nil {
		return l, err
	}
	begun := time.Now()
	for _, c := range parts {
		if l.sent, err = b.tools.Post(ctx, c.File, "http://"+g.Listen+"/ingest", perRequest, c.Records); err != nil {
			return l, err
		}
	}
	all := time.Now()
	if err := g.Flush(); err != nil {
		return l, err
	}
	l.took, l.flush = time.Since(begun), time.Since(all)
	if l.cpu, l.peak, err = g.Usage(); err != nil {
		return l, err
	}
	l.cpu -= idle
	return l, g.Stop()
}

// ingest measures the rows of ingest. The last store of each side stays for the reads.
func (b *bench) ingest(ctx context.Context) error {
	rows := b.ingestRows()
	costs := map[*side]map[string][]cost{}
	for _, s := range b.sides {
		costs[s] = map[string][]cost{}
	}
	rounds := b.o.rounds
	if !b.measuresIngest() {
		rows, rounds = rows[:1], 1 // for the store
	}
	wrong := map[string]error{}
	err := b.inTurn(rounds, func(_ int, s *side) error {
		for _, row := range rows {
			c, err := b.ingestOnce(ctx, s, row)
			if answer := (*wrongError)(nil); errors.As(err, &answer) {
				wrong[row.id], err = answer, nil
			}
			if err != nil {
				return err
			}
			costs[s][row.id] = append(costs[s][row.id], c)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if b.measuresIngest() {
		for _, row := range rows {
			b.add(b.ingestResult(row, costs, wrong[row.id]))
		}
		b.ingestDerived(rows, costs)
	}
	if b.o.profile != "" {
		return b.profile(ctx)
	}
	return nil
}

// ingestRows returns the rows in the order of their runs. The first has the ingester's own
// settings, and its stores are read later.
func (b *bench) ingestRows() []ingestRow {
	all := ingestRow{id: "ingest-1000-filters", name: "ingest until stored, 1,000 a request, with filters", perRequest: 1000, filters: true}
	if b.sides[0].off == "" {
		all.id, all.name, all.reach, all.aim = "ingest-1000", "ingest until stored, 1,000 a request", 2.0, 1.8
		return []ingestRow{all, {id: "ingest-100", name: "the same, 100 a request", perRequest: 100, filters: true, reach: 2.3, aim: 1.8}}
	}
	return []ingestRow{all,
		{id: "ingest-1000", name: "ingest until stored, 1,000 a request, without filters", perRequest: 1000, reach: 2.0, aim: 1.8},
		{id: "ingest-100", name: "the same, 100 a request", perRequest: 100, reach: 2.3, aim: 1.8}}
}

// measuresIngest reports whether the rows of ingest are asked for, which depend on each
// other. If not, the reference corpus is only loaded.
func (b *bench) measuresIngest() bool {
	return b.o.rows.Choose("ingest-1000", "ingest-1000-filters", "ingest-100", "ingest-filters-add", "ingest-rss", "ingest-ratio")
}

// ingestOnce loads the reference corpus into a fresh store and counts it there.
func (b *bench) ingestOnce(ctx context.Context, s *side, row ingestRow) (c cost, err error) {
	if c.yard, err = b.tools.Yardstick(ctx, b.reference.File, 1); err != nil {
		return c, err
	}
	b.yards = append(b.yards, c.yard)
	store, err := os.MkdirTemp(b.work, "store-")
	if err != nil {
		return c, err
	}
	var args []string
	if !row.filters && s.off != "" {
		args = []string{s.off}
	}
	if c.load, err = b.load(ctx, s, "dir:"+store, nil, row.perRequest, args, b.reference); err != nil {
		return c, err
	}
	if c.blobs, c.stored, err = rig.BlobsOf(store); err != nil {
		return c, err
	}
	_, err = b.answered(ctx, s, place{store: "dir:" + store}, b.minutes())
	if row.id == b.ingestRows()[0].id {
		store, s.store = s.store, store
	}
	if store != "" {
		err = errors.Join(err, os.RemoveAll(store))
	}
	return c, err
}

// ingestResult makes the row of the measured costs.
func (b *bench) ingestResult(row ingestRow, costs map[*side]map[string][]cost, wrong error) report.Row {
	r := report.Row{ID: row.id, Name: row.name, Unit: "Y", Reach: row.reach, Aim: row.aim, Records: b.o.records}
	if wrong != nil {
		r.Wrong = wrong.Error()
	}
	r.Note = speed(costs[b.sides[0]][row.id])
	b.perSide(&r, func(s *side) (report.Measured, []float64) {
		var inYards, cpu, peak, wall, yard []float64
		for _, c := range costs[s][row.id] {
			inYards = append(inYards, c.inYards(b.o.records))
			cpu, peak, wall = append(cpu, c.cpu/float64(b.o.records)*1e6), append(peak, c.peak), append(wall, c.took.Seconds()*1000)
			yard = append(yard, c.yard)
		}
		m := report.Measured{Runs: len(cpu), Figure: report.SpreadOf(inYards), CPUs: spread(cpu), RSSMB: spread(peak), WallMS: spread(wall)}
		m.YardS, m.CPUY = report.SpreadOf(yard).Median, m.Figure.Median
		return m, inYards
	})
	return r
}

// speed tells how fast ingest looked from outside, in medians.
func speed(costs []cost) string {
	median := func(of func(cost) float64) float64 {
		var v []float64
		for _, c := range costs {
			v = append(v, of(c))
		}
		return report.SpreadOf(v).Median
	}
	return fmt.Sprintf("%.0f records/s accepted; requests took %v ms (p99 %v ms), the flush %v s",
		median(func(c cost) float64 { return c.sent.PerSecond }), median(func(c cost) float64 { return c.sent.P50MS }),
		median(func(c cost) float64 { return c.sent.P99MS }), median(func(c cost) float64 { return c.flush.Seconds() }))
}

// perSide fills a row with the measurements and the figures of each side.
func (b *bench) perSide(r *report.Row, of func(*side) (report.Measured, []float64)) {
	m, own := of(b.sides[0])
	r.Measured = m
	if len(b.sides) > 1 {
		m, against := of(b.sides[1])
		r.Against = &m
		r.Compare(own, against)
	}
}

// ingestDerived adds the rows that follow from those of ingest: filters, memory and ratio.
func (b *bench) ingestDerived(rows []ingestRow, costs map[*side]map[string][]cost) {
	derive := func(r report.Row, value func(round int, of map[string][]cost) float64) {
		r.Records = b.o.records
		b.perSide(&r, func(s *side) (report.Measured, []float64) {
			var v []float64
			for round := range costs[s][rows[0].id] {
				v = append(v, value(round, costs[s]))
			}
			return report.Measured{Runs: len(v), Figure: report.SpreadOf(v)}, v
		})
		b.add(r)
	}
	own := rows[0].id
	if own == "ingest-1000-filters" {
		derive(report.Row{ID: "ingest-filters-add", Name: "what filters add", Unit: "Y", Reach: 0.35, Aim: 0.25}, func(round int, of map[string][]cost) float64 {
			return of[own][round].inYards(b.o.records) - of["ingest-1000"][round].inYards(b.o.records)
		})
	}
	derive(report.Row{ID: "ingest-rss", Name: "peak RSS of the ingester, 2 million records", Unit: "MB", Reach: 200, Aim: 150}, func(round int, of map[string][]cost) float64 {
		return of[own][round].peak
	})
	derive(report.Row{ID: "ingest-ratio", Name: "raw / stored", Unit: "x", Reach: 4.5, Aim: 4.8, AtLeast: true}, func(round int, of map[string][]cost) float64 {
		return float64(b.reference.Bytes) / float64(of[own][round].stored)
	})
}

func spread(v []float64) *report.Spread { s := report.SpreadOf(v); return &s }

// profile writes a CPU profile of an ingester that is measured for nothing else.
func (b *bench) profile(ctx context.Context) error {
	b.say("profile an ingester")
	g, err := rig.StartIngester(ctx, b.sides[0].ingest, b.env, "--store", "dir:"+filepath.Join(b.work, "profiled"))
	if err != nil {
		return err
	}
	defer g.Kill()
	done := make(chan error, 1)
	const seconds = 10 // longer than the run; an idle process adds no samples
	go func() { done <- g.Profile(seconds, b.o.profile) }()
	_, err = b.tools.Post(ctx, b.reference.File, "http://"+g.Listen+"/ingest", 1000, b.o.records)
	if err == nil {
		err = g.Flush()
	}
	return errors.Join(err, <-done, g.Stop())
}
