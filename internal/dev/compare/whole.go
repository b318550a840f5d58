package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"blobtail/internal/dev/bench/report"
	"blobtail/internal/dev/bench/rig"
	"blobtail/internal/dev/compare/result"
)

// pair is a whole corpus as both sides have stored it. VictoriaLogs is running over its store.
type pair struct {
	corpus *corpus
	ours   string // the store
	theirs *other
}

// wholeRows are the rows of a whole corpus.
type wholeRows struct{ ingest, memory, flushed, compacted, compaction, tables result.Row }

// rowsOf names the rows of a corpus.
func (c *comparison) rowsOf(of *corpus) (w wholeRows, err error) {
	ours, theirs, err := c.commandsOf(rig.Protocols()[0])
	row := func(id, group, title, unit string) result.Row {
		return result.Row{ID: id + of.suffix(), Group: group, Title: title, Unit: unit, Corpus: of.Name, OursCommand: ours, TheirsCommand: theirs}
	}
	w = wholeRows{
		ingest:     row("ingest.ndjson.1000", "ingest", "jsonline, 1,000 records a request", "CPU s a million"),
		memory:     row("memory.ingest", "memory", "peak memory of ingest", "MB"),
		flushed:    row("storage.flushed", "storage", "raw / stored, as flushed", "times smaller"),
		compacted:  row("storage.compacted", "storage", "raw / stored, compacted", "times smaller"),
		compaction: row("storage.compaction", "storage", "compaction, CPU", "CPU s a million"),
		tables:     row("storage.tables", "storage", "tables of the newest records", "MB"),
	}
	w.memory.Note = mapped
	w.ingest.Note = report.Thousands(of.Records) + " records"
	for _, r := range []*result.Row{&w.flushed, &w.compacted} {
		r.More = true
		r.OursCommand, r.TheirsCommand = "find DIR -name '*.log' -printf '%s\\n'", "find DIR -type f -printf '%s\\n'"
	}
	w.flushed.Note = "ours: blobs with filters and indexes; theirs: all files after force_flush"
	w.compacted.Note = "ours: blobs after retention compact; theirs: all files after force_merge"
	w.compaction.OursCommand, w.compaction.TheirsCommand = "retention compact --store dir:DIR --grace 0s", "curl http://VICTORIA/internal/force_merge"
	w.tables.Note = "beside the blobs, for reads of the tail; old records have none"
	w.tables.OursCommand, w.tables.TheirsCommand = "du -b DIR/.tables", ""
	return w, err
}

// whole loads a whole corpus into both sides, several times. Of the last loads it measures the
// storage, before and after compaction, and reads between the two.
func (c *comparison) whole(ctx context.Context, of *corpus, reads func(context.Context, pair) error) error {
	w, err := c.rowsOf(of)
	if err != nil {
		return err
	}
	stored := c.o.rows.Choose(w.flushed.ID, w.compacted.ID, w.compaction.ID, w.tables.ID)
	rounds := c.o.size.loads
	if !c.o.rows.Choose(w.ingest.ID, w.memory.ID) {
		rounds = 1
	}
	if rounds == 1 && !stored && (reads == nil || len(c.questions()) == 0) {
		return nil
	}
	c.say("load all %d records of %s, %d times into each", of.Records, of.Name, rounds)
	p, err := c.loadWhole(ctx, of, rounds, &w)
	if err != nil {
		return err
	}
	defer os.RemoveAll(p.ours)
	defer os.RemoveAll(p.theirs.dir)
	defer p.theirs.stop(ctx)
	if w.ingest.Ours != nil {
		c.add(w.ingest, w.memory)
	}
	c.add(w.flushed, w.tables)
	if reads != nil {
		if err := reads(ctx, p); err != nil {
			return err
		}
	}
	if !c.o.rows.Choose(w.compacted.ID, w.compaction.ID) {
		return nil
	}
	if err := c.compact(ctx, p, &w); err != nil {
		return err
	}
	c.add(w.compacted, w.compaction)
	return nil
}

// loadWhole loads a corpus, and keeps the last store of each side.
func (c *comparison) loadWhole(ctx context.Context, of *corpus, rounds int, w *wholeRows) (p pair, err error) {
	p.corpus = of
	d := delivery{protocol: rig.Protocols()[0], connections: 8, want: of.all, corpus: of}
	if d.bodies, err = linesOf(of.file, of.Records, 1000); err != nil {
		return p, err
	}
	var theirs string
	err = inTurn(rounds, c.late, func(last bool) error {
		store, err := c.wholeOurs(ctx, d, w)
		if err != nil {
			return ofSide("blobtail", err)
		}
		if last {
			p.ours = store
			return nil
		}
		return os.RemoveAll(store)
	}, func(last bool) error {
		dir, err := c.wholeTheirs(ctx, d, w)
		if err != nil {
			return ofSide("VictoriaLogs", err)
		}
		if last {
			theirs = dir
			return nil
		}
		return os.RemoveAll(dir)
	})
	if err != nil {
		return p, err
	}
	if p.theirs, err = c.startTheirs(ctx, theirs); err != nil {
		return p, err
	}
	// Its merges are over before it is asked.
	if err := p.theirs.v.Rest(ctx); err != nil {
		return p, errors.Join(ofSide("VictoriaLogs", err), p.theirs.stop(ctx))
	}
	return p, nil
}

