package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"blobtail/internal/cli"
	"blobtail/reading"
	"blobtail/storage"
)

// defaultTail is how many records tail shows unless asked for more or fewer.
const defaultTail = 100

type tailCmd struct {
	Services    []string `arg:"" name:"service" help:"Services, or globs such as 'web-*' and '*'."`
	Number      *number  `short:"n" aliases:"tail,lines,limit" help:"The newest N, oldest first (100); with --since 0 for all." placeholder:"N"`
	sinceFlags  `kong:"-"`
	Times       kong.Plugins `embed:""`
	filterFlags `group:"Filters"`
	outputFlags `kong:"-"`
	Form        kong.Plugins `embed:"" group:"Output"`
	noteFlags   `kong:"-"`
	Notes       kong.Plugins `embed:""`
}

// choose sets the flags of the parser.
func (c *tailCmd) choose(parts cli.Parts) {
	c.filterFlags.choose(parts)
	c.Times, c.Form, c.Notes = parts(&c.sinceFlags), parts(&c.outputFlags), parts(&c.noteFlags)
}

// sinceFlags say where a tail begins, and whether it ends.
type sinceFlags struct {
	Since  string `short:"s" help:"Nothing older than this long ago." placeholder:"D"`
	Follow bool   `short:"f" help:"Go on with what comes in, until interrupted."`
	After  string `help:"Go on where another tail -f ended." placeholder:"CURSOR"`
}

// noteFlags say what a tail reads and notes.
type noteFlags struct {
	Stats bool   `help:"Say on stderr what the read took."`
	Live  string `help:"auto or off: whether to ask ingesters for what they hold (auto)." placeholder:"WHEN"`
}

// ask makes the question of the flags, and the cursor to go on from.
func (c *tailCmd) ask(a *app) (q reading.Ask, after *reading.Cursor, err error) {
	if q, err = a.ask(c.Services, rangeFlags{Since: c.Since}, c.filterFlags); err != nil {
		return q, nil, err
	}
	q.Limit = defaultTail
	if c.Since != "" {
		q.Limit = 0
	}
	if c.Number != nil {
		q.Limit = int(*c.Number)
	}
	switch {
	case q.Limit < 0:
		return q, nil, cli.Usagef("-n %d: it must not be negative", q.Limit)
	case q.Limit == 0 && c.Since == "" && !c.Follow && c.After == "":
		return q, nil, cli.Usagef("-n 0 shows nothing; add -f to follow, or --since")
	case c.After != "" && (c.Number != nil || c.Since != ""):
		return q, nil, cli.Usagef("--after goes on where another tail ended; leave out -n and --since")
	case c.After != "":
		cursor, err := reading.ParseCursor(c.After)
		if err != nil {
			return q, nil, cli.Usagef("--after %.60s: %w", c.After, err)
		}
		return q, &cursor, nil
	}
	return q, nil, nil
}

func (c *tailCmd) run(ctx context.Context, a *app) (int, error) {
	ask, after, err := c.ask(a)
	if err != nil {
		return 0, err
	}
	out, err := a.printer(c.outputFlags, &ask)
	if err != nil {
		return 0, err
	}
	mode, err := a.liveMode(c.Live, "auto", "off")
	if err != nil {
		return 0, err
	}
	from, err := a.open(ctx, mode == reading.Auto)
	if err != nil {
		return 0, err
	}
	if a.flags.Server != "" && mode == reading.Off {
		return 0, cli.Usagef("--live off is for a store: a server asks the ingesters itself")
	}
	if a.config.Store.Logs() && (c.Follow || after != nil) {
		return 0, cli.Usagef("Azure's own logs cannot be followed: records come minutes to an hour late, in any order; run tail or read again")
	}
	if c.Follow || after != nil || ask.Limit == 0 {
		return c.follow(ctx, a, from, out, ask, after)
	}
	a.echo(ask.Range)
	ask.Here.Absent = func(names []*reading.NoServiceError) { a.absent(ctx, names) }
	result, err := from.Tail(ctx, ask, out.print)
	if result == nil {
		result = &reading.Outcome{}
	}
	if ended := out.end(); err == nil {
		err = ended
	}
	if bad := out.problem(); bad != nil {
		result.Lack(bad)
	}
	w := whole{ask: ask, stats: c.Stats}
	return w.end(ctx, a, result, err)
}

