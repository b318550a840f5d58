package main

import (
	"bytes"
	"context"
	"maps"
	"math"
	"slices"

	"blobtail/internal/budget"
	"blobtail/internal/cli"
	"blobtail/reading"
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

func (s surroundings) any() bool { return s.before > 0 || s.after > 0 }

// A stretch is the times of the matches of a service.
type stretch struct{ first, last int64 }

// add widens the stretch by lines.
func (f *stretch) add(lines []byte) error {
	for line := range bytes.Lines(lines) {
		at, _ := record.LineTime(line)
		f.first, f.last = min(f.first, at), max(f.last, at)
	}
	return nil
}

// around reads the matches of a question with the records around them.
type around struct {
	surroundings
	a    *app
	from reading.Source
	all  *reading.Outcome // of all reads
}

// read prints the matches of a question with the records around them, one service after
// another. First it finds the times of the matches. So it reads only the records between
// the first match and the last one once more, and some before and after.
func (r *around) read(ctx context.Context, ask reading.Ask, out *printer) error {
	match, err := ask.Matcher(budget.Of(ctx))
	if err != nil {
		return err
	}
	found := map[string]*stretch{}
	err = r.records(ctx, ask, func(lines []byte) error {
		for line := range bytes.Lines(lines) {
			name, _ := record.LineService(line)
			f := found[string(name)]
			if f == nil {
				f = &stretch{math.MaxInt64, math.MinInt64}
				found[string(name)] = f
			}
			_ = f.add(line)
		}
		return nil
	})
	if err != nil {
		return err
	}
	examined, higher, more, printed := r.all.Examined, r.all.Higher, r.all.More, groups{}
	for _, service := range slices.Sorted(maps.Keys(found)) {
		f := found[service]
		near := reading.Ask{Services: []string{service}, Range: ask.Range, Live: ask.Live}
		if err := r.widen(ctx, near, f); err != nil {
			return err
		}
		near.Range.From = max(f.first, ask.Range.From)
		if f.last < ask.Range.To {
			near.Range.To = f.last + 1
		}
		printed = groups{surroundings: r.surroundings, made: budget.Of(ctx), match: match, out: out, emit: ask.Parsed(out.print), begun: printed.begun, skipped: printed.begun, records: printed.records, bytes: printed.bytes}
		err := r.records(ctx, near, printed.add)
		printed.release()
		if err != nil {
			return err
		}
	}
	// The work is that of all reads. Records and Bytes count the printed records. The numbers of
	// records that the filter left out are those of the first read.
	r.all.Records, r.all.Bytes = printed.records, printed.bytes
	r.all.Examined, r.all.Higher, r.all.More = examined, higher, more
	return nil
}

// widen makes a stretch longer by the records before and after.
func (r *around) widen(ctx context.Context, near reading.Ask, f *stretch) error {
	whole := *f
	if before := near; r.before > 0 {
		before.Range.To, before.Limit = whole.first, r.before
		if before.Range.From < before.Range.To {
			if err := r.records(ctx, before, f.add); err != nil {
				return err
			}
		}
	}
	if after := near; r.after > 0 && whole.last < reading.Newest {
		after.Range.From, after.First = whole.last+1, r.after
		if after.Range.From < after.Range.To {
			return r.records(ctx, after, f.add)
		}
	}
	return nil
}

// records reads the records of a part. An error or a note of several parts counts once.
func (r *around) records(ctx context.Context, ask reading.Ask, emit func(lines []byte) error) error {
	out, err := r.a.records(ctx, r.from, ask, emit)
	sum := out.Summary()
	r.all.Join(&sum)
	for _, note := range out.Notes {
		if !slices.Contains(r.all.Notes, note) {
			r.all.Notes = append(r.all.Notes, note)
		}
	}
	for _, gap := range out.Gaps {
		if !slices.Contains(r.all.Gaps, gap) {
			r.all.Gaps = append(r.all.Gaps, gap)
		}
	}
	return err
}

// groups prints the matches among the lines of a service with their surroundings, and
// separates groups that are not adjacent.
type groups struct {
	surroundings
	made  *budget.Budget
	match *reading.Matcher
	out   *printer
	emit  func(line []byte) error // prints a stored line

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
	return g.emit(line)
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
