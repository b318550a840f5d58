package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"blobtail/internal/cli"
	"blobtail/internal/units"
	"blobtail/internal/when"
	"blobtail/reading"
)

type newCmd struct {
	Services     []string `arg:"" name:"service" help:"Services, or globs such as 'web-*' and '*'."`
	Against      string   `help:"How long the window before is, such as 24h (the default), or a time such as that of a deployment: the records since then against those of the 24 hours before." placeholder:"D"`
	Gone         bool     `help:"List the patterns too that only the window before has."`
	More         bool     `help:"List the patterns too that are at least twice as frequent as in the window before."`
	Less         bool     `help:"List the patterns too that are at most half as frequent."`
	Number       *number  `short:"n" aliases:"limit" help:"Look at the newest N records of each window (1000000); 0 for all." placeholder:"N"`
	rangeFlags   `group:"Time"`
	filterFlags  `group:"Filters"`
	patternFlags `group:"Output"`
}

// The windows unless flags say others: the last so long, against so long before.
const lately, against = "15m", "24h"

// windows are the range of the question, with an end, and the window before it.
func (c *newCmd) windows(a *app, rng reading.Range) (now, before reading.Range, err error) {
	if rng.From != reading.Oldest && rng.To == reading.Newest && rng.From >= a.now.UnixNano() {
		return rng, before, cli.Usagef("the window begins at %s, in the future; want a time before %s", a.showTime(rng.From), a.showTime(a.now.UnixNano()))
	}
	length := c.Against
	if length == "" {
		length = against
	}
	before.To = rng.From
	if _, ok := when.Length(length); !ok && !strings.HasPrefix(length, "-") {
		t, err := when.Time(length, a.now)
		if err != nil {
			return rng, before, cli.Usagef("--against: %q is neither a duration nor a time; want 24h, 7d, or a time such as 2026-11-20T15:04", length)
		}
		if before.To = t.UnixNano(); rng.From == reading.Oldest {
			rng.From = before.To
		}
		if rng.From < before.To {
			return rng, before, cli.Usagef("the window begins before --against %s; leave --from and --since out, and it begins then", c.Against)
		}
		length = against
	}
	if rng.From == reading.Oldest {
		until := a.now
		if rng.To != reading.Newest {
			until = a.at(rng.To)
		}
		t, err := when.Since(lately, until, a.now)
		if err != nil {
			return rng, before, err
		}
		rng.From, before.To = t.UnixNano(), t.UnixNano()
	}
	t, err := when.Since(strings.TrimPrefix(length, "-"), a.at(before.To), a.now)
	if err != nil {
		return rng, before, cli.Usagef("--against: %w", err)
	}
	if before.From = t.UnixNano(); before.From >= before.To {
		return rng, before, cli.Usagef("--against %s: the window before has no length", c.Against)
	}
	if rng.To == reading.Newest {
		rng.To = a.now.UnixNano()
	}
	if rng.From >= rng.To {
		return rng, before, cli.Usagef("--against %s is not over yet; want a time before %s", c.Against, a.showTime(rng.To))
	}
	return rng, before, nil
}

func (c *newCmd) run(ctx context.Context, a *app) (int, error) {
	ask, err := a.ask(c.Services, c.rangeFlags, c.filterFlags)
	if err != nil {
		return 0, err
	}
	f, o, err := c.options(a, c.Number, comparedOf)
	if err != nil {
		return 0, err
	}
	var before reading.Range
	if ask.Range, before, err = c.windows(a, ask.Range); err != nil {
		return 0, err
	}
	o.Against, f.compares = &before, true
	w := whole{
		ask: ask, live: c.Live, stats: c.Stats, most: &c.MaxBytes,
		read: func(from reading.Source, ask reading.Ask) (*reading.Outcome, error) {
			a.Note("against those from %s to %s", a.showTime(before.From), a.showTime(before.To))
			p, out, err := from.Patterns(ctx, ask, o)
			if err != nil {
				return out, err
			}
			if b := &p.Basis; b.Newest {
				out.Warnings = append(out.Warnings, fmt.Errorf("only the newest %s%s were looked at; -n 0 for all", units.Count(b.Records, "record"), ofAll(b)))
			}
			rows := c.changes(p)
			out.Records, out.Examined = 0, p.Basis.Records
			for i := range rows {
				out.Records += rows[i].pattern.Count
			}
			if len(rows) == 0 && p.Basis.Records > 0 {
				out.Warnings = append(out.Warnings, c.none(p))
			}
			if f.output == "pretty" {
				f.changes(rows)
				return out, nil
			}
			return out, f.lines(rows)
		},
	}
	return w.run(ctx, a)
}

// none says why nothing is printed.
func (c *newCmd) none(p *reading.Patterns) error {
	if c.Gone || c.More || c.Less {
		return errors.New("no pattern differs from the window before in the wanted ways")
	}
	return errors.New("no pattern is new: the window before has all of them")
}

// changes are the wanted patterns.
func (c *newCmd) changes(p *reading.Patterns) (rows []changed) {
	add := func(how, id string, before int64) {
		if at := slices.IndexFunc(p.Patterns, func(of reading.Pattern) bool { return of.ID == id }); at >= 0 {
			rows = append(rows, changed{how, &p.Patterns[at], p.Basis.Records, before})
		}
	}
	for _, id := range p.Against.New {
		add("new", id, 0)
	}
	if c.More {
		for _, of := range p.Against.More {
			add("more", of.ID, of.Before)
		}
	}
	if c.Less {
		for _, of := range p.Against.Less {
			add("less", of.ID, of.Before)
		}
	}
	if c.Gone {
		for i := range p.Against.Gone {
			of := &p.Against.Gone[i]
			rows = append(rows, changed{"gone", of, p.Against.Basis.Records, of.Count})
		}
	}
	return rows
}

// changes prints patterns that differ, for people.
func (f *patternForm) changes(rows []changed) {
	if len(rows) == 0 {
		return
	}
	t := table{heads: []head{{"change", true, 0}, {"records", false, 0}, {"before", false, 2}, {"first", true, 1}, {"levels", true, 4}, {"services", true, 3}, {"pattern", true, 0}}}
	for _, row := range rows {
		p := row.pattern
		count := p.Count
		if row.how == "gone" {
			count = 0
		}
		t.add(row.how, cli.Thousands(int(count)), cli.Thousands(int(row.before)), f.when(p.First), levelsOf(p), servicesIn(p), patternText(p.Template))
		if f.examples || row.how == "new" {
			t.add("", "", "", "", "", "", "  "+patternText(p.Example))
		}
	}
	t.print(f.a, "-o json")
}
