package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"blobtail/internal/dev/bench/answers"
	"blobtail/internal/dev/bench/result"
	"blobtail/internal/dev/bench/rig"
	"blobtail/internal/dev/corpus"
)

// log is a corpus that all sides store, as lines of NDJSON with the times of six hours.
type log struct {
	result.Corpus
	text   []byte
	all    answers.Answer
	suffix string // of the IDs of its rows
}

// logOf reads a corpus.
func (d *driver) logOf(of result.Corpus, file, suffix string) *log {
	text := must(rig.Map(file))
	return &log{of, text, must(answers.AnswerOfLines(d.index.Form, text)), suffix}
}

// compare measures the rows of docs/measured/comparison.md.
func (d *driver) compare(ctx context.Context) {
	d.say("build VictoriaLogs")
	theirs := &d.result.Theirs
	var err error
	d.victoria, theirs.Version, err = rig.InstallVictoria(ctx, ".", d.dir)
	check(err)
	theirs.Name, theirs.Durability = "VictoriaLogs", "is in memory; a file has it within 5 s (`-inmemoryDataFlushInterval`)"
	theirs.Commands = []string{"victoria-logs -storageDataPath=DIR -retentionPeriod=100y -futureRetention=100y"}
	d.sides = append(d.sides, &side{name: "VictoriaLogs", theirs: true})
	made := d.logOf(d.result.Corpora[0], d.corpus.File, "")
	d.protocols(ctx, made)
	if logs := must(filepath.Glob(filepath.Join(d.loghub, "*.ndjson"))); len(logs) == 0 {
		d.note("%q has no logs of loghub, so the second corpus is left out.", d.loghub)
	} else {
		d.say("make the corpus of loghub")
		file := filepath.Join(d.dir, "loghub.ndjson")
		hub := d.logOf(must(repeat(file, logs, d.size.repeats)), file, ".loghub")
		d.result.Corpora = append(d.result.Corpora, hub.Corpus)
		d.whole(ctx, hub, nil)
	}
	d.whole(ctx, made, d.reads)
}

// protocols measures ingest of the first records of the reference corpus, by each protocol.
func (d *driver) protocols(ctx context.Context, made *log) {
	n, rounds, off := min(d.size.protocols, made.Records), d.size.rounds, []string{"--no-flush-filters"}
	all := rig.Protocols()
	for _, r := range []struct {
		title, kind                   string
		protocol                      rig.Protocol
		records, per, clients, rounds int
		args                          []string
		reach                         float64 // Y, for the table
	}{
		{"jsonline, 1,000 records a request, without filters", ".plain", all[0], d.size.plain, 1000, 8, d.size.loads, off, 2.0},
		{"jsonline, 100 records a request", "", all[0], n, 100, 8, rounds, nil, 2.65},
		{"jsonline, 1 record a request, 64 connections", "", all[0], d.size.single, 1, 64, d.size.singles, nil, 0},
		{"Loki protobuf, 1,000 records a request", "", all[1], n, 1000, 8, rounds, nil, 3.1},
		{"Elasticsearch `_bulk`, 1,000 records a request", "", all[2], n, 1000, 8, rounds, nil, 3.1},
		{"OTLP protobuf, 1,000 records a request", "", all[3], n, 1000, 8, rounds, nil, 3.8},
	} {
		row := result.Row{ID: fmt.Sprintf("ingest.%s.%d%s", r.protocol.ID, r.per, r.kind), Group: "ingest", Title: r.title, Unit: d.unit(), Corpus: made.Name,
			Reach: r.reach, Note: result.Thousands(r.records) + " records"}
		if r.records == 0 || !d.rows.Choose(row.ID) {
			continue
		}
		d.say("%s: %d records", row.ID, r.records)
		of := delivery{r.protocol, corpus.Bodies(made.text, r.per)[:r.records/r.per], r.clients, r.records}
		want := must(answers.AnswerOfLines(d.index.Form, of.bodies...))
		for i := range of.bodies {
			of.bodies[i] = must(r.protocol.Encode(of.bodies[i]))
		}
		row.OursCommand, row.TheirsCommand = d.commands(r.protocol)
		eachRound(r.rounds, d.late, d.sides, func(_ int, _ bool, s *side) {
			dir := d.temp()
			l, _ := d.verified(ctx, s, place{store: "dir:" + dir, args: r.args}, of, want)
			d.cost(s, &row, l)
			check(os.RemoveAll(dir))
		})
		d.add(row)
	}
}

