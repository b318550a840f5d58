package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/reading"
	"blobtail/reading/unflushed"
)

// whole is a read of blobs and of unflushed records.
type whole struct {
	ask   reading.Ask
	live  string // --live
	stats bool
	// listing says that the verb lists blobs: it has no range.
	listing bool
	// blobs says that the verb names blobs, and so nobody expects more of it.
	blobs bool
	// explains says that the verb prints the plan of its read. Nothing to read is an answer then.
	explains bool
	// most bounds the bytes that a read without a range takes from a remote store; nil: there
	// is no bound.
	most *config.Size
	// read reads the records of the question, and prints them.
	read func(from reading.Source, ask reading.Ask) (*reading.Outcome, error)
}

func (w *whole) run(ctx context.Context, a *app) (int, error) {
	var err error
	if w.ask.Live, err = a.liveMode(w.live, "auto", "off", "only"); err != nil {
		return 0, err
	}
	from, err := a.open(ctx, w.ask.Live != reading.Off)
	if err != nil {
		return 0, err
	}
	w.ask.Here.MaxStored = a.mostStored(w.most, &w.ask)
	if err := a.boundedLogs(ctx, w.most, &w.ask); err != nil {
		return 0, err
	}
	if !w.listing {
		a.echo(w.ask.Range)
	}
	w.ask.Here.Absent = func(names []*reading.NoServiceError) { a.absent(ctx, names) }
	out, err := w.read(from, w.ask)
	if out == nil {
		out = &reading.Outcome{}
	}
	if out.Higher > 0 && w.ask.LogQL == "" {
		out.Warnings = append(out.Warnings, fmt.Errorf("at least %d of higher levels left out; --level %s+ has them", out.Higher, w.ask.Levels.Lowest()))
	}
	return w.end(ctx, a, out, err)
}

// liveMode is the mode of a flag --live with some values. Without the flag the configuration
// decides, a context, or BLOBTAIL_LIVE.
func (a *app) liveMode(text string, values ...string) (reading.Mode, error) {
	if text == "" {
		text = "auto"
		if a.config.LiveOff() {
			text = "off"
		}
	}
	if err := oneOf("--live", text, values...); err != nil {
		return 0, err
	}
	return reading.ParseMode(text)
}

// end prints the facts about a read, after its records, and returns its exit code.
func (w *whole) end(ctx context.Context, a *app, out *reading.Outcome, err error) (int, error) {
	if err == nil {
		err = a.out.flush()
	}
	if w.stats {
		a.stats(out, time.Since(a.started))
	}
	told := &reading.Report{Notes: out.Notes, Gaps: out.Gaps}
	var warnings []error
	for _, warning := range out.Warnings {
		switch off := strings.HasPrefix(warning.Error(), reading.LiveOff); {
		case !off:
			warnings = append(warnings, warning)
		case !w.blobs:
			told.Warnings = append(told.Warnings, warning)
		}
	}
	a.report(told)
	if err != nil {
		return 0, err
	}
	if a.store != nil && a.store.Problems != nil {
		out.Lack(a.store.Problems()...)
		for _, note := range a.store.Notes() {
			a.Note("%s", note)
		}
	}
	if out.Complete() && out.Records+out.Examined == 0 && !w.listing && !w.explains && w.ask.Range != reading.Always() {
		a.Note("0 records in that range")
	}
	out.Warnings = warnings
	code := a.verdict(ctx, out)
	if w.explains && code == cli.Nothing {
		return 0, nil
	}
	if code == cli.Nothing && !a.Quiet {
		if hint := a.meant(ctx, &w.ask); hint != "" {
			a.Note("%s", hint)
		}
	}
	return code, nil
}

// noteOf prints a note of a read. Quiet hides it, unless the answer may lack records.
func (a *app) noteOf(text string) {
	if unflushed.MayLack(text) {
		a.Complain("%s", text)
	} else {
		a.Note("%s", text)
	}
}

// report prints the warnings, notes and gaps of a report.
func (a *app) report(report *reading.Report) {
	for _, err := range report.Warnings {
		a.Complain("%v", err)
	}
	for _, text := range report.Notes {
		if strings.HasPrefix(text, "where: ") || strings.HasPrefix(text, "parse: ") {
			text = "--" + text // the flag
		}
		if what, line, ok := strings.Cut(text, "; as a search: q="); ok {
			text = what + "; as a search: --search " + cli.ShellWords(line)
		}
		a.noteOf(text)
	}
	for _, g := range report.Gaps {
		a.gap(g)
	}
}
