package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"blobtail/internal/cli"
	"blobtail/internal/units"
	"blobtail/reading"
	"blobtail/reading/survey"
	"blobtail/record"
)

type fieldsCmd struct {
	Services    []string `arg:"" name:"service" help:"Services, or globs such as 'web-*' and '*'."`
	Number      *number  `short:"n" aliases:"limit" help:"Look at the newest N records (10000); 0 for all." placeholder:"N"`
	rangeFlags  `group:"Time"`
	filterFlags `group:"Filters"`
	Output      string `short:"o" help:"pretty, json (the default into a pipe) or csv." placeholder:"FORM"`
	Stats       bool   `help:"Say on stderr what the read took."`
	Live        string `help:"auto, off or only: records that are in no blob yet (auto)." placeholder:"WHEN"`
}

const (
	// lookedAt is how many records the fields are taken from, unless asked for more.
	lookedAt = 10_000
	// mostFields bounds the memory for names.
	mostFields = 10_000
	// examplesOf is how many values of a field are shown.
	examplesOf = 3
)

func (c *fieldsCmd) run(ctx context.Context, a *app) (int, error) {
	ask, err := a.ask(c.Services, c.rangeFlags, c.filterFlags)
	if err != nil {
		return 0, err
	}
	form, err := a.form(c.Output, "pretty", "json", "csv")
	if err != nil {
		return 0, err
	}
	ask.Limit = lookedAt
	if c.Number != nil {
		ask.Limit = int(*c.Number)
	}
	if ask.Limit < 0 {
		return 0, cli.Usagef("-n %d: it must be positive, or 0 for all", ask.Limit)
	}
	w := whole{
		ask: ask, live: c.Live, stats: c.Stats,
		read: func(from reading.Source, ask reading.Ask) (*reading.Outcome, error) {
			s := survey.New(survey.Options{Examples: examplesOf, Fields: mostFields})
			out, err := a.records(ctx, from, ask, s.Add)
			if err != nil {
				return out, err
			}
			if out.More {
				out.Warnings = append(out.Warnings, fmt.Errorf("these are the fields of the newest %s; -n 0 for all", units.Count(ask.Limit, "record")))
			}
			if s.More {
				out.Warnings = append(out.Warnings, fmt.Errorf("there are more than %s fields; the others are left out", cli.Thousands(mostFields)))
			}
			return out, a.printFields(s, form)
		},
	}
	return w.run(ctx, a)
}

// printFields prints the fields in the order in which records have them.
func (a *app) printFields(s *survey.Survey, form string) error {
	switch form {
	case "json":
		for _, f := range s.Fields() {
			fmt.Fprintf(a.out, `{"field":"%s","types":["%s"],"records":%d,"of":%d,"examples":[%s]}`+"\n",
				record.AppendEscaped(nil, []byte(f.Name)), strings.Join(f.Types.Names(), `","`), f.Present, s.Records, strings.Join(f.Examples, ","))
		}
		return nil
	case "csv":
		w := csv.NewWriter(a.out)
		_ = w.Write([]string{"field", "types", "records", "of", "example"})
		for _, f := range s.Fields() {
			_ = w.Write([]string{f.Name, strings.Join(f.Types.Names(), " "), strconv.FormatInt(f.Present, 10), strconv.FormatInt(s.Records, 10), survey.Plain([]byte(f.Examples[0]))})
		}
		w.Flush()
		return w.Error()
	}
	t := table{heads: []head{{"field", true, 0}, {"type", true, 2}, {"share", false, 1}, {"examples", true, 0}}}
	for _, f := range s.Fields() {
		t.add(cli.Safe(f.Name), strings.Join(f.Types.Names(), ", "), fmt.Sprintf("%.1f %%", 100*float64(f.Present)/float64(s.Records)), a.examples(f.Examples))
	}
	t.print(a, "-o json")
	return nil
}

// named is a key without its escapes.
func named(key string) string { return string(record.AppendUnescaped(nil, []byte(key))) }

// examples writes values so that they fit a line of the terminal.
func (a *app) examples(values []string) string {
	room := max(20, a.columns()/2)
	var out []string
	for _, value := range values {
		text := []rune(cli.SafeLine(survey.Plain([]byte(value))))
		if len(text) > room/len(values) {
			text = append(text[:room/len(values)-1], '…')
		}
		if slices.Contains(out, string(text)) { // they differ behind the cut, as times do
			return a.examples(values[:1])
		}
		out = append(out, string(text))
	}
	return cmp.Or(strings.Join(out, ", "), "-")
}
