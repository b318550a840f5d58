package main

import (
	"context"
	"errors"
	"fmt"

	"blobtail/internal/budget"
	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/newest/live"
	"blobtail/query"
	"blobtail/record/where"
)

// defaultOnTerminal is how many records a terminal gets unless asked for more.
const defaultOnTerminal = 1000

// filterFlags select records.
type filterFlags struct {
	Level  string   `short:"l" help:"Only these levels: error,critical or warn+." placeholder:"LEVELS"`
	Fixed  []string `short:"F" sep:"none" help:"Only records with this text; all of them if repeated." placeholder:"TEXT"`
	Words  []string `short:"w" sep:"none" help:"The same, but the text is not a part of longer words." placeholder:"WORDS"`
	Regexp []string `short:"g" sep:"none" help:"Only records that match (RE2); all of them if repeated." placeholder:"REGEX"`
	Where  string   `help:"Only records for which this is true, such as 'status >= 500 and path startsWith \"/api\"'." placeholder:"EXPR"`
	Invert bool     `short:"v" help:"Only records that -F, -w and -g do not match."`
	Ignore bool     `short:"i" name:"ignore-case" help:"Upper and lower case are the same for -F, -w and -g."`
}

func (f filterFlags) filter(made *budget.Budget) (query.Filter, error) {
	out := query.Filter{Texts: f.Fixed, Words: f.Words, Exprs: f.Regexp, Invert: f.Invert, Fold: f.Ignore}
	if f.Level != "" {
		var err error
		if out.Levels, err = query.ParseLevels(f.Level); err != nil {
			return out, cli.Usagef("--level: %w", err)
		}
	}
	if f.Where != "" {
		var err error
		if out.Where, err = where.Parse(made, f.Where); err != nil {
			return out, cli.Usagef("--where: %w", err)
		}
	}
	return out, nil
}

// query makes the query of the flags that several verbs have.
func (a *app) query(services []string, times rangeFlags, filter filterFlags) (q query.Query, err error) {
	if q.Services, err = servicesOf(services); err == nil {
		q.Range, err = a.times(times)
	}
	if err == nil {
		q.Filter, err = filter.filter(a.made)
	}
	return q, err
}

type readCmd struct {
	Services     []string `arg:"" name:"service" help:"Services, or globs such as 'web-*' and '*'."`
	rangeFlags   `group:"Time"`
	filterFlags  `group:"Filters"`
	contextFlags `group:"Filters"`
	Number       *number `short:"n" aliases:"tail,lines,limit" help:"The newest N, oldest first; 0 for all. 1000 on a terminal." placeholder:"N"`
	First        *number `help:"The oldest N; 0 for all." placeholder:"N"`
	Reverse      bool    `short:"r" help:"Newest first."`
	outputFlags  `group:"Output"`
	Count        bool        `help:"Print only how many records there are."`
	Stats        bool        `help:"Say on stderr what the read took."`
	Explain      bool        `help:"Print what would be read, and read only indexes."`
	Live         string      `help:"auto, off or only: records that are in no blob yet (auto)." placeholder:"WHEN"`
	MaxBytes     config.Size `help:"Most bytes to read from a remote store without a range." default:"10GiB" placeholder:"SIZE"`
}

// limits returns the limits of newest and of oldest records; 0 is all.
func (c *readCmd) limits(a *app) (newest, oldest int, err error) {
	if c.Number != nil {
		newest = int(*c.Number)
	}
	if c.First != nil {
		oldest = int(*c.First)
	}
	switch {
	case newest < 0:
		return 0, 0, cli.Usagef("-n %d: it must be positive, or 0 for all", newest)
	case oldest < 0:
		return 0, 0, cli.Usagef("--first %d: it must be positive, or 0 for all", oldest)
	case newest > 0 && oldest > 0:
		return 0, 0, cli.Usagef("-n and --first contradict each other; leave one out")
	case a.env.outTTY && c.Number == nil && c.First == nil && !c.Count:
		newest = defaultOnTerminal
	}
	return newest, oldest, nil
}

