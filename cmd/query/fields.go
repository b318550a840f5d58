package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"blobtail/internal/cli"
	"blobtail/reading"
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
			s := survey{fields: map[string]*field{}}
			out, err := a.records(ctx, from, ask, s.add)
			if err != nil {
				return out, err
			}
			if out.More {
				out.Warnings = append(out.Warnings, fmt.Errorf("these are the fields of the newest %s records; -n 0 for all", cli.Thousands(ask.Limit)))
			}
			if s.full {
				out.Warnings = append(out.Warnings, fmt.Errorf("there are more than %s fields; the others are left out", cli.Thousands(mostFields)))
			}
			return out, s.print(a, form)
		},
	}
	return w.run(ctx, a)
}

// survey gathers the fields of records.
type survey struct {
	fields  map[string]*field
	order   []string // in which they were first seen
	records int64
	full    bool
}

type field struct {
	records  int64
	types    []string
	examples []string // stored values, each once
}

func (s *survey) add(lines []byte) error {
	for line := range bytes.Lines(lines) {
		s.records++
		for key, value := range record.Fields(line) {
			f := s.fields[string(key)]
			if f == nil {
				if len(s.fields) == mostFields {
					s.full = true
					continue
				}
				f = &field{}
				s.fields[string(key)], s.order = f, append(s.order, string(key))
			}
			f.records++
			if t := typeOf(value); !slices.Contains(f.types, t) {
				f.types = append(f.types, t)
			}
			if len(f.examples) < examplesOf && !slices.Contains(f.examples, string(value)) {
				f.examples = append(f.examples, string(value))
			}
		}
	}
	return nil
}

// typeOf is the type of a value of JSON.
func typeOf(value []byte) string {
	switch value[0] {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// print prints the fields in the order in which records have them.
func (s *survey) print(a *app, form string) error {
	switch form {
	case "json":
		for _, key := range s.order {
			f := s.fields[key]
			fmt.Fprintf(a.out, `{"field":"%s","types":["%s"],"records":%d,"of":%d,"examples":[%s]}`+"\n",
				key, strings.Join(f.types, `","`), f.records, s.records, strings.Join(f.examples, ","))
		}
		return nil
	case "csv":
		w := csv.NewWriter(a.out)
		_ = w.Write([]string{"field", "types", "records", "of", "example"})
		for _, key := range s.order {
			f := s.fields[key]
			_ = w.Write([]string{named(key), strings.Join(f.types, " "), strconv.FormatInt(f.records, 10), strconv.FormatInt(s.records, 10), plain([]byte(f.examples[0]))})
		}
		w.Flush()
		return w.Error()
	}
	t := table{heads: []head{{"field", true, 0}, {"type", true, 2}, {"share", false, 1}, {"examples", true, 0}}}
	for _, key := range s.order {
		f := s.fields[key]
		t.add(cli.Safe(named(key)), strings.Join(f.types, ", "), fmt.Sprintf("%.1f %%", 100*float64(f.records)/float64(s.records)), a.examples(f.examples))
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
		text := []rune(cli.SafeLine(plain([]byte(value))))
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
