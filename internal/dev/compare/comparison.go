package main

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"blobtail/internal/dev/bench/report"
	"blobtail/internal/dev/bench/rig"
	"blobtail/internal/dev/compare/canon"
	"blobtail/internal/dev/compare/result"
	"blobtail/internal/dev/compare/victoria"
)

// comparison is one run.
type comparison struct {
	o        options
	work     string
	env      []string // of blobtail's commands: none of its settings, or Azure's
	tools    rig.Tools
	runner   *rig.Runner
	victoria string     // path of VictoriaLogs
	canon    canon.Form // of the corpora
	known    *rig.Corpus
	log      int64        // the most bytes of an emptied log of ours
	rounded  atomic.Int64 // values of VictoriaLogs that are compared after rounding
	result   result.Result
	begun    time.Time
	busy     rig.Busy
}

func newComparison(ctx context.Context, o options, work string) (*comparison, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &comparison{o: o, work: work, runner: &rig.Runner{Self: self}, begun: time.Now(), busy: rig.BusyNow()}
	c.canon = canon.Corpus(maphash.MakeSeed())
	c.env = append(slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, "BLOBTAIL_") || strings.HasPrefix(s, "AZURE_")
	}), "TZ=UTC")
	c.result = result.Result{Date: c.begun.UTC().Format(time.RFC3339), Quick: o.quick, Commit: rig.Commit(ctx), Machine: rig.Machine()}
	c.result.Ours = result.Side{Name: "blobtail", Durability: "is synced to disk",
		Commands: []string{"ingest --store dir:DIR", "logquery --store dir:DIR serve", "retention compact --store dir:DIR"}}
	out, _, _, err := c.runner.Run(ctx, c.env, c.ours("logquery"), "--version")
	if err != nil {
		return nil, err
	}
	c.result.Ours.Version = strings.TrimSpace(string(out))
	c.say("build VictoriaLogs")
	root, err := filepath.Abs(".")
	if err != nil {
		return nil, err
	}
	var version string
	if c.victoria, version, err = victoria.Install(ctx, root, work); err != nil {
		return nil, err
	}
	c.result.Theirs = result.Side{Name: "VictoriaLogs", Version: version, Durability: "is in memory; a file has it within 5 s (`-inmemoryDataFlushInterval`)",
		Commands: []string{"victoria-logs -storageDataPath=DIR -retentionPeriod=100y -futureRetention=100y"}}
	c.tools, err = rig.BuildTools(ctx, o.tools, work)
	return c, err
}

// ours is a command of blobtail.
func (c *comparison) ours(name string) string { return filepath.Join(c.o.bin, name) }

func (c *comparison) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%4.0f s  %s\n", time.Since(c.begun).Seconds(), fmt.Sprintf(format, args...))
}

// measure runs all parts that -rows asks for.
func (c *comparison) measure(ctx context.Context) error {
	made, known, err := c.reference(ctx)
	if err != nil {
		return err
	}
	c.known = known
	hub, err := c.loghub()
	if err != nil {
		return err
	}
	c.result.Corpora = []result.Corpus{made.Corpus, hub.Corpus}
	for _, part := range []func() error{
		func() error { return c.protocols(ctx, made) },
		func() error { return c.whole(ctx, hub, nil) },
		func() error { return c.whole(ctx, made, c.reads) },
	} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// add adds rows to the result, if -rows has them, and prints them.
func (c *comparison) add(rows ...result.Row) {
	for _, r := range rows {
		if !c.o.rows.Choose(r.ID) {
			continue
		}
		c.result.Rows = append(c.result.Rows, r)
		c.say("%-30s ours %v, theirs %v %s; ratio %.2f", r.ID, report.SpreadOf(r.Ours), report.SpreadOf(r.Theirs), r.Unit, r.Ratio())
	}
}

// leastRounds is the number of rounds that a row has however long they take.
const leastRounds = 3

// inTurn calls a function for each side in each round: ours, theirs, theirs, ours. If it is late when
// a round begins, and the row has enough with it, the round is the last one.
func inTurn(rounds int, late func() bool, ours, theirs func(last bool) error) error {
	for round := range rounds {
		each := []func(bool) error{ours, theirs}
		if round%2 == 1 {
			slices.Reverse(each)
		}
		last := round == rounds-1 || round+1 >= leastRounds && late()
		for _, f := range each {
			if err := f(last); err != nil {
				return err
			}
		}
		if last {
			return nil
		}
	}
	return nil
}

// late reports whether the loads have taken more than their part of the time.
func (c *comparison) late() bool { return time.Since(c.begun) > c.o.size.budget*2/5 }

// finish writes the result, and the page and the plot of it.
func (c *comparison) finish() error {
	c.result.Seconds = report.Round(time.Since(c.begun).Seconds())
	if n := c.rounded.Load(); n > 0 {
		c.result.Notes = append(c.result.Notes, fmt.Sprintf("VictoriaLogs returned %s decimal fractions with other digits, such as 1.3820000000000001 for 1.382. They count as equal.", report.Thousands(int(n))))
	}
	if c.log > 0 {
		c.result.Notes = append(c.result.Notes, fmt.Sprintf("The log of an ingester, emptied, kept up to %.0f MB of files for the next records. They are no part of raw / stored.", float64(c.log)/1e6))
	}
	if others := rig.BusyNow().Others(c.busy); others > 0.05 {
		c.result.Notes = append(c.result.Notes, fmt.Sprintf("Other processes used %.2f cores meanwhile.", others))
	}
	if c.o.streams != "" {
		c.result.Notes = append(c.result.Notes, "Streams of VictoriaLogs are by "+c.o.streams+".")
	}
	if len(c.result.Rows) == 0 {
		return fmt.Errorf("no row has an ID like %s", &c.o.rows)
	}
	if err := c.result.Check(); err != nil {
		return err
	}
	if c.o.out != "" {
		if err := c.result.Write(c.o.out); err != nil {
			return err
		}
	}
	if c.o.docs == "" || c.o.quick || len(c.o.rows) > 0 || c.o.streams != "" {
		fmt.Print(result.Tables(c.result))
		return nil
	}
	return publish(c.result, c.o.docs)
}

// publish writes a result beside the page, and its tables and plot into it.
func publish(r result.Result, docs string) error {
	dir := filepath.Join(docs, "compare")
	name := filepath.Join(docs, "COMPARISON.md")
	old, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	page, err := result.Place(string(old), r)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	plot, err := result.Draw(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return errors.Join(r.Write(filepath.Join(dir, r.Date[:len(time.DateOnly)]+".json")),
		os.WriteFile(filepath.Join(docs, "compare.svg"), plot, 0o644), os.WriteFile(name, []byte(page), 0o644))
}
