package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"blobtail/internal/dev/bench/report"
	"blobtail/internal/dev/bench/rig"
)

// The store of many blobs gets bodies of so many records. A body is just large enough for
// a blob of its own at the least flush size.
const (
	manyBodies  = 10_120 // some make a blob together
	perManyBlob = 210
)

// largest is the largest store, in reference corpora.
const largest = 10

// grow measures stores of one, four and ten times the reference corpus, and one of many
// blobs. Only this version is measured.
func (b *bench) grow(ctx context.Context) error {
	if !b.o.rows.Choose("growth") {
		return nil
	}
	parts := []*rig.Corpus{b.reference}
	for _, n := range []int{1, 4, largest} {
		for len(parts) < n {
			b.say("make part %d of a larger corpus", len(parts))
			c, err := b.tools.Generate(ctx, rig.Chunk(len(parts), b.o.records), b.work, fmt.Sprintf("chunk-%d", len(parts)))
			if err != nil {
				return err
			}
			defer os.Remove(c.File)
			parts = append(parts, c)
		}
		if err := b.point(ctx, report.Point{Records: n * b.o.records, Services: 8, Hours: 6 * n}, 1000, nil, parts...); err != nil {
			return err
		}
	}
	b.growthRow()
	return b.many(ctx)
}

// growthRow makes a row of the largest store's memory.
func (b *bench) growthRow() {
	last := b.report.Growth[len(b.report.Growth)-1]
	b.add(report.Row{ID: "ingest-rss-20", Name: "peak RSS of the ingester, 20 million records", Unit: "MB", Reach: 220, Aim: 150, Records: last.Records,
		Measured: report.Measured{Runs: 1, Figure: report.SpreadOf([]float64{last.RSSMB})}, Note: "one run"})
}

// many measures a store of 10,000 blobs of one service over 7 days.
func (b *bench) many(ctx context.Context) error {
	n := manyBodies * perManyBlob * b.o.records / rig.ReferenceRecords
	c, err := b.tools.Generate(ctx, rig.Plan{Records: n, ServiceCount: 1, Seed: 42, From: rig.ReferenceStart.Add(-7 * 24 * time.Hour), To: rig.ReferenceStart}, b.work, "many")
	if err != nil {
		return err
	}
	defer os.Remove(c.File)
	return b.point(ctx, report.Point{Records: n, Services: 1, Hours: 7 * 24}, perManyBlob, []string{"--flush-size", "64KiB"}, c)
}

// point loads corpora, which follow one another in time, into a fresh store, and measures
// reads of it: the window is in the first one, and the newest records are in the last.
func (b *bench) point(ctx context.Context, p report.Point, perRequest int, args []string, parts ...*rig.Corpus) error {
	first, err := b.queriesOf(parts[0])
	if err != nil {
		return err
	}
	last := first
	if len(parts) > 1 {
		if last, err = b.queriesOf(parts[len(parts)-1]); err != nil {
			return err
		}
	}
	store := filepath.Join(b.work, "grown")
	defer os.RemoveAll(store)
	if err := b.fill(ctx, &p, store, perRequest, args, parts); err != nil {
		return err
	}
	minutes := map[string][5]int{}
	for _, c := range parts {
		maps.Copy(minutes, c.PerMinute)
	}
	s := b.sides[0]
	at := place{store: "dir:" + store}
	if _, err := b.answered(ctx, s, at, read{args: b.minutes().args, minutes: minutes}); err != nil {
		return err
	}
	var err1, err2 error
	p.Window, err1 = b.wall(ctx, s, at, first.i())
	p.Newest, err2 = b.wall(ctx, s, at, last.iv())
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if p.Records == largest*b.o.records {
		v, err := b.startServer(ctx, store)
		if err != nil {
			return err
		}
		defer v.Kill()
		if _, v.to, err = parts[len(parts)-1].Span(); err != nil {
			return err
		}
		if err := b.firstRows(ctx, v, "page-20", p.Records, 2000); err != nil {
			return err
		}
	}
	b.report.Growth = append(b.report.Growth, p)
	b.say("%d records in %d blobs: %v Y, %v MB, ratio %v, i %v ms, iv %v ms", p.Records, p.Blobs, p.IngestY, p.RSSMB, p.Ratio, p.Window.Median, p.Newest.Median)
	return nil
}

// fill loads the store of a point, and measures that.
func (b *bench) fill(ctx context.Context, p *report.Point, store string, perRequest int, args []string, parts []*rig.Corpus) error {
	b.say("load %d records", p.Records)
	before, err := b.tools.Yardstick(ctx, parts[0].File, 1)
	if err != nil {
		return err
	}
	l, err := b.load(ctx, b.sides[0], "dir:"+store, nil, perRequest, args, parts...)
	if err != nil {
		return err
	}
	after, err := b.tools.Yardstick(ctx, parts[0].File, 1)
	if err != nil {
		return err
	}
	b.yards = append(b.yards, before, after)
	yard := (before + after) / 2
	p.YardS, p.RSSMB = report.Round(yard), report.Round(l.peak)
	p.IngestY = report.Round(cost{l, yard}.inYards(p.Records))
	blobs, stored, err := rig.BlobsOf(store)
	if err != nil {
		return err
	}
	raw := int64(0)
	for _, c := range parts {
		raw += c.Bytes
	}
	p.Blobs, p.Ratio = blobs, report.Round(float64(raw)/float64(stored))
	return nil
}

// wall measures the wall time of a read in ms, after a run that does not count.
func (b *bench) wall(ctx context.Context, s *side, at place, r read) (report.Spread, error) {
	var v []float64
	for run := range b.o.runs + 1 {
		u, err := b.answered(ctx, s, at, r)
		if err != nil {
			return report.Spread{}, err
		}
		if run > 0 {
			v = append(v, u.WallMS)
		}
	}
	return report.SpreadOf(v), nil
}
