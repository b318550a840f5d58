package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"time"

	"blobtail/internal/dev/bench/answers"
	"blobtail/internal/dev/bench/result"
	"blobtail/internal/dev/bench/rig"
	"blobtail/internal/dev/corpus"
)

// table measures the rows of docs/measured/performance.md.
func (d *driver) table(ctx context.Context) {
	made := d.logOf(d.result.Corpora[0], d.corpus.File, "")
	d.excerpt = made.text[:1+bytes.LastIndexByte(made.text[:min(64<<20, len(made.text))], '\n')]
	d.variants = d.index.Table()
	d.protocols(ctx, made)
	d.whole(ctx, made, func(ctx context.Context, _ *rig.Victoria) {
		d.local(ctx)
		d.served(ctx)
		d.page(ctx, d.sides[0].store, "page", 0, d.corpus)
	})
	d.overlapping(ctx)
	if !d.quick {
		d.remote(ctx)
		if d.growth && d.rows.Choose("growth") {
			d.grow(ctx)
		}
	}
	if d.profile != "" {
		d.profiled(ctx)
	}
}

// tableRow begins a row of the table.
func tableRow(id, title, unit string, reach float64, records int) result.Row {
	return result.Row{ID: id, Group: "table", Title: title, Unit: unit, Corpus: "reference", Reach: reach, Records: records}
}

// profiled writes a CPU profile of an ingester that is measured for nothing else.
func (d *driver) profiled(ctx context.Context) {
	d.say("profile an ingester")
	of := deliver(1000, d.corpus)
	g := must(rig.StartIngester(ctx, d.sides[0].command("ingest"), d.env, "--store", "dir:"+filepath.Join(d.dir, "profiled")))
	defer g.Kill()
	done := make(chan error, 1)
	const seconds = 10 // longer than the run; an idle process adds no samples
	go func() { done <- g.Profile(ctx, seconds, d.profile) }()
	must(corpus.Post(ctx, g.URL()+of.protocol.Path, of.protocol.Header(), of.connections, of.bodies))
	check(g.Flush(ctx))
	check(<-done)
}

// read is a row that runs logquery.
type read struct {
	id, title, by string  // by is the name of the variant; "": logquery --version
	reach         float64 // ms; of i it is the quotient of the wall times of it and of --version, which runs before it
	memory        float64 // adds a row for the peak RSS, to be at most so many MB; 0: none
}

// local measures the reads of the dir store, and --version alone.
func (d *driver) local(ctx context.Context) {
	for _, r := range []read{
		{"version", "logquery --version, the cost of a start", "", 0, 0},
		{"i", "i: 2 min of one service, error and critical, times --version", "i", 1.7, 0},
		{"ii", "ii: 1 h of one service", "ii", 60, 0},
		{"iii-w", "iii: -w of an id in 3 records", "iii-w", 25, 0},
		{"iii-F", "iii': the same by -F", "iii-F", 70, 70},
		{"iii-F-id", "iii': a 32-digit id by -F", "iii-F-id", 25, 0},
		{"absent-w", "an absent word, -w", "absent-w", 20, 0},
		{"absent-F", "an absent word, -F", "absent-F", 20, 0},
		{"iv", "iv: -n 100", "iv", 8, 0},
		{"v", "v: per minute and level, everything", "v", 14, 0},
		{"vi", "vi: an expression with literals, one service", "vi", 250, 70},
		{"everything", "all records of all services", "everything", 0, 0},
	} {
		d.row(r, d.variants[r.by], func(s *side) sample { return d.once(ctx, s, place{store: "dir:" + s.store}, r.id, d.variants[r.by]) })
	}
}

