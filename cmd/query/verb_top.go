package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/units"
	"blobtail/reading"
	"blobtail/reading/survey"
	"blobtail/record"
)

type topCmd struct {
	Field       string   `arg:"" help:"The field, such as status, level or http.method; several with commas, as status,method, for their combinations."`
	Services    []string `arg:"" name:"service" help:"Services, or globs such as 'web-*' and '*'."`
	Number      *number  `short:"n" aliases:"limit" help:"The N most frequent values (10); 0 for all." placeholder:"N"`
	rangeFlags  `group:"Time"`
	filterFlags `group:"Filters"`
	Output      string      `short:"o" help:"pretty, json (the default into a pipe) or csv." placeholder:"FORM"`
	Stats       bool        `help:"Say on stderr what the read took."`
	Live        string      `help:"auto, off or only: records that are in no blob yet (auto)." placeholder:"WHEN"`
	MaxBytes    config.Size `help:"Most bytes to read from a remote store without a range." default:"10GiB" placeholder:"SIZE"`
}

const (
	defaultTop = 10
	// mostValues and mostValueBytes bound the memory for values.
	mostValues     = 1_000_000
	mostValueBytes = 256 << 20
)

// fields are the fields of the argument. A comma of a name has a backslash, as in --fields.
func (c *topCmd) fields() (names []string, err error) {
	list := c.Field
	if strings.HasSuffix(list, ",") && !strings.HasSuffix(list, `\,`) {
		list += " " // the split would leave out an empty end
	}
	for _, name := range kong.SplitEscaped(list, ',') {
		name = strings.TrimSpace(name)
		switch {
		case name == "":
			return nil, cli.Usagef("%s: a field between the commas is missing; want a list such as status,method", c.Field)
		case slices.Contains(names, name):
			return nil, cli.Usagef("%s: %s is given twice; leave one out", c.Field, name)
		}
		names = append(names, name)
	}
	return names, nil
}

func (c *topCmd) run(ctx context.Context, a *app) (int, error) {
	ask, err := a.ask(c.Services, c.rangeFlags, c.filterFlags)
	if err != nil {
		return 0, err
	}
	form, err := a.form(c.Output, "pretty", "json", "csv")
	if err != nil {
		return 0, err
	}
	fields, err := c.fields()
	if err != nil {
		return 0, err
	}
	if form == "json" && len(fields) > 1 && slices.Contains(fields, "records") {
		return 0, cli.Usagef("a field called records has no place in -o json, where that is the number; use -o csv")
	}
	most := defaultTop
	if c.Number != nil {
		most = int(*c.Number)
	}
	if most < 0 {
		return 0, cli.Usagef("-n %d: it must be positive, or 0 for all", most)
	}
	w := whole{
		ask: ask, live: c.Live, stats: c.Stats, most: &c.MaxBytes,
		read: func(from reading.Source, ask reading.Ask) (*reading.Outcome, error) {
			t := top{a: a, form: form, most: most, fields: fields}
			t.s = survey.New(survey.Options{Only: fields, Together: true, Values: mostValues, Bytes: mostValueBytes})
			ask.Fields = fields
			out, err := a.records(ctx, from, ask, func(lines []byte) error {
				if err := t.s.Add(lines); err != nil {
					return err
				}
				if t.s.Together().Capped {
					return cli.Usagef("%s has more than %s different values, or they are longer than %s; give a shorter range or a filter",
						c.Field, cli.Thousands(mostValues), bytesText(mostValueBytes))
				}
				return nil
			})
			if err == nil {
				err = t.print(out)
			}
			return out, err
		},
	}
	return w.run(ctx, a)
}

// cell is a value in one line that has room for so many characters; 0: for any number. An empty text
// shows its quotes, and a field that is not there a dash.
func cell(value string, room int) string {
	switch value {
	case "":
		return "-"
	case `""`:
		return value
	}
	text := []rune(strings.ReplaceAll(cli.SafeLine(survey.Plain([]byte(value))), "\t", `\t`))
	if room > 0 && len(text) > room {
		text = append(text[:room-1], '…')
	}
	return string(text)
}

// A top prints the most frequent combinations of values of some fields.
type top struct {
	a      *app
	form   string
	most   int
	fields []string
	s      *survey.Survey
}

// print prints the combinations. Those of equal number are in the order of their text.
func (t *top) print(out *reading.Outcome) error {
	f := t.s.Together()
	all := f.Top(t.most)
	if len(all) < f.Distinct {
		out.Warnings = append(out.Warnings, fmt.Errorf("%s of %s values, the most frequent; -n 0 for all", cli.Thousands(t.most), cli.Thousands(f.Distinct)))
	}
	out.Records = f.Present
	out.Warnings = append(out.Warnings, t.missing()...)
	if f.Present == 0 {
		return nil
	}
	switch t.form {
	case "json":
		t.json(all)
	case "csv":
		return t.csv(all)
	default:
		t.table(all)
	}
	return nil
}

// missing tells how many records have not the fields.
func (t *top) missing() (notes []error) {
	present := map[string]int64{}
	for _, f := range t.s.Fields() {
		present[f.Name] = f.Present
	}
	for _, name := range t.fields {
		switch missing := t.s.Records - present[name]; {
		case missing == 0:
		case present[name] == 0:
			notes = append(notes, fmt.Errorf("none of %s has the field %s; logquery fields lists them", units.Count(missing, "record"), name))
		default:
			notes = append(notes, fmt.Errorf("%s of %s have no %s", cli.Thousands(int(missing)), units.Count(t.s.Records, "record"), name))
		}
	}
	return notes
}

func (t *top) json(all []survey.Value) {
	for _, value := range all {
		line := []byte("{")
		if len(t.fields) == 1 {
			line = append(append(line, `"value":`...), value.Text...)
		} else {
			for i, text := range survey.Split(value.Text) {
				if i > 0 {
					line = append(line, ',')
				}
				line = append(record.AppendEscaped(append(line, '"'), []byte(t.fields[i])), `":`...)
				line = append(line, cmp.Or(text, "null")...)
			}
		}
		t.a.out.Write(append(strconv.AppendInt(append(line, `,"records":`...), value.Count, 10), "}\n"...))
	}
}

func (t *top) csv(all []survey.Value) error {
	w := csv.NewWriter(t.a.out)
	_ = w.Write(append(slices.Clone(t.fields), "records"))
	for _, value := range all {
		row := survey.Split(value.Text)
		for i, text := range row {
			row[i] = survey.Plain([]byte(text))
		}
		_ = w.Write(append(row, strconv.FormatInt(value.Count, 10)))
	}
	w.Flush()
	return w.Error()
}

func (t *top) table(all []survey.Value) {
	table := table{heads: []head{{"records", false, 0}, {"share", false, 1}}}
	for _, name := range t.fields {
		table.heads = append(table.heads, head{cli.Safe(name), true, 0})
	}
	room := 0
	if width := t.a.width(); width > 0 {
		room = max((width-len("records  100.0 %"))/len(t.fields)-len("  "), 20)
	}
	for _, value := range all {
		share := strconv.FormatFloat(100*float64(value.Count)/float64(t.s.Records), 'f', 1, 64)
		row := []string{cli.Thousands(int(value.Count)), share + " %"}
		for _, text := range survey.Split(value.Text) {
			row = append(row, cell(text, room))
		}
		table.add(row...)
	}
	table.print(t.a, "-o json")
}
