package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/alecthomas/kong"

	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/openstore"
	"blobtail/query"
)

// grammar is the command line. Only the store and the ingester can come from the
// environment.
type grammar struct {
	cli.Settings
	LiveURL  string          `name:"live-url" help:"URL of an ingester to ask for records that are in no blob yet." placeholder:"URL" env:"BLOBTAIL_LIVE"`
	Timezone string          `help:"Zone of times without one, and of those shown (local)." placeholder:"ZONE"`
	UTC      bool            `short:"u" name:"utc" help:"The same as --timezone UTC."`
	Color    string          `help:"auto, always or never." enum:"auto,always,never" default:"auto"`
	Quiet    bool            `short:"q" help:"No notes on stderr, only errors."`
	Version  cli.VersionFlag `help:"Print the version."`

	Read      readCmd      `cmd:"" help:"Print records in order of time (the default)."`
	Tail      tailCmd      `cmd:"" help:"Print the newest records; with -f go on with what comes in."`
	Hist      histCmd      `cmd:"" help:"Count records by time and level."`
	Ls        lsCmd        `cmd:"" help:"List services; the days of one; the blobs of a day."`
	Ingesters ingestersCmd `cmd:"" help:"List the ingesters: who is alive, lane, oldest unflushed record, version."`
	Cat       catCmd       `cmd:"" help:"Print the lines of one blob, of the store or in a file."`
	Verify    verifyCmd    `cmd:"" help:"Check every blob: checksums, order, metadata, name."`
	Bill      billCmd      `cmd:"" help:"Tell who logs how much, and what it costs here and would cost elsewhere."`
	Vers      versionCmd   `cmd:"" name:"version" help:"Print the version."`
}

type versionCmd struct{}

func (versionCmd) run(_ context.Context, a *app) (int, error) {
	fmt.Fprintln(a.out, cli.Build(a.Name))
	return cli.OK, nil
}

// rangeFlags select a range of times.
type rangeFlags struct {
	From  string `help:"Oldest time (included)." placeholder:"T"`
	To    string `help:"Newest time (not included)." placeholder:"T"`
	Since string `help:"The last so long, up to now or --to." placeholder:"D"`
}

// app is one run of the command.
type app struct {
	cli.Console
	env     environment
	flags   grammar
	verb    *kong.Node
	config  config.Config    // under the flags
	store   *openstore.Store // nil until open
	color   bool
	now     time.Time // at the start, in the zone of the user
	started time.Time
	out     *output
}

// verb is one command of the grammar.
type verb interface {
	run(ctx context.Context, a *app) (code int, err error)
}

// run parses the command line, runs the verb and returns the exit code.
func run(ctx context.Context, env environment) int {
	a := &app{Console: cli.Console{Name: "logquery", Stderr: env.stderr}, env: env, out: newOutput(env.stdout), started: time.Now()}
	code := 0
	v, err := a.parse()
	if err == nil {
		code, err = v.run(ctx, a)
		if a.store != nil {
			_ = a.store.Close() // it was only read
		}
		err = cmp.Or(err, a.out.flush())
	}
	if err != nil {
		return a.ExitCode(err, a.config.Store, "reading needs the role Storage Blob Data Reader", a.ownError)
	}
	return code
}

func (a *app) parse() (verb, error) {
	parser, err := cli.NewParser(&a.flags, a.Name, "Read logs that are kept in blobs. Times, filters and forms of output: logquery read --help.",
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	if err != nil {
		return nil, err
	}
	args := arrange(parser.Model, a.env.args)
	parsed, err := parser.Parse(args)
	if err := mistake(parser.Model, args); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, cli.Usagef("%w; see logquery --help", err)
	}
	if err := a.configure(); err != nil {
		return nil, err
	}
	a.verb = parsed.Selected()
	return a.verb.Target.Addr().Interface().(verb), nil
}

// configure reads the common flags, the environment and the file.
func (a *app) configure() error {
	a.Quiet = a.flags.Quiet
	var err error
	if a.config, err = a.flags.Load(); err != nil {
		return err
	}
	a.config.Live = cmp.Or(a.flags.LiveURL, a.config.Live)
	switch a.flags.Color {
	case "always":
		a.color = true
	case "auto":
		a.color = a.env.outTTY && a.env.getenv("NO_COLOR") == "" && a.env.getenv("TERM") != "dumb"
	}
	zone := a.env.local
	switch {
	case a.flags.UTC && a.flags.Timezone != "" && a.flags.Timezone != "UTC":
		return cli.Usagef("-u and --timezone %s contradict each other", a.flags.Timezone)
	case a.flags.UTC:
		zone = time.UTC
	case a.flags.Timezone != "":
		if zone, err = time.LoadLocation(a.flags.Timezone); err != nil {
			return cli.Usagef("--timezone %s: %w; zones look like Europe/Berlin or UTC", a.flags.Timezone, err)
		}
	}
	a.now = a.env.now.In(zone)
	return nil
}

// open opens the store until the end of the run, and returns a reader of it. A read ends
// before the blobs that it listed can be deleted.
func (a *app) open(ctx context.Context) (reader *query.Reader, err error) {
	if a.store, err = openstore.Open(ctx, a.config.Store, false); err != nil {
		return nil, err
	}
	return query.New(a.store.Blobs, query.Options{MaxAge: time.Duration(a.config.Retention.Grace) / 2}), nil
}

func (a *app) times(f rangeFlags) (query.Range, error) {
	rng := query.Always()
	if f.From != "" && f.Since != "" {
		return rng, cli.Usagef("--from and --since say the same; leave one out")
	}
	until := a.now
	for _, end := range []struct {
		flag, text string
		ns         *int64
	}{{"--from", f.From, &rng.From}, {"--to", f.To, &rng.To}} {
		if end.text == "" {
			continue
		}
		t, err := cli.ParseTime(end.text, a.now)
		if err != nil {
			return rng, cli.Usagef("%s: %w", end.flag, err)
		}
		*end.ns = t.UnixNano()
		until = t // only --to counts: --since excludes --from
	}
	if f.Since != "" {
		d, err := config.ParseDuration(f.Since)
		if err != nil {
			return rng, cli.Usagef("--since: %w", err)
		}
		rng.From = until.Add(-d).UnixNano()
	}
	if rng.From != query.Oldest && rng.To != query.Newest && rng.From >= rng.To {
		return rng, cli.Usagef("the range is empty: --from %s is not before --to %s", a.showTime(rng.From), a.showTime(rng.To))
	}
	return rng, nil
}

// at is a time in the user's zone.
func (a *app) at(ns int64) time.Time { return time.Unix(0, ns).In(a.now.Location()) }

func (a *app) showTime(ns int64) string {
	return a.at(ns).Format("2006-01-02 15:04:05.999999999 -07:00")
}

// zoneName names the zone of a time. The local zone has no name but its letters at the
// time, if any.
func zoneName(t time.Time) string {
	name := t.Location().String()
	if name == "Local" {
		name, _ = t.Zone()
	}
	if name == "" || name == "Local" || name[0] == '+' || name[0] == '-' {
		return t.Format("-07:00")
	}
	return name
}

// echo prints the store and the range of a read on stderr.
func (a *app) echo(rng query.Range) {
	from, to := "the oldest", "the newest"
	if rng.From != query.Oldest {
		from = a.showTime(rng.From)
	}
	if rng.To != query.Newest {
		to = a.showTime(rng.To)
	}
	if !a.Quiet {
		fmt.Fprintf(a.env.stderr, "%s from %s to %s (%s)\n", cli.Safe(a.config.Store.String()), from, to, zoneName(a.now))
	}
}
