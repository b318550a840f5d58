package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/units"
	"blobtail/reading"
	"blobtail/reading/form"
)

// patternFlags are those of both verbs about patterns.
type patternFlags struct {
	Top      *number     `help:"List at most N patterns (50)." placeholder:"N"`
	Examples bool        `help:"Print the message of the newest record below each pattern."`
	Output   string      `short:"o" help:"pretty, json (the default into a pipe) or csv." placeholder:"FORM"`
	Stats    bool        `help:"Say on stderr what the read took."`
	Live     string      `help:"auto, off or only: records that are in no blob yet (auto)." placeholder:"WHEN"`
	MaxBytes config.Size `help:"Most bytes to read from a remote store without a range." default:"10GiB" placeholder:"SIZE"`
}

type patternsCmd struct {
	Services     []string `arg:"" name:"service" help:"Services, or globs such as 'web-*' and '*'."`
	Number       *number  `short:"n" aliases:"limit" help:"Look at the newest N records (100000); 0 for all." placeholder:"N"`
	rangeFlags   `group:"Time"`
	filterFlags  `group:"Filters"`
	patternFlags `group:"Output"`
}

const (
	// minedOf is how many records patterns are taken from, unless asked for more, and comparedOf how
	// many of each of two windows.
	minedOf, comparedOf = 100_000, 1_000_000
	// sparks is how many characters show the records of a pattern over time.
	sparks = 12
)

func (c *patternsCmd) run(ctx context.Context, a *app) (int, error) {
	ask, err := a.ask(c.Services, c.rangeFlags, c.filterFlags)
	if err != nil {
		return 0, err
	}
	f, o, err := c.patternFlags.options(a, c.Number, minedOf)
	if err != nil {
		return 0, err
	}
	w := whole{
		ask: ask, live: c.Live, stats: c.Stats, most: &c.MaxBytes,
		read: func(from reading.Source, ask reading.Ask) (*reading.Outcome, error) {
			p, out, err := from.Patterns(ctx, ask, o)
			if err != nil {
				return out, err
			}
			if b := &p.Basis; b.Newest {
				out.Warnings = append(out.Warnings, fmt.Errorf("these are the patterns of the newest %s%s; -n 0 for all", units.Count(b.Records, "record"), ofAll(b)))
			}
			if p.Others > 0 {
				out.Warnings = append(out.Warnings, fmt.Errorf("%s of %s have other patterns; --top N lists more", cli.Thousands(int(p.Others)), units.Count(p.Basis.Records, "record")))
			}
			out.Records = p.Basis.Records
			return out, f.print(p)
		},
	}
	return w.run(ctx, a)
}

// ofAll tells how many records there are beside those of a sample.
func ofAll(b *reading.PatternBasis) string {
	if b.Of < 0 {
		return ""
	}
	return " of " + cli.Thousands(int(b.Of))
}

// options reads the flags. mined is how many records of a window are looked at without -n.
func (c *patternFlags) options(a *app, n *number, mined int) (*patternForm, reading.PatternOptions, error) {
	o := reading.PatternOptions{Sample: mined}
	output, err := a.form(c.Output, "pretty", "json", "csv")
	if err != nil {
		return nil, o, err
	}
	if n != nil {
		o.Sample = int(*n)
	}
	if o.Sample < 0 {
		return nil, o, cli.Usagef("-n %d: it must be positive, or 0 for all", o.Sample)
	}
	if c.Top != nil {
		if o.Top = int(*c.Top); o.Top < 1 || o.Top > reading.MostPatterns {
			return nil, o, cli.Usagef("--top %d: it must be from 1 to %d", o.Top, reading.MostPatterns)
		}
	}
	return &patternForm{a: a, output: output, examples: c.Examples}, o, nil
}

// A patternForm prints patterns in a form.
type patternForm struct {
	a        *app
	output   string
	examples bool
	compares bool // with another window
}

// print prints the patterns of one window.
func (f *patternForm) print(p *reading.Patterns) error {
	if f.output == "pretty" {
		f.table(p)
		return nil
	}
	var rows []changed
	for i := range p.Patterns {
		rows = append(rows, changed{pattern: &p.Patterns[i], of: p.Basis.Records})
	}
	return f.lines(rows)
}

// A changed is a pattern with the way in which it differs from another window; "": there is none.
type changed struct {
	how     string
	pattern *reading.Pattern
	of      int64 // all records of its window
	before  int64
}

