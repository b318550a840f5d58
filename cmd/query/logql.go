package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/when"
	"blobtail/internal/where"
	"blobtail/reading"
	"blobtail/reading/survey"
	"blobtail/record"
)

// logqlFlags ask a query in place of services and filters.
type logqlFlags struct {
	LogQL string `name:"logql" help:"Run a query in place of services and filters: its lines, or a table of its numbers." placeholder:"QUERY"`
	Step  string `help:"Distance of the points of a table; 0 for one, at the end of the range. The default suits the range." placeholder:"D"`
}

const (
	// mostPoints is how many points a series has at most, as over a server.
	mostPoints = 11_000
	// tableRange is the range of a table unless it is given.
	tableRange = time.Hour
)

// filterNames are the flags of a verb that select records.
func filterNames(verb *kong.Node) (names []string) {
	for _, f := range verb.Flags {
		if f.Group != nil && f.Group.Key == "Filters" {
			names = append(names, f.Name)
		}
	}
	return names
}

// ask makes the question of the flags.
func (c *readCmd) ask(a *app) (ask reading.Ask, err error) {
	switch {
	case c.LogQL == "" && c.Step != "":
		return ask, cli.Usagef("--step is the distance of the points of a --logql of numbers; add that, or for buckets: hist --by %s", cli.ShellWords(c.Step))
	case c.LogQL == "" && len(c.Services) == 0:
		return ask, errWhich(a.line(nil))
	case c.LogQL == "":
		return a.ask(c.Services, c.rangeFlags, c.filterFlags)
	case len(c.Services) > 0:
		return ask, cli.Usagef("--logql selects services and records by itself; leave out %s, or --logql", cli.ShellWords(c.Services...))
	}
	if words := cli.Words(a.verb, filterNames(a.verb)...); len(words) > 0 {
		return ask, cli.Usagef("--logql selects services and records by itself; leave out %s, or --logql", words[0])
	}
	ask.LogQL = c.LogQL
	if ask.Range, err = a.times(c.rangeFlags); err != nil {
		return ask, err
	}
	numbers, err := reading.IsTable(c.LogQL)
	switch {
	case err == nil && numbers:
		return ask, nil
	case err == nil && c.Step != "":
		return ask, cli.Usagef("--step is for a query of numbers, such as sum(rate({service=\"web\"}[5m])); this one is for lines")
	case err == nil:
		_, err = ask.Matcher(a.made)
	}
	return ask, byFlag(c.LogQL, err)
}

// byFlag names the flag of a mistake in a question with a text in LogQL, or a condition that may be one.
func byFlag(text string, err error) error {
	if bad, ok := errors.AsType[*reading.AskError](err); ok {
		if of, ok := errors.AsType[*where.Mistake](bad.Err); ok && of.Line != "" {
			return cli.Usagef("--where: %s: %s; as a search: --search %s", of.Place, of.What, cli.ShellWords(of.Line))
		}
		query := logqlMeant(text)
		if strings.HasPrefix(text, "{") {
			query = cmp.Or(query, text)
		}
		_, wrong := reading.IsTable(query)
		if query != "" && wrong == nil && (bad.Key == "logql" || bad.Key == "where" && text[0] == '{') {
			return cli.Usagef("--%s: %w; write --logql %s", bad.Key, bad.Err, cli.ShellWords(query))
		}
		return cli.Usagef("--%s: %w", bad.Key, bad.Err)
	}
	return err
}

// labelled has a printer show the lines and the labels that the stages of a query make. raw says that
// only a terminal gets safe lines.
func (p *printer) labelled(ask *reading.Ask, raw bool) {
	emit, made := ask.Labelled(p.print)
	if p.emit = emit; made == "" || !p.people {
		return
	}
	p.line = func(dst, line []byte) []byte {
		value, _ := record.Lookup(line, made)
		text := []byte(survey.Plain(value))
		if !raw || p.a.env.outTTY {
			return append(cli.AppendSafe(dst, text, "\n"), '\n')
		}
		return append(append(dst, text...), '\n')
	}
}

// isTable reports whether the flags ask for a table.
func (c *readCmd) isTable() bool {
	if c.LogQL == "" {
		return false
	}
	numbers, err := reading.IsTable(c.LogQL)
	return err == nil && numbers
}