// answered runs a read once and checks its answer.
func (d *driver) answered(ctx context.Context, s *side, at place, v *answers.Variant) rig.Usage {
	args := append([]string{s.command("logquery"), "--store", at.store, "--quiet"}, v.Args...)
	out, u, errs, err := d.runner.Run(ctx, append(d.env[:len(d.env):len(d.env)], at.env...), args...)
	check(err)
	if want := map[bool]int{true: 1, false: 0}[v.Want.Len() == 0]; u.Code != want {
		err = fmt.Errorf("exit code %d, not %d: %.500s", u.Code, want, errs)
	} else {
		err = v.Want.Check(d.index.Printed(v), bytes.NewReader(out))
	}
	if err != nil {
		check(fmt.Errorf("the answer of %s: %w", shell(args), err))
	}
	return u
}

// sample is a measured run of a read.
type sample struct {
	rig.Usage
	figure float64
	more   map[string]float64
}

// once runs a read once, or --version; for i both.
func (d *driver) once(ctx context.Context, s *side, at place, id string, v *answers.Variant) sample {
	var m sample
	if v == nil || id == "i" {
		out, u, _, err := d.runner.Run(ctx, d.env, s.command("logquery"), "--version")
		check(err)
		if u.Code != 0 || len(out) == 0 {
			check(fmt.Errorf("logquery --version printed %q and exited with %d", out, u.Code))
		}
		m.Usage, m.figure = u, u.WallMS
	}
	if v != nil {
		start := m.figure
		m.Usage = d.answered(ctx, s, at, v)
		if m.figure = m.WallMS; id == "i" {
			m.figure /= start
		}
	}
	return m
}

// row measures a read and adds its row. Each side has a run that does not count.
func (d *driver) row(r read, v *answers.Variant, once func(s *side) sample) {
	if !d.rows.Choose(r.id, r.id+"-memory") {
		return
	}
	yard := d.yard()
	row, memory := tableRow(r.id, r.title, "ms", r.reach, 0), tableRow(r.id+"-memory", "memory of "+r.title, "MB", r.memory, 0)
	if r.id == "i" {
		row.Unit = "x"
	}
	if v != nil {
		row.Records, row.OursCommand = v.Want.Len(), shell(append([]string{"logquery"}, v.Args...))
	}
	eachRound(d.size.reads+1, func() bool { return false }, d.sides, func(run int, _ bool, s *side) {
		m := once(s)
		if run == 0 {
			return
		}
		s.add(&row, m.figure)
		s.add(&memory, m.RSSMB)
		d.also(row.ID, s, map[string]float64{"wall_ms": m.WallMS, "cpu_s": m.CPUs, "cpu_y": m.CPUs / yard, "peak_rss_mb": m.RSSMB})
		d.also(row.ID, s, m.more)
	})
	if d.add(row); r.memory > 0 {
		d.add(memory)
	}
}

// overlapping measures -n 100 where ten blobs of each service have the same minutes, as ten ingesters
// leave them before compaction. One ingester stores the records, dealt as cards, in ten flushes.
func (d *driver) overlapping(ctx context.Context) {
	const parts = 10
	r := read{"iv-overlapping", "iv: -n 100, with 10 overlapping ingesters", "iv", 16, 0}
	if !d.rows.Choose(r.id) {
		return
	}
	dealt := make([]delivery, parts)
	lines := corpus.Bodies(must(rig.Map(d.corpus.File)), 1)
	for i, line := range lines[len(lines)*6/7:] { // they are of the last hour
		of := &dealt[i%parts]
		if of.records%1000 == 0 {
			of.protocol, of.connections, of.bodies = rig.Protocols()[0], 1, append(of.bodies, nil)
		}
		last := &of.bodies[len(of.bodies)-1]
		*last, of.records = append(*last, line...), of.records+1
	}
	stores := map[*side]string{}
	for _, s := range d.sides {
		stores[s] = d.temp()
		for _, of := range dealt {
			d.load(ctx, s, place{store: "dir:" + stores[s]}, of, nil)
		}
		hours := must(filepath.Glob(filepath.Join(stores[s], d.corpus.LastService, "*/*/*/*")))
		if n, _ := blobsOf(stores[s]); len(hours) != 1 || n != parts*len(d.corpus.Services) {
			check(fmt.Errorf("%d blobs in %d periods of %s, not %d of each service in one", n, len(hours), d.corpus.LastService, parts))
		}
	}
	d.row(r, d.variants["iv"], func(s *side) sample { return d.once(ctx, s, place{store: "dir:" + stores[s]}, r.id, d.variants["iv"]) })
}

