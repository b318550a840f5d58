package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"blobtail/internal/dev/bench/report"
	"blobtail/internal/dev/bench/rig"
)

// side is one version of the commands, with its stores.
type side struct {
	logquery, ingest, retention string
	version                     string
	off                         string // the flag of ingest that leaves filters out; "" if it has none
	store                       string // the dir store of the reference corpus
}

// bench is one run of the benchmark.
type bench struct {
	o         options
	work      string
	env       []string // of all commands: no settings of blobtail or Azure
	tools     rig.Tools
	runner    *rig.Runner
	parser    parser
	sides     []*side
	reference *rig.Corpus
	queries   *queries // of the reference corpus
	excerpt   string   // the first 64 MB of it, for the yardstick beside reads
	report    report.Report
	yards     []float64
	since     rig.Busy // at the row before
	others    float64  // cores that other processes used before the last row
}

// newBench builds the tools, and makes the corpus.
func newBench(ctx context.Context, o options, work string) (*bench, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	b := &bench{o: o, work: work, runner: &rig.Runner{Self: self}, parser: newParser(), sides: o.sides(), excerpt: filepath.Join(work, "excerpt.ndjson")}
	b.env = append(slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, "BLOBTAIL_") || strings.HasPrefix(s, "AZURE_")
	}), "TZ=UTC")
	for _, s := range b.sides {
		if err := b.describe(ctx, s); err != nil {
			return nil, err
		}
	}
	b.report = report.Report{Date: time.Now().UTC().Format(time.RFC3339), Version: b.sides[0].version, Commit: rig.Commit(ctx), Machine: rig.Machine()}
	if len(b.sides) > 1 {
		b.report.Against = b.sides[1].version
	}
	b.say("build the tools of %s", o.tools)
	if b.tools, err = rig.BuildTools(ctx, o.tools, work); err != nil {
		return nil, err
	}
	b.say("make a corpus of %d records", o.records)
	if b.reference, err = b.tools.Generate(ctx, rig.Chunk(0, o.records), work, "reference"); err != nil {
		return nil, err
	}
	b.report.Corpus = report.Corpus{Generator: fmt.Sprintf("gen -n %d -seed 42", o.records), Records: o.records, Bytes: b.reference.Bytes}
	if b.sides[0].off == "" {
		b.note("ingest has no %s, so the cost of filters is not measured, and all figures of ingest are for its own settings", o.filtersOff)
	}
	return b, rig.Excerpt(b.reference.File, b.excerpt, 64<<20)
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

func (b *bench) note(format string, args ...any) {
	n := fmt.Sprintf(format, args...)
	b.say("note: %s", n)
	b.report.Notes = append(b.report.Notes, n)
}

// describe finds out the version of a side, and its flags.
func (b *bench) describe(ctx context.Context, s *side) error {
	out, _, _, err := b.runner.Run(ctx, b.env, s.logquery, "--version")
	if err != nil {
		return err
	}
	s.version = strings.TrimSpace(string(out))
	if out, _, _, err = b.runner.Run(ctx, b.env, s.ingest, "--help"); err != nil {
		return err
	}
	flag, _, _ := strings.Cut(b.o.filtersOff, "=")
	negated := strings.Replace(flag, "--no-", "--[no-]", 1)
	if flag != "" && (strings.Contains(string(out), "  "+flag) || strings.Contains(string(out), "  "+negated)) {
		s.off = b.o.filtersOff
	}
	return nil
}

// measure runs all parts that the flags ask for.
func (b *bench) measure(ctx context.Context) error {
	parts := []func(context.Context) error{b.ingest, b.protocols, b.read, b.served, b.browser, b.overlapping}
	if !b.o.quick {
		parts = append(parts, b.compact, b.remote)
	}
	if b.o.growth && !b.o.quick {
		parts = append(parts, b.grow)
	}
	b.since = rig.BusyNow()
	for _, part := range parts {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// yard measures the yardstick now, on the excerpt.
func (b *bench) yard(ctx context.Context) (float64, error) {
	y, err := b.tools.Yardstick(ctx, b.excerpt, 3)
	b.yards = append(b.yards, y)
	return y, err
}

// add adds a row to the report and prints it.
func (b *bench) add(r report.Row) {
	if b.o.records != rig.ReferenceRecords {
		r.Reach, r.Aim = 0, 0 // they are for the reference corpus
	}
	r.Judge()
	if now := rig.BusyNow(); now.At.Sub(b.since.At) > 100*time.Millisecond { // else the row is derived from the one before
		b.others, b.since = now.Others(b.since), now
	}
	r.OtherCores = b.others
	b.report.Rows = append(b.report.Rows, r)
	line := fmt.Sprintf("%-24s %s", r.ID, figure(r.Figure, r.Unit))
	if r.Reach != 0 {
		line += fmt.Sprintf(", to reach %v, then %v: %s", r.Reach, r.Aim, map[bool]string{true: "met", false: "NOT MET"}[*r.Met])
	}
	if r.Against != nil {
		line += "; against: " + figure(r.Against.Figure, r.Unit)
	}
	if r.Ratio != nil {
		line += "; " + figure(*r.Ratio, "of it")
	}
	if m := r.Remote; m != nil {
		line += fmt.Sprintf("; %v requests, chain of %v, %.1f MB, %v ms without delay", m.Requests.Median, m.Chain.Median, m.Bytes.Median/1e6, m.UndelayedMS.Median)
	}
	if r.OtherCores > 0.2 {
		line += fmt.Sprintf("; others used %v cores", r.OtherCores)
	}
	if r.Wrong != "" {
		line += "; WRONG: " + r.Wrong
	}
	b.say("%s", line)
}

func figure(s report.Spread, unit string) string {
	return fmt.Sprintf("%v %s (%v to %v)", s.Median, unit, s.Min, s.Max)
}

// finish writes the report, unless an answer was wrong.
func (b *bench) finish() error {
	b.report.Yard = report.SpreadOf(b.yards)
	var wrong []error
	for _, r := range b.report.Rows {
		if r.Wrong != "" {
			wrong = append(wrong, fmt.Errorf("%s: %s", r.ID, r.Wrong))
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("nothing is written, because answers were wrong: %w", errors.Join(wrong...))
	}
	if b.o.out == "" || len(b.o.rows) > 0 {
		return nil
	}
	if err := os.MkdirAll(b.o.out, 0o755); err != nil {
		return err
	}
	name := filepath.Join(b.o.out, b.report.Date[:len(time.DateOnly)]+"-"+b.report.Commit+".json")
	if err := report.Write(name, b.report); err != nil {
		return err
	}
	b.say("wrote %s", name)
	if b.o.svg == "" || len(b.report.Growth) == 0 {
		return nil
	}
	return draw(name, b.o.svg)
}

// inTurn calls a function for each side, n times, in alternating order: new, old, old, new.
func (b *bench) inTurn(n int, each func(run int, s *side) error) error {
	for run := range n {
		sides := slices.Clone(b.sides)
		if run%2 == 1 {
			slices.Reverse(sides)
		}
		for _, s := range sides {
			if err := each(run, s); err != nil {
				return err
			}
		}
	}
	return nil
}