// around returns how many records are printed around each match of a query.
func (c *readCmd) around(q *query.Query) (surroundings, error) {
	s, err := c.surroundings()
	switch {
	case err != nil || !s.any():
	case !q.Filter.ReadsLines() && q.Filter.Levels == 0:
		err = cli.Usagef("-A, -B and -C show what is around matches; add --level, -F, -w, -g or --where")
	case c.Count:
		err = cli.Usagef("--count counts matches; leave out -A, -B and -C")
	case c.Reverse:
		err = cli.Usagef("-A, -B and -C are in order of time; leave out -r")
	}
	return s, err
}

func (c *readCmd) run(ctx context.Context, a *app) (int, error) {
	q, err := a.query(c.Services, c.rangeFlags, c.filterFlags)
	if err != nil {
		return 0, err
	}
	q.Reverse = c.Reverse
	if q.Limit, q.First, err = c.limits(a); err != nil {
		return 0, err
	}
	out, err := a.printer(c.outputFlags, q.Filter)
	if err != nil {
		return 0, err
	}
	around, err := c.around(&q)
	if err != nil {
		return 0, err
	}
	wanted := q
	if around.any() {
		q.Filter, q.Limit, q.First = query.Filter{}, 0, 0 // what is around the matches is wanted too
	}
	q.Ahead = a.config.Store.Remote() && !a.config.Store.Logs() && !c.Explain && !c.Count && !around.any()
	w := whole{
		query: q, live: c.Live, stats: c.Stats, explains: c.Explain, most: &c.MaxBytes,
		print: func(from view, q query.Query) (query.Summary, error) {
			print := c.print
			if c.Explain {
				q.Filter, q.Limit, q.First = wanted.Filter, wanted.Limit, wanted.First
				return a.explain(ctx, from, q)
			}
			if around.any() {
				q.Filter, q.Limit, q.First = wanted.Filter, wanted.Limit, wanted.First
				print = around.print
			}
			sum, err := print(ctx, a, from, q, out)
			if sum.More && c.Number == nil && c.First == nil && !c.Count {
				sum.Warnings = append(sum.Warnings, fmt.Errorf("these are the newest %d, there is more; -n 0 for all", q.Limit))
			}
			if !c.Count {
				out.end()
			}
			if bad := out.problem(); bad != nil {
				sum.Lack(bad)
			}
			return sum, err
		},
	}
	return w.run(ctx, a)
}

func (c *readCmd) print(ctx context.Context, a *app, from view, q query.Query, out *printer) (query.Summary, error) {
	if !c.Count {
		return from.lines(ctx, q, nil, out.print)
	}
	n, sum, err := from.count(ctx, q)
	// Of an unknown service too: scripts expect a number.
	if _, none := errors.AsType[*query.NoServiceError](err); none || err == nil {
		fmt.Fprintln(a.out, n)
	}
	return sum, err
}

// absent reports names that are no service, beside others that are. Nothing is missing because of
// them, but the user may have meant another name.
func (a *app) absent(ctx context.Context, names []*query.NoServiceError) {
	for _, none := range names {
		if a.held(ctx, none.Name) {
			a.Note("%s", inNoBlob(none))
		} else {
			a.Complain("%s", a.unknown(ctx, none))
		}
	}
}

// verdict returns the exit code of a read, and reports its warnings and problems.
func (a *app) verdict(ctx context.Context, out *query.Outcome) int {
	for _, err := range out.Warnings {
		a.Note("%v", err)
	}
	a.absent(ctx, out.Absent)
	problems := out.Problems()
	for i, err := range problems {
		if gone, ok := errors.AsType[*live.NoAnswerError](err); ok && gone.Status == 0 {
			problems[i] = fmt.Errorf("%w; is one running there? logquery ingesters lists them", err)
		}
	}
	n := a.Problems(problems)
	switch {
	case !out.Complete():
		parts := "1 part"
		if n > 1 {
			parts = fmt.Sprintf("%d parts", n)
		}
		a.Complain("INCOMPLETE: %s could not be read", parts)
		return cli.Incomplete
	case out.Records == 0:
		if out.Examined > 0 {
			a.Note("0 of %s records", cli.Thousands(int(out.Examined)))
		}
		return cli.Nothing
	}
	return cli.OK
}