// largest is the largest store, in reference corpora.
const largest = 10

// grow measures stores of one, four and ten times the reference corpus, and one of 10,000 blobs of one
// service over 7 days. Only this version is measured.
func (d *driver) grow(ctx context.Context) {
	parts := []*rig.Corpus{d.corpus}
	for _, n := range []int{1, 4, largest} {
		for len(parts) < n {
			d.say("make part %d of a larger corpus", len(parts))
			parts = append(parts, must(rig.Generate(rig.Chunk(len(parts), d.size.records), filepath.Join(d.dir, fmt.Sprintf("chunk-%d", len(parts))))))
		}
		d.point(ctx, result.Point{Records: n * d.size.records, Services: 8, Hours: rig.Hours * n}, 1000, nil, parts...)
	}
	last := d.result.Growth[len(d.result.Growth)-1]
	row := tableRow("ingest-rss-20", "peak RSS of the ingester, 20 million records", "MB", 220, last.Records)
	row.Ours = []float64{last.RSSMB}
	d.add(row)
	// A body is just large enough for a blob of its own at the least flush size, and some make one together.
	const bodies, perBody, week = 10_120, 210, 7 * 24
	n := bodies * perBody * d.size.records / corpus.ReferenceRecords
	c := must(rig.Generate(corpus.Options{Records: n, Services: 1, Seed: corpus.ReferenceSeed, From: rig.Start.Add(-week * time.Hour), Span: week * time.Hour},
		filepath.Join(d.dir, "many")))
	d.point(ctx, result.Point{Records: n, Services: 1, Hours: week}, perBody, []string{"--flush-size", "64KiB"}, c)
}

// point loads corpora, which follow one another in time, into a fresh store, and measures
// reads of it: the window is in the first one, and the newest records are in the last.
func (d *driver) point(ctx context.Context, p result.Point, perRequest int, args []string, parts ...*rig.Corpus) {
	d.say("load %d records", p.Records)
	store, raw := d.temp(), int64(0)
	s, at := d.sides[0], place{store: "dir:" + store, args: args}
	before := d.yard()
	l := d.load(ctx, s, at, deliver(perRequest, parts...), nil)
	yard := (before + d.yard()) / 2
	blobs, stored := blobsOf(store)
	for _, c := range parts {
		raw += c.Bytes
	}
	p.Blobs, p.YardS, p.RSSMB, p.Ratio = blobs, result.Round(yard), result.Round(l.peak), result.Round(float64(raw)/float64(stored))
	p.IngestY = result.Round(l.cpu / yard)
	d.answered(ctx, s, at, &answers.Variant{Args: d.variants["v"].Args, Want: answers.MinutesOf(parts...)})
	wall := func(c *rig.Corpus, name string) result.Spread { // in ms, after a run that does not count
		variants, times := d.variants, []float64(nil)
		if c != d.corpus {
			variants = must(answers.New(c, d.index.Seed)).Table()
		}
		for range d.size.reads + 1 {
			times = append(times, d.answered(ctx, s, at, variants[name]).WallMS)
		}
		return result.SpreadOf(times[1:])
	}
	p.Window, p.Newest = wall(parts[0], "i"), wall(parts[len(parts)-1], "iv")
	if len(parts) == largest {
		d.page(ctx, store, "page-20", 2000, parts...)
	}
	d.result.Growth = append(d.result.Growth, p)
	d.say("%d records in %d blobs: %v Y, %v MB, ratio %v, i %v ms, iv %v ms", p.Records, p.Blobs, p.IngestY, p.RSSMB, p.Ratio, p.Window, p.Newest)
}