// lines prints patterns for programs.
func (f *patternForm) lines(rows []changed) error {
	if f.output == "json" {
		for _, row := range rows {
			var line struct {
				Change string `json:"change,omitempty"`
				Before *int64 `json:"before,omitempty"`
				form.Pattern
			}
			if f.compares {
				line.Change, line.Before = row.how, &row.before
			}
			line.Pattern = form.PatternOf(row.pattern, row.of)
			enc := json.NewEncoder(f.a.out)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(&line); err != nil {
				return err
			}
		}
		return nil
	}
	w := csv.NewWriter(f.a.out)
	heads := []string{"id", "count", "share", "first", "last", "levels", "services", "template", "example", "where"}
	if f.compares {
		heads = append([]string{"change", "before"}, heads...)
	}
	_ = w.Write(heads)
	for _, row := range rows {
		p := row.pattern
		cells := []string{
			p.ID, strconv.FormatInt(p.Count, 10), strconv.FormatFloat(float64(p.Count)/float64(max(row.of, 1)), 'f', 6, 64),
			rfc3339(p.First), rfc3339(p.Last), levelsOf(p), servicesIn(p), p.Template, p.Example, p.Where,
		}
		if f.compares {
			cells = append([]string{row.how, strconv.FormatInt(row.before, 10)}, cells...)
		}
		_ = w.Write(cells)
	}
	w.Flush()
	return w.Error()
}

// table prints patterns for people.
func (f *patternForm) table(p *reading.Patterns) {
	if len(p.Patterns) == 0 {
		return
	}
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	for i := range p.Patterns {
		first, last = min(first, p.Patterns[i].First), max(last, p.Patterns[i].Last)
	}
	t := table{heads: []head{
		{"records", false, 0}, {"share", false, 1}, {"over time", true, 3}, {"first", true, 5}, {"last", true, 4}, {"levels", true, 2}, {"pattern", true, 0},
	}}
	for i := range p.Patterns {
		of := &p.Patterns[i]
		t.add(cli.Thousands(int(of.Count)), fmt.Sprintf("%.1f %%", 100*float64(of.Count)/float64(max(p.Basis.Records, 1))), spark(of, first, last, p.Basis.By),
			f.when(of.First), f.when(of.Last), levelsOf(of), patternText(of.Template))
		if f.examples {
			t.add("", "", "", "", "", "", "  "+patternText(of.Example))
		}
	}
	t.print(f.a, "-o json")
}

func (f *patternForm) when(ns int64) string { return f.a.at(ns).Format(time.DateTime) }

// patternText is a text in one line.
func patternText(text string) string {
	const most = 400
	line := []rune(strings.ReplaceAll(cli.SafeLine(text), "\t", `\t`))
	if len(line) > most {
		line = append(line[:most-1], '…')
	}
	if len(line) == 0 {
		return `""`
	}
	return string(line)
}

// spark draws the records of a pattern over the time of all.
func spark(p *reading.Pattern, first, last int64, by time.Duration) string {
	var counts [sparks]int64
	most := int64(1)
	width := max(float64(last)-float64(first)+1, float64(by)) / sparks
	for _, b := range p.Buckets {
		at := min(max(int((float64(b.Start)-float64(first)+float64(by)/2)/width), 0), sparks-1)
		counts[at] += b.Count
		most = max(most, counts[at])
	}
	var bar strings.Builder
	for _, n := range counts {
		if n == 0 {
			bar.WriteByte('.')
			continue
		}
		bar.WriteRune([]rune("▁▂▃▄▅▆▇█")[(8*n-1)/most])
	}
	return bar.String()
}

// levelsOf are the levels of a pattern, the worst first; one alone without its number.
func levelsOf(p *reading.Pattern) string {
	var words []string
	for _, l := range worstFirst() {
		if n := p.Levels[l]; n == p.Count {
			return l.String()
		} else if n > 0 {
			words = append(words, fmt.Sprintf("%s %d", l, n))
		}
	}
	return strings.Join(words, ", ")
}

// servicesIn are the services of a pattern, those with the most records first.
func servicesIn(p *reading.Pattern) string {
	var names []string
	for i, s := range p.Services {
		if i == 3 {
			names = append(names, fmt.Sprintf("and %d more", len(p.Services)-i))
			break
		}
		names = append(names, cli.Safe(s.Name))
	}
	return strings.Join(names, ", ")
}
