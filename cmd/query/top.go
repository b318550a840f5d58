package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/reading"
	"blobtail/record"
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

// errValues ends a count of a field such as an id.
var errValues = errors.New("too many values")

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
			values := values{counts: map[string]int64{}}
			ask.Fields = []string{c.Field}
			out, err := a.records(ctx, from, ask, func(lines []byte) error { return values.add(lines, c.Field) })
			if errors.Is(err, errValues) {
				return out, cli.Usagef("%s has more than %s different values; give a shorter range or a filter", c.Field, cli.Thousands(mostValues))
			}
			if err == nil {
				err = c.print(a, form, most, &values, out)
			}
			return out, err
		},
	}
	return w.run(ctx, a)
}

// values counts the values of a field.
type values struct {
	counts  map[string]int64 // by value, as it is stored
	records int64
	with    int64 // records that have the field
}

func (v *values) add(lines []byte, field string) error {
	for line := range bytes.Lines(lines) {
		v.records++
		value, ok := record.Lookup(line, field)
		if !ok {
			continue
		}
		v.with++
		if _, known := v.counts[string(value)]; !known && len(v.counts) == mostValues {
			return errValues
		}
		v.counts[string(value)]++
	}
	return nil
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
func (c *topCmd) print(a *app, form string, most int, v *values, out *reading.Outcome) error {
	all := make([]string, 0, len(v.counts))
	for value := range v.counts {
		all = append(all, value)
	}
	slices.SortFunc(all, func(x, y string) int { return cmp.Or(cmp.Compare(v.counts[y], v.counts[x]), cmp.Compare(x, y)) })
	if most > 0 && len(all) > most {
		out.Warnings = append(out.Warnings, fmt.Errorf("%s of %s values, the most frequent; -n 0 for all", cli.Thousands(most), cli.Thousands(len(all))))
		all = all[:most]
	}
	out.Records = v.with
	if missing := v.records - v.with; v.with == 0 && missing > 0 {
		out.Warnings = append(out.Warnings, fmt.Errorf("none of %s records has the field %s; logquery fields lists them", cli.Thousands(int(missing)), c.Field))
		return nil
	} else if missing > 0 {
		out.Warnings = append(out.Warnings, fmt.Errorf("%s of %s records have no %s", cli.Thousands(int(missing)), cli.Thousands(int(v.records)), c.Field))
	}
	share := func(n int64) string { return strconv.FormatFloat(100*float64(n)/float64(v.records), 'f', 1, 64) }
	switch form {
	case "json":
		for _, value := range all {
			a.out.Write([]byte(`{"value":` + value + `,"records":` + strconv.FormatInt(v.counts[value], 10) + "}\n"))
		}
	case "csv":
		w := csv.NewWriter(a.out)
		_ = w.Write([]string{c.Field, "records"})
		for _, value := range all {
			_ = w.Write([]string{plain([]byte(value)), strconv.FormatInt(v.counts[value], 10)})
		}
		w.Flush()
		return w.Error()
	default:
		t := table{heads: []head{{"records", false, 0}, {"share", false, 1}, {cli.Safe(c.Field), true, 0}}}
		for _, value := range all {
			t.add(cli.Thousands(int(v.counts[value])), share(v.counts[value])+" %", a.cell(value))
		}
		t.print(a, "-o json")
	}
	return nil
}