// wholeOurs loads a whole corpus into a store of ours, and adds the figures to the rows.
func (c *comparison) wholeOurs(ctx context.Context, d delivery, w *wholeRows) (store string, err error) {
	s, err := c.startOurs(ctx)
	if err != nil {
		return "", err
	}
	defer s.g.Kill()
	at, err := d.load(ctx, s)
	if err = ended(ctx, s, err); err != nil {
		return "", err
	}
	_, size, err := rig.BlobsOf(s.store)
	if err != nil {
		return "", err
	}
	tables, err := bytesUnder(filepath.Join(s.store, ".tables"))
	if err != nil {
		return "", err
	}
	log, err := bytesUnder(filepath.Join(s.store, ".wal"))
	if err != nil {
		return "", err
	}
	c.log = max(c.log, log)
	w.ingest.Ours, w.memory.Ours = append(w.ingest.Ours, at.cpu), append(w.memory.Ours, at.peak)
	w.flushed.Ours, w.tables.Ours = append(w.flushed.Ours, float64(d.corpus.Bytes)/float64(size)), append(w.tables.Ours, float64(tables)/1e6)
	return s.store, nil
}

// wholeTheirs loads a whole corpus into a directory of VictoriaLogs, and adds the figures to the rows.
func (c *comparison) wholeTheirs(ctx context.Context, d delivery, w *wholeRows) (dir string, err error) {
	if dir, err = os.MkdirTemp(c.work, "theirs-"); err != nil {
		return "", err
	}
	s, err := c.startTheirs(ctx, dir)
	if err != nil {
		return "", err
	}
	at, err := d.load(ctx, s)
	var size int64
	if err == nil {
		size, err = s.stored(ctx)
	}
	if err = ended(ctx, s, err); err != nil {
		return "", err
	}
	w.ingest.Theirs, w.memory.Theirs = append(w.ingest.Theirs, at.cpu), append(w.memory.Theirs, at.peak)
	w.flushed.Theirs = append(w.flushed.Theirs, float64(d.corpus.Bytes)/float64(size))
	return dir, nil
}

// compact measures the storage after compaction. Ours is that of a copy, and theirs is in place.
func (c *comparison) compact(ctx context.Context, p pair, w *wholeRows) error {
	c.say("compact both")
	ours, cpu, err := c.compactOurs(ctx, p)
	if err != nil {
		return ofSide("blobtail", err)
	}
	records := float64(p.corpus.Records) / 1e6
	w.compacted.Ours, w.compaction.Ours = []float64{float64(p.corpus.Bytes) / float64(ours)}, []float64{cpu / records}
	before, _, err := rig.UsageOf(p.theirs.pid())
	if err != nil {
		return err
	}
	if err := p.theirs.v.Merge(ctx); err != nil {
		return err
	}
	after, _, err := rig.UsageOf(p.theirs.pid())
	if err != nil {
		return err
	}
	size, err := p.theirs.stored(ctx)
	if err != nil {
		return err
	}
	h := p.corpus.all.hold()
	if err := p.theirs.records(ctx, h, "ndjson", p.corpus.from); err != nil {
		return err
	}
	if err := h.finish(); err != nil {
		return ofSide("VictoriaLogs, merged", err)
	}
	w.compacted.Theirs, w.compaction.Theirs = []float64{float64(p.corpus.Bytes) / float64(size)}, []float64{(after - before) / records}
	return nil
}

// compactOurs compacts a copy of the store, and returns the bytes of its blobs, and CPU seconds.
func (c *comparison) compactOurs(ctx context.Context, p pair) (size int64, cpu float64, err error) {
	store := filepath.Join(c.work, "compacted")
	defer os.RemoveAll(store)
	if err := rig.CopyStore(p.ours, store); err != nil {
		return 0, 0, err
	}
	before, _, err := rig.BlobsOf(p.ours)
	if err != nil {
		return 0, 0, err
	}
	for range 2 { // the first run writes, and the next one deletes the replaced blobs
		out, u, errs, err := c.runner.Run(ctx, c.env, c.ours("retention"), "compact", "--store", "dir:"+store, "--grace", "0s")
		if err != nil {
			return 0, 0, err
		}
		if u.Code != 0 {
			return 0, 0, fmt.Errorf("retention compact: exit code %d: %s%s", u.Code, out, errs)
		}
		cpu += u.CPUs
	}
	n, size, err := rig.BlobsOf(store)
	if err != nil {
		return 0, 0, err
	}
	if n > before {
		return 0, 0, fmt.Errorf("%d blobs after compaction, %d before: the replaced ones are still there", n, before)
	}
	h := p.corpus.all.hold()
	if err := c.stored(ctx, h, c.canon, store); err != nil {
		return 0, 0, err
	}
	return size, cpu, h.finish()
}
