package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"blobtail/internal/dev/bench/report"
	"blobtail/internal/dev/bench/rig"
)

// overlapping measures -n 100 where ten blobs of each service have the whole last hour, as
// ten ingesters leave them before compaction. One ingester stores them in ten flushes.
func (b *bench) overlapping(ctx context.Context) error {
	if !b.o.rows.Choose("iv-overlapping") {
		return nil
	}
	const parts = 10
	dealt, err := b.deal(b.reference, b.reference.To.Add(-time.Hour), parts)
	if err != nil {
		return err
	}
	stores := map[*side]string{}
	for _, s := range b.sides {
		if stores[s], err = os.MkdirTemp(b.work, "overlapping-"); err != nil {
			return err
		}
		for _, c := range dealt {
			if _, err := b.load(ctx, s, "dir:"+stores[s], nil, 1000, nil, c); err != nil {
				return err
			}
		}
		hours, err := filepath.Glob(filepath.Join(stores[s], b.queries.service, "*/*/*/*"))
		if err != nil {
			return err
		}
		n, _, err := rig.BlobsOf(stores[s])
		if err != nil {
			return err
		}
		if len(hours) != 1 || n != parts*len(b.reference.Services) {
			return fmt.Errorf("%d blobs in %d periods of %s, not %d of each service in one", n, len(hours), b.queries.service, parts)
		}
	}
	r := b.queries.iv()
	r.id, r.name, r.reach, r.aim = "iv-overlapping", "iv: -n 100, with 10 overlapping ingesters", 16, 10
	return b.row(ctx, r, func(s *side) (sample, error) { return b.once(ctx, s, place{store: "dir:" + stores[s]}, r) })
}

// deal distributes the records since a time among files, one after another as cards.
func (b *bench) deal(c *rig.Corpus, since time.Time, parts int) ([]*rig.Corpus, error) {
	from := since.UTC().Format("2006-01-02T15:04:05")
	dealt := make([]*rig.Corpus, parts)
	out := make([]*bufio.Writer, parts)
	for i := range dealt {
		dealt[i] = &rig.Corpus{File: filepath.Join(b.work, fmt.Sprintf("part-%d.ndjson", i))}
		f, err := os.Create(dealt[i].File)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		out[i] = bufio.NewWriter(f)
	}
	n := 0
	for line, err := range rig.Lines(c.File) {
		if err != nil {
			return nil, err
		}
		r, err := b.parser.parse(line)
		if err != nil {
			return nil, err
		}
		if sortable(string(r.ts)) < from {
			continue
		}
		out[n%parts].Write(line)
		out[n%parts].WriteByte('\n')
		dealt[n%parts].Records++
		n++
	}
	var err error
	for _, w := range out {
		err = errors.Join(err, w.Flush())
	}
	return dealt, err
}

// compact measures compaction of a copy of the store: its cost, and the ratio.
func (b *bench) compact(ctx context.Context) error {
	if !b.o.rows.Choose("compact") {
		return nil
	}
	row := report.Row{ID: "compact-ratio", Name: "raw / stored, compacted", Command: "retention compact", Unit: "x", Reach: 5.19, Aim: 5.3, AtLeast: true, Records: b.o.records}
	for i, s := range b.sides {
		yard, err := b.yard(ctx)
		if err != nil {
			return err
		}
		m, err := b.compactOnce(ctx, s)
		if wrong := (*wrongError)(nil); errors.As(err, &wrong) {
			row.Wrong, err = wrong.Error(), nil
		}
		if err != nil {
			return err
		}
		m.YardS, m.CPUY = report.Round(yard), report.Round(m.CPUs.Median/float64(b.o.records)*1e6/yard)
		if i == 0 {
			row.Measured = m
		} else {
			row.Against = &m
		}
	}
	row.Note = "CPU and memory are those of the run that writes; cpu_y is for a million records"
	b.add(row)
	return nil
}

// compactOnce compacts a copy and reads all of it.
func (b *bench) compactOnce(ctx context.Context, s *side) (m report.Measured, err error) {
	store := filepath.Join(b.work, "compacted")
	defer os.RemoveAll(store)
	if err := rig.CopyStore(s.store, store); err != nil {
		return m, err
	}
	b.say("compact a copy of the store")
	for run := range 2 {
		// The first run writes, and the next one deletes the replaced blobs.
		out, u, errs, err := b.runner.Run(ctx, b.env, s.retention, "compact", "--store", "dir:"+store, "--grace", "0s")
		if err != nil {
			return m, err
		}
		if u.Code != 0 {
			return m, fmt.Errorf("retention compact: exit code %d: %s%s", u.Code, out, errs)
		}
		if run == 0 {
			m = report.Measured{Runs: 1, WallMS: spread([]float64{u.WallMS}), CPUs: spread([]float64{u.CPUs}), RSSMB: spread([]float64{u.RSSMB})}
		}
	}
	n, size, err := rig.BlobsOf(store)
	if err != nil {
		return m, err
	}
	if before, _, err := rig.BlobsOf(s.store); err != nil {
		return m, err
	} else if n > before {
		return m, fmt.Errorf("%d blobs after compaction, %d before: the replaced ones are still there", n, before)
	}
	m.Figure = report.SpreadOf([]float64{float64(b.reference.Bytes) / float64(size)})
	_, err = b.answered(ctx, s, place{store: "dir:" + store}, read{args: []string{"*"}, of: b.queries.everything})
	return m, err
}