// follow prints new records until it is interrupted, and then the command to go on.
func (c *tailCmd) follow(ctx context.Context, a *app, from reading.Source, out *printer, ask reading.Ask, after *reading.Cursor) (int, error) {
	printed := false
	var told reading.Outcome
	o := reading.FollowOptions{After: after, Once: !c.Follow}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	lack := func(problem error) {
		if told.Complete() { // a tail may last for weeks, and one is enough
			told.Lack(problem)
		}
		a.Complain("%v", problem)
		if errors.Is(problem, storage.ErrOlder) {
			cancel(problem)
		}
	}
	o.Emit = func(lines []byte) error {
		printed = true
		if err := out.print(lines); err != nil {
			return err
		}
		if bad := out.problem(); bad != nil && told.Complete() {
			lack(bad)
		}
		return a.out.flush()
	}
	o.Report = func(r *reading.Report) {
		for _, err := range r.Problems {
			lack(err)
		}
		if o.Once {
			a.absent(ctx, r.Absent)
		} else {
			for _, none := range r.Absent {
				a.Complain("%v yet; its records are shown when they come", none)
			}
		}
		a.report(r)
	}
	if pipe, ok := a.env.stdout.(*os.File); ok {
		watchReader(ctx, pipe, cancel)
	}
	cursor, err := from.Follow(ctx, ask, o)
	if ended := out.end(); err == nil {
		err = ended
	} else if ended != nil {
		a.Complain("%v", ended)
	}
	var none *reading.NoServiceError
	switch {
	case errors.Is(context.Cause(ctx), syscall.EPIPE):
		return cli.OK, nil
	case errors.Is(context.Cause(ctx), storage.ErrOlder):
		return cli.Usage, nil
	case errors.As(err, &none):
		return 0, err
	case errors.Is(err, context.Canceled) && cursor.Last.Time != 0:
		c.noteGoOn(a, cursor)
		return cli.Interrupted, nil
	case err != nil:
		return 0, err
	case !told.Complete():
		return lacking(told.Problems()...), nil
	case !printed:
		return cli.Nothing, nil
	}
	return cli.OK, nil
}

// noteGoOn prints the command that goes on where a follower was interrupted.
func (c *tailCmd) noteGoOn(a *app, cursor reading.Cursor) {
	if a.env.errTTY && !a.Quiet {
		fmt.Fprintln(a.env.stderr) // below the terminal's ^C
	}
	again := append(slices.Clone(c.Services), cli.Words(a.verb, append(filterNames(a.verb), "output", "fields", "template", "live")...)...)
	again = append(again, a.where()...)
	a.Note("to go on from here: logquery tail %s -f --after %s", cli.ShellWords(again...), cursor)
}

// where returns the flags of the store, for a command that reads the same one. Values
// from the environment are left out.
func (a *app) where() (out []string) {
	for _, f := range []struct{ flag, value, env string }{
		{"--config", a.flags.Config, "BLOBTAIL_CONFIG"}, {"--store", a.flags.Store.String(), "BLOBTAIL_STORE"}, {"--live-url", a.flags.LiveURL, "BLOBTAIL_LIVE"},
		{"--token-file", a.flags.TokenFile, "BLOBTAIL_TOKEN_FILE"}, {"--server", a.flags.Server, "BLOBTAIL_SERVER"},
	} {
		if f.value != "" && f.value != a.env.getenv(f.env) {
			out = append(out, f.flag, f.value)
		}
	}
	if a.flags.PlainHTTP {
		out = append(out, "--plain-http")
	}
	return out
}

// gap prints the span with more records than were shown, and how to see them, also with -q: the
// output lacks them.
func (a *app) gap(g reading.Gap) {
	from, to := a.at(g.From), a.at(g.To)
	most := ""
	if g.AtMost {
		most = "up to "
	}
	words := append([]string{
		g.Service, "--from", from.Format(time.RFC3339Nano), "--to", to.Add(time.Nanosecond).Format(time.RFC3339Nano),
	}, a.where()...)
	fmt.Fprintf(a.env.stderr, "... %s%s more between %s and %s: logquery %s\n",
		most, cli.Thousands(g.Records), from.Format(time.TimeOnly), to.Format(time.TimeOnly), cli.Safe(cli.ShellWords(words...)))
}