// unit is that of the cost of ingest: the table has multiples of the yardstick.
func (d *driver) unit() string {
	if d.excerpt != nil {
		return "Y"
	}
	return "CPU s a million"
}

// yard measures the yardstick now: CPU seconds of a million records.
func (d *driver) yard() float64 {
	y := must(corpus.Yardstick(d.excerpt, 3))
	d.yards = append(d.yards, y)
	return y
}

// cost adds the cost of a load to a row.
func (d *driver) cost(s *side, row *result.Row, l load) {
	if d.excerpt == nil {
		s.add(row, l.cpu)
		return
	}
	yard := d.yard()
	s.add(row, l.cpu/yard)
	d.also(row.ID, s, map[string]float64{"cpu_s": l.cpu, "yard_s": yard, "peak_rss_mb": l.peak, "wall_ms": l.took.Seconds() * 1000,
		"accepted_mb_per_s": float64(l.sent.Bytes) / 1e6 / l.sent.Seconds, "request_p50_ms": l.sent.P50MS, "request_p99_ms": l.sent.P99MS})
}

// verified loads records into a fresh store, holds all that it has against the right ones, and returns
// the bytes of its files: of ours those of blobs.
func (d *driver) verified(ctx context.Context, s *side, at place, of delivery, want answers.Answer) (l load, size int64) {
	dir := at.store[len("dir:"):]
	if s.bin == "" {
		l = d.load(ctx, s, at, of, func(v running) {
			d.theirsStored(ctx, v, of.protocol.ID, want)
			size = theirSize(ctx, v.(*rig.Victoria), dir)
		})
		return l, size
	}
	l = d.load(ctx, s, at, of, nil)
	d.stored(ctx, s, dir, of.protocol.ID, want)
	d.emptied = max(d.emptied, sizeOf(filepath.Join(dir, ".wal")))
	_, size = blobsOf(dir)
	return l, size
}

// commands are those that send by a protocol.
func (d *driver) commands(p rig.Protocol) (ours, theirs string) {
	path, header := rig.VictoriaInsert(p.ID, d.streams)
	const send = "curl --data-binary @BODY -H 'Content-Type: %s' %s; curl %s"
	return fmt.Sprintf(send, p.ContentType, "http://INGEST"+p.Path, "-X POST http://ADMIN/flush"),
		fmt.Sprintf(send, header.Get("Content-Type"), "'http://VICTORIA"+path+"'", "http://VICTORIA/internal/force_flush")
}

// mapped is the note of rows of memory.
const mapped = "VmHWM of the server. VictoriaLogs maps its files, so those parts count that it has touched; " +
	"blobtail reads its blobs, and the cache of the system counts for nobody"

// wholeRows are the rows of a whole corpus.
type wholeRows struct{ ingest, memory, flushed, tables, compacted, compaction result.Row }

