package main

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"blobtail/internal/budget"
	"blobtail/internal/cli"
	"blobtail/query"
	"blobtail/record"
)

// contextFlags add records of the same service around the matching ones.
type contextFlags struct {
	After  *number `name:"after-context" short:"A" help:"Also the N records of the service after each match." placeholder:"N"`
	Before *number `name:"before-context" short:"B" help:"Also the N records of the service before each match." placeholder:"N"`
	Around *number `name:"around" short:"C" help:"The same as -A N -B N." placeholder:"N"`
}

// surroundings are how many records are printed around each match.
type surroundings struct {
	before, after int
}

func (c contextFlags) surroundings() (s surroundings, err error) {
	for _, flag := range []struct {
		name string
		n    *number
		to   []*int
	}{{"-C", c.Around, []*int{&s.before, &s.after}}, {"-B", c.Before, []*int{&s.before}}, {"-A", c.After, []*int{&s.after}}} {
		if flag.n == nil {
			continue
		}
		if *flag.n < 0 {
			return s, cli.Usagef("%s %d: it must not be negative", flag.name, *flag.n)
		}
		for _, to := range flag.to {
			*to = int(*flag.n)
		}
	}
	return s, nil
}

// print prints the matches of a query with the records around them.
func (s surroundings) print(ctx context.Context, _ *app, from view, q query.Query, out *printer) (query.Summary, error) {
	match, err := q.Filter.Matcher(budget.Of(ctx))
	if err != nil {
		return query.Summary{}, err
	}
	return s.read(ctx, from, q, match, out)
}

func (s surroundings) any() bool { return s.before+s.after > 0 }

// A stretch is the times of the matches of a service.
type stretch struct{ first, last int64 }

// read prints the matches of a query with the records around them, one service after
// another. First it finds the times of the matches. So it reads only the records between
// the first match and the last one once more, and some before and after.
func (s surroundings) read(ctx context.Context, from view, q query.Query, match *query.Matcher, out *printer) (query.Summary, error) {
	found := map[string]*stretch{}
	note := func(lines []byte) error {
		for line := range bytes.Lines(lines) {
			at, _ := record.LineTime(line)
			name, _ := record.LineService(line)
			if f := found[string(name)]; f != nil {
				f.first, f.last = min(f.first, at), max(f.last, at)
			} else {
				found[string(name)] = &stretch{at, at}
			}
		}
		return nil
	}
	sum, err := from.lines(ctx, q, nil, note)
	if err != nil {
		return sum, err
	}
	matches, printed := sum, groups{}
	for _, service := range slices.Sorted(maps.Keys(found)) {
		around := query.Query{Services: []string{service}, Range: q.Range, Unflushed: q.Unflushed, Expired: q.Expired}
		work, err := s.widen(ctx, from, around, found[service])
		sum.Join(&work)
		if err != nil {
			return sum, err
		}
		around.Range = query.Range{From: max(found[service].first, q.Range.From), To: q.Range.To}
		if f := found[service]; f.last < q.Range.To {
			around.Range.To = f.last + 1
		}
		printed = groups{surroundings: s, made: budget.Of(ctx), match: match, out: out, begun: printed.begun, skipped: printed.begun, records: printed.records, bytes: printed.bytes}
		work, err = from.lines(ctx, around, nil, printed.add)
		printed.release()
		sum.Join(&work)
		if err != nil {
			return sum, err
		}
	}
	// The work is that of all reads. What is counted is what was printed, and what the filter
	// left out of the first one.
	sum.Records, sum.Bytes = printed.records, printed.bytes
	sum.Examined, sum.Higher, sum.More = matches.Examined, matches.Higher, matches.More
	return sum, nil
}

// widen makes a stretch longer by the records before and after. It returns the work.
func (s surroundings) widen(ctx context.Context, from view, q query.Query, f *stretch) (sum query.Summary, err error) {
	whole := *f
	grow := func(lines []byte) error {
		for line := range bytes.Lines(lines) {
			at, _ := record.LineTime(line)
			f.first, f.last = min(f.first, at), max(f.last, at)
		}
		return nil
	}
	if s.before > 0 {
		before := q
		before.Range.To, before.Limit = whole.first, s.before
		if before.Range.From < before.Range.To {
			if sum, err = from.lines(ctx, before, nil, grow); err != nil {
				return sum, err
			}
		}
	}
	if after := q; s.after > 0 && whole.last < query.Newest {
		after.Range.From, after.First = whole.last+1, s.after
		if after.Range.From < after.Range.To {
			work, err := from.lines(ctx, after, nil, grow)
			sum.Join(&work)
			return sum, err
		}
	}
	return sum, nil
}

// groups prints the matches among the lines of a service with their surroundings, and
// separates groups that are not adjacent.
type groups struct {
	surroundings
	made  *budget.Budget
	match *query.Matcher
	out   *printer

	begun   bool
	kept    [][]byte // the latest lines that are not printed
	left    int      // of the lines after the last match
	skipped bool     // lines were left out since the last one that was printed

	records, bytes int64 // printed
}

func (g *groups) add(lines []byte) error {
	for line := range bytes.Lines(lines) {
		var err error
		switch {
		case g.match.Line(line):
			err = g.group(line)
		case g.left > 0:
			g.left--
			err = g.print(line)
		default:
			err = g.keep(line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// group prints a match, behind the kept lines.
func (g *groups) group(line []byte) error {
	if g.begun && g.skipped {
		if err := g.out.separate(); err != nil {
			return err
		}
	}
	for _, before := range g.kept {
		if err := g.print(before); err != nil {
			return err
		}
		g.made.Give(int64(len(before)))
	}
	g.begun, g.skipped, g.left, g.kept = true, false, g.after, g.kept[:0]
	return g.print(line)
}

// print prints a line.
func (g *groups) print(line []byte) error {
	g.records++
	g.bytes += int64(len(line))
	return g.out.print(line)
}

// keep keeps a line that is not printed yet.
func (g *groups) keep(line []byte) error {
	if len(g.kept) == g.before {
		g.skipped = true
		if g.before == 0 {
			return nil
		}
		g.made.Give(int64(len(g.kept[0])))
		g.kept = g.kept[1:] // not moved: append makes room once in a while
	}
	if err := g.made.Take(int64(len(line))); err != nil {
		return err
	}
	g.kept = append(g.kept, bytes.Clone(line))
	return nil
}

// release drops the lines that are not printed.
func (g *groups) release() {
	for _, line := range g.kept {
		g.made.Give(int64(len(line)))
	}
	g.kept = nil
}
