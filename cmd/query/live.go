package main

import (
	"context"
	"fmt"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/newest"
	"blobtail/query"
)

// whole is a read of blobs and of unflushed records.
type whole struct {
	query query.Query
	live  string // --live
	mode  newest.Mode
	stats bool
	// listing says that the verb lists blobs: it has no range.
	listing bool
	// blobs says that the verb names blobs, and so nobody expects more of it.
	blobs bool
	// explains says that the verb prints what it would read. That there is nothing is an
	// answer.
	explains bool
	// most bounds the bytes that a read without a range takes from a remote store; nil: there
	// is no bound.
	most *config.Size
	// print prints the records of the completed query.
	print func(from view, q query.Query) (query.Summary, error)
}

func (w *whole) run(ctx context.Context, a *app) (int, error) {
	var err error
	if w.mode, err = a.liveMode(w.live, "auto", "off", "only"); err != nil {
		return 0, err
	}
	from, err := a.open(ctx, w.mode != newest.Off)
	if err != nil {
		return 0, err
	}
	a.most = w.most
	if err := a.boundedLogs(ctx, w.query); err != nil {
		return 0, err
	}
	if !w.listing {
		a.echo(w.query.Range)
	}
	// Unflushed records first: records that leave the logs meanwhile are in blobs then.
	seen, err := from.look(ctx, w.query, w.mode)
	if err != nil {
		return 0, err
	}
	defer seen.close()
	if w.blobs {
		seen.report().Warnings = nil
	}
	sum, err := w.print(seen, seen.query())
	if sum.Higher > 0 {
		sum.Warnings = append(sum.Warnings, fmt.Errorf("at least %d of higher levels left out; --level %s+ has them", sum.Higher, w.query.Filter.Levels.Lowest()))
	}
	return w.end(ctx, a, &sum, seen.report(), err)
}

// liveMode is the mode of a flag --live with some values. What the flag leaves open, the
// configuration decides, a context, or BLOBTAIL_LIVE.
func (a *app) liveMode(text string, values ...string) (newest.Mode, error) {
	if text == "" {
		text = "auto"
		if a.config.LiveOff() {
			text = "off"
		}
	}
	if err := oneOf("--live", text, values...); err != nil {
		return 0, err
	}
	return map[string]newest.Mode{"auto": newest.Auto, "off": newest.Off, "only": newest.Only}[text], nil
}

// end prints the facts about a read, after its records, and returns its exit code.
func (w *whole) end(ctx context.Context, a *app, sum *query.Summary, report *newest.Report, err error) (int, error) {
	if err == nil {
		err = a.out.flush()
	}
	if w.stats {
		a.stats(sum, time.Since(a.started))
	}
	a.report(report)
	if err != nil {
		return 0, err
	}
	out := sum.Outcome()
	if a.store != nil && a.store.Problems != nil {
		out.Lack(a.store.Problems()...)
		for _, note := range a.store.Notes() {
			a.Note("%s", note)
		}
	}
	if w.query.Filter.Where != nil {
		for _, note := range w.query.Filter.Where.Notes() {
			a.Note("--where: %s", note)
		}
	}
	out.Lack(report.Problems...)
	if out.Complete() && out.Records+out.Examined == 0 && !w.listing && !w.explains && w.query.Range != query.Always() {
		a.Note("0 records in that range")
	}
	code := a.verdict(ctx, out)
	if w.explains && code == cli.Nothing {
		return 0, nil
	}
	if code == cli.Nothing && !a.Quiet {
		if hint := a.meant(ctx, &w.query); hint != "" {
			a.Note("%s", hint)
		}
	}
	return code, nil
}

// held reports whether a service that is in no blob exists.
func (a *app) held(ctx context.Context, service string) bool {
	return a.place != nil && ctx.Err() == nil && a.place.holds(ctx, service)
}

// token is the token for ingesters, "" if there is none. A file that is named counts more
// than BLOBTAIL_TOKEN, and that more than the configuration.
func (a *app) token() (string, error) {
	if file := a.flags.TokenFile; file != "" {
		return config.Token(func(string) string { return "" }, "", file)
	}
	return config.Token(a.env.getenv, "BLOBTAIL_TOKEN", a.config.Access.TokenFile)
}

// report prints the notes and gaps of a report.
func (a *app) report(report *newest.Report) {
	for _, err := range report.Warnings {
		a.Complain("%v", err)
	}
	for _, text := range report.Notes {
		a.Note("%s", text)
	}
	for _, g := range report.Gaps {
		a.gap(g)
	}
}

// clock is the time now, for a run that may last.
func (a *app) clock() time.Time { return a.now.Add(time.Since(a.started)) }