// table prints the answer of a query with numbers.
func (c *readCmd) table(ctx context.Context, a *app, ask reading.Ask) (int, error) {
	form, err := a.form(c.Output, "pretty", "json", "csv")
	if err != nil {
		return 0, err
	}
	if words := cli.Words(a.verb, "number", "first", "reverse", "fields", "template", "count", "explain"); len(words) > 0 {
		return 0, cli.Usagef("%s is for lines, and this query gives numbers; leave it out", words[0])
	}
	switch {
	case c.Live != "" && c.Live != "auto" && a.flags.Server != "":
		return 0, cli.Usagef("--live %s is for lines: a server asks the ingesters for numbers too; leave it out", c.Live)
	case a.config.LiveOff() && c.Live == "" && a.flags.Server != "":
		return 0, cli.Usagef("BLOBTAIL_LIVE=off is for lines: a server asks the ingesters for numbers too; add --live auto")
	case c.Live == "only":
		return 0, cli.Usagef("--live only is for lines; leave it out")
	case c.Stats && a.flags.Server != "":
		return 0, cli.Usagef("--stats: a server does not tell what numbers took; leave it out")
	}
	t := reading.Table{LogQL: c.LogQL, Range: ask.Range}
	if t.Range.To == reading.Newest {
		t.Range.To = a.now.UnixNano()
	}
	if t.Range.From == reading.Oldest {
		t.Range.From = t.Range.To - int64(tableRange)
	}
	if t.Range.From >= t.Range.To {
		return 0, cli.Usagef("the range is empty: %s is not before %s", a.showTime(t.Range.From), a.showTime(t.Range.To))
	}
	if t.Step, err = c.step(t.Range); err != nil {
		return 0, err
	}
	ask.Range = t.Range
	w := whole{ask: ask, live: c.Live, listing: true}
	w.read = func(from reading.Source, _ reading.Ask) (*reading.Outcome, error) {
		a.echo(t.Range)
		rows, out, err := from.Table(ctx, t)
		if err != nil {
			return out, byFlag(c.LogQL, err)
		}
		if c.Stats {
			a.stats(out, time.Since(a.started))
		}
		points := pointsOf(rows)
		out.Records, out.Examined = int64(len(points)), 0
		if len(points) == 0 {
			a.Note("no series has a point in that range")
			return out, nil
		}
		return out, a.printPoints(form, points)
	}
	return w.run(ctx, a)
}

// step is the distance of points in a range.
func (c *readCmd) step(rng reading.Range) (step time.Duration, err error) {
	if c.Step == "" {
		return new(reading.Slices).Length(rng, rng.From, rng.To, true)
	}
	if c.Step == "0" {
		return 0, nil
	}
	step, err = config.ParseDuration(c.Step)
	if length, ok := when.Length(c.Step); ok && err != nil {
		step, err = length, nil
	}
	switch {
	case err != nil:
		return 0, cli.Usagef("--step: %w", err)
	case step < 0 || step%time.Millisecond != 0:
		return 0, cli.Usagef("--step %s: it must be some milliseconds or more, such as 1m, or 0", c.Step)
	case step > 0 && (rng.To-rng.From)/int64(step) >= mostPoints:
		return 0, cli.Usagef("--step %s makes more than %s points; give a longer one, or a shorter range", c.Step, cli.Thousands(mostPoints))
	}
	return step, nil
}

// A point is a number of a series.
type point struct {
	reading.Point
	labels []reading.Label
}

// pointsOf are the points of some series in order of time. Those of one time are in the order of
// their series.
func pointsOf(rows []reading.Row) (points []point) {
	for _, row := range rows {
		for _, p := range row.Points {
			points = append(points, point{p, row.Labels})
		}
	}
	slices.SortStableFunc(points, func(x, y point) int { return cmp.Compare(x.Time, y.Time) })
	return points
}

// number is the text of the value.
func (p *point) number() string { return strconv.FormatFloat(p.Value, 'f', -1, 64) }

// selector is the text of the labels, as LogQL has them.
func (p *point) selector() string {
	text := []byte{'{'}
	for i, l := range p.labels {
		if i > 0 {
			text = append(text, ", "...)
		}
		text = strconv.AppendQuote(append(append(text, l.Name...), '='), l.Value)
	}
	return string(append(text, '}'))
}

// printPoints prints points in a form.
func (a *app) printPoints(form string, points []point) error {
	var out bytes.Buffer
	switch form {
	case "json":
		for i := range points {
			out.Write(points[i].json(out.AvailableBuffer()))
		}
	case "csv":
		if err := csvPoints(&out, points); err != nil {
			return err
		}
	default:
		t := table{heads: []head{{"time", true, 0}, {"value", false, 0}, {"labels", true, 0}}}
		for i := range points {
			p := &points[i]
			t.add(a.at(p.Time).Format(timeLayout), p.number(), cli.SafeLine(p.selector()))
		}
		t.print(a, "-o json")
	}
	text := out.Bytes()
	if a.env.outTTY {
		text = cli.AppendSafe(nil, text, "\n")
	}
	_, err := a.out.Write(text)
	return err
}

// json appends the point as a line.
func (p *point) json(dst []byte) []byte {
	dst = fmt.Appendf(dst, `{"ts":"%s","labels":{`, rfc3339(p.Time))
	for i, l := range p.labels {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = record.AppendEscaped(append(dst, '"'), []byte(l.Name))
		dst = append(record.AppendEscaped(append(dst, `":"`...), []byte(l.Value)), '"')
	}
	value := p.number()
	if math.IsNaN(p.Value) || math.IsInf(p.Value, 0) { // JSON has no such numbers
		value = `"` + value + `"`
	}
	return append(append(append(dst, `},"value":`...), value...), "}\n"...)
}

// csvPoints writes a row for each point, with a column for each label.
func csvPoints(to *bytes.Buffer, points []point) error {
	var names []string
	for i := range points {
		for _, l := range points[i].labels {
			if !slices.Contains(names, l.Name) {
				names = append(names, l.Name)
			}
		}
	}
	slices.Sort(names)
	w := csv.NewWriter(to)
	_ = w.Write(slices.Concat([]string{"ts"}, names, []string{"value"}))
	for i := range points {
		row := make([]string, len(names), len(names)+2)
		for _, l := range points[i].labels {
			row[slices.Index(names, l.Name)] = l.Value
		}
		_ = w.Write(append(append([]string{rfc3339(points[i].Time)}, row...), points[i].number()))
	}
	w.Flush()
	return w.Error()
}
