package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"

	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/reading"
	"blobtail/reading/survey"
)

type topCmd struct {
	Field       string   `arg:"" help:"The field, such as status, level or http.method."`
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
	// mostValues bounds the memory for values.
	mostValues = 1_000_000
)

func (c *topCmd) run(ctx context.Context, a *app) (int, error) {
	ask, err := a.ask(c.Services, c.rangeFlags, c.filterFlags)
	if err != nil {
		return 0, err
	}
	form, err := a.form(c.Output, "pretty", "json", "csv")
	if err != nil {
		return 0, err
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
			s := survey.New(survey.Options{Only: []string{c.Field}, Values: mostValues})
			ask.Fields = []string{c.Field}
			out, err := a.records(ctx, from, ask, func(lines []byte) error {
				if err := s.Add(lines); err != nil {
					return err
				}
				if fields := s.Fields(); len(fields) > 0 && fields[0].Capped {
					return cli.Usagef("%s has more than %s different values; give a shorter range or a filter", c.Field, cli.Thousands(mostValues))
				}
				return nil
			})
			if err == nil {
				err = c.print(a, form, most, s, out)
			}
			return out, err
		},
	}
	return w.run(ctx, a)
}

// cell is a value in one line that the terminal has room for. An empty text shows its quotes.
func (a *app) cell(value string) string {
	if value == `""` {
		return value
	}
	text := []rune(strings.ReplaceAll(cli.SafeLine(plain([]byte(value))), "\t", `\t`))
	if room := a.width() - len("records  100.0 %  "); a.width() > 0 && len(text) > max(room, 20) {
		text = append(text[:max(room, 20)-1], '…')
	}
	return string(text)
}

// print prints the most frequent values. Those of equal number are in the order of their
// text.
func (c *topCmd) print(a *app, form string, most int, s *survey.Survey, out *reading.Outcome) error {
	f := &survey.Field{}
	if fields := s.Fields(); len(fields) > 0 {
		f = fields[0]
	}
	all := f.Top(most)
	if len(all) < f.Distinct {
		out.Warnings = append(out.Warnings, fmt.Errorf("%s of %s values, the most frequent; -n 0 for all", cli.Thousands(most), cli.Thousands(f.Distinct)))
	}
	out.Records = f.Present
	if missing := s.Records - f.Present; f.Present == 0 && missing > 0 {
		out.Warnings = append(out.Warnings, fmt.Errorf("none of %s records has the field %s; logquery fields lists them", cli.Thousands(int(missing)), c.Field))
		return nil
	} else if missing > 0 {
		out.Warnings = append(out.Warnings, fmt.Errorf("%s of %s records have no %s", cli.Thousands(int(missing)), cli.Thousands(int(s.Records)), c.Field))
	}
	share := func(n int64) string { return strconv.FormatFloat(100*float64(n)/float64(s.Records), 'f', 1, 64) }
	switch form {
	case "json":
		for _, value := range all {
			a.out.Write([]byte(`{"value":` + value.Text + `,"records":` + strconv.FormatInt(value.Count, 10) + "}\n"))
		}
	case "csv":
		w := csv.NewWriter(a.out)
		_ = w.Write([]string{c.Field, "records"})
		for _, value := range all {
			_ = w.Write([]string{plain([]byte(value.Text)), strconv.FormatInt(value.Count, 10)})
		}
		w.Flush()
		return w.Error()
	default:
		t := table{heads: []head{{"records", false, 0}, {"share", false, 1}, {cli.Safe(c.Field), true, 0}}}
		for _, value := range all {
			t.add(cli.Thousands(int(value.Count)), share(value.Count)+" %", a.cell(value.Text))
		}
		t.print(a, "-o json")
	}
	return nil
}
