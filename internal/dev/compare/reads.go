package main

import (
	"context"
	"time"

	"blobtail/internal/dev/bench/rig"
	"blobtail/internal/dev/compare/reads"
	"blobtail/internal/dev/compare/result"
)

// memoryOfReads is a row that needs all questions.
const memoryOfReads = "memory.reads"

// mapped is the note of rows of memory.
const mapped = "VmHWM of the server. VictoriaLogs maps its files, so those parts count that it has touched; blobtail reads its blobs, and the cache of the system counts for nobody"

// questions are the ids of the questions that -rows asks for.
func (c *comparison) questions() (ids []string) {
	for _, id := range reads.Questions() {
		rows := []string{memoryOfReads}
		for _, kind := range []string{"process", "cpu", "server.1", "server.8", "server.32"} {
			rows = append(rows, "read."+id+"."+kind)
		}
		if c.o.rows.Choose(rows...) {
			ids = append(ids, id)
		}
	}
	return ids
}

// served is our server.
type served struct{ *rig.Server }

// URL implements [reads.Server].
func (s served) URL() string { return s.Base }

// reads measures the reads of the reference corpus, as it was flushed.
func (c *comparison) reads(ctx context.Context, p pair) error {
	ids := c.questions()
	if len(ids) == 0 {
		return nil
	}
	s, err := rig.Serve(ctx, c.ours("logquery"), c.env, "dir:"+p.ours)
	if err != nil {
		return err
	}
	defer s.Kill()
	rows, err := reads.Run(ctx, reads.Config{
		Ours:   reads.Ours{Logquery: c.ours("logquery"), Store: "dir:" + p.ours, Env: c.env, Server: served{s}},
		Theirs: p.theirs.v, Corpus: c.known, Rounds: c.o.size.reads, Quick: c.o.quick, Budget: max(time.Minute, c.o.size.budget*9/10-time.Since(c.begun)), Only: ids, Run: c.runner, Say: c.say,
	})
	if err != nil {
		return err
	}
	c.add(rows...)
	if len(ids) < len(reads.Questions()) {
		return nil
	}
	_, ours, err := s.Usage()
	if err != nil {
		return err
	}
	_, theirs, err := rig.UsageOf(p.theirs.pid())
	c.add(result.Row{ID: memoryOfReads, Group: "memory", Title: "peak memory of a server that answered all reads", Unit: "MB", Corpus: p.corpus.Name,
		Ours: []float64{ours}, Theirs: []float64{theirs}, Note: mapped, OursCommand: "grep VmHWM /proc/PID/status", TheirsCommand: "grep VmHWM /proc/PID/status"})
	return err
}