// rowsOf names the rows of a corpus.
func (d *driver) rowsOf(of *log) (w wholeRows) {
	ours, theirs := d.commands(rig.Protocols()[0])
	row := func(id, title, unit string, reach float64, note, ours, theirs string) result.Row {
		group, _, _ := bytes.Cut([]byte(id), []byte("."))
		return result.Row{ID: id + of.suffix, Group: string(group), Title: title, Unit: unit, Corpus: of.Name, Note: note,
			OursCommand: ours, TheirsCommand: theirs, More: unit == "times smaller", Reach: reach}
	}
	const blobs, files = "find DIR -name '*.log' -printf '%s\\n'", "find DIR -type f -printf '%s\\n'"
	return wholeRows{
		row("ingest.ndjson.1000", "jsonline, 1,000 records a request", d.unit(), 2.35, result.Thousands(of.Records)+" records", ours, theirs),
		row("memory.ingest", "peak memory of ingest", "MB", 200, mapped, ours, theirs),
		row("storage.flushed", "raw / stored, as flushed", "times smaller", 4.5, "ours: blobs with filters and indexes; theirs: all files after force_flush", blobs, files),
		row("storage.tables", "tables of the newest records", "MB", 0, "beside the blobs, for reads of the tail; old records have none", "du -b DIR/.tables", ""),
		row("storage.compacted", "raw / stored, compacted", "times smaller", 5.19, "ours: blobs after retention compact; theirs: all files after force_merge", blobs, files),
		row("storage.compaction", "compaction, CPU", "CPU s a million", 0, "", "retention compact --store dir:DIR --grace 0s", "curl http://VICTORIA/internal/force_merge"),
	}
}

// whole loads a whole corpus into each side, several times. Of the last loads it measures the storage,
// before and after compaction, and has reads measure between the two.
func (d *driver) whole(ctx context.Context, of *log, reads func(context.Context, *rig.Victoria)) {
	w, rounds := d.rowsOf(of), d.size.loads
	if !d.rows.Choose(w.ingest.ID, w.memory.ID) {
		rounds = 1
	}
	if rounds == 1 && !d.rows.Choose(w.flushed.ID, w.compacted.ID, w.compaction.ID, w.tables.ID) && (reads == nil || !d.reading()) {
		return
	}
	d.say("load all %d records of %s, %d times into each", of.Records, of.Name, rounds)
	all := delivery{rig.Protocols()[0], corpus.Bodies(of.text, 1000), 8, of.Records}
	eachRound(rounds, d.late, d.sides, func(_ int, last bool, s *side) {
		dir := d.temp()
		l, size := d.verified(ctx, s, place{store: "dir:" + dir}, all, of.all)
		d.cost(s, &w.ingest, l)
		s.add(&w.memory, l.peak)
		s.add(&w.flushed, float64(of.Bytes)/float64(size))
		if s.bin != "" {
			s.add(&w.tables, float64(sizeOf(filepath.Join(dir, ".tables")))/1e6)
		}
		if last {
			s.store = dir
		} else {
			check(os.RemoveAll(dir))
		}
	})
	d.add(w.ingest, w.memory, w.flushed, w.tables)
	var v *rig.Victoria
	for _, s := range d.sides {
		defer os.RemoveAll(s.store)
		if s.bin == "" {
			v = must(rig.StartVictoria(ctx, d.victoria, s.store))
			defer v.Kill()
			check(v.Rest(ctx)) // its merges are over before it is asked
		}
	}
	if reads != nil {
		reads(ctx, v)
	}
	if d.rows.Choose(w.compacted.ID, w.compaction.ID) && (v != nil || !d.quick) {
		d.say("compact all")
		for _, s := range d.sides {
			size, cpu := d.compact(ctx, s, v, of.all)
			s.add(&w.compacted, float64(of.Bytes)/float64(size))
			s.add(&w.compaction, perMillion(cpu, of.Records))
		}
		d.add(w.compacted, w.compaction)
	}
}

// compact returns the bytes of a side's files after compaction, and its CPU seconds. Ours is that of a
// copy, and VictoriaLogs' is in place.
func (d *driver) compact(ctx context.Context, s *side, v *rig.Victoria, want answers.Answer) (size int64, cpu float64) {
	if s.bin != "" {
		return d.compactCopy(ctx, s, want)
	}
	before, _, err := v.Usage()
	check(err)
	check(v.Merge(ctx))
	after, _, err := v.Usage()
	check(err)
	size = theirSize(ctx, v, s.store)
	d.theirsStored(ctx, v, "ndjson", want)
	return size, after - before
}

// left is the time for reads in a run.
func (d *driver) left() time.Duration {
	return max(time.Minute, d.size.budget*9/10-time.Since(d.begun))
}
