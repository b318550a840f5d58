package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/alecthomas/kong"

	"blobtail/config"
	"blobtail/internal/openstore"
	"blobtail/query"
	"blobtail/storage"
)

// cli is the command line. Every flag has its twin in the environment only
// where contract says so: what names the store.
type cli struct {
	Config   string `help:"Read the store from this file." placeholder:"FILE" env:"BLOBTAIL_CONFIG"`
	Store    string `help:"dir:PATH or azure:[ACCOUNT/]CONTAINER (dir:./data)." placeholder:"STORE" env:"BLOBTAIL_STORE"`
	LiveURL  string `name:"live-url" help:"URL of an ingester to ask for records that are in no blob yet." placeholder:"URL" env:"BLOBTAIL_LIVE"`
	Timezone string `help:"Zone of times without one, and of those shown (local)." placeholder:"ZONE"`
	UTC      bool   `short:"u" name:"utc" help:"The same as --timezone UTC."`
	Color    string `help:"auto, always or never." enum:"auto,always,never" default:"auto"`
	Quiet    bool   `short:"q" help:"No notes on stderr, only errors."`
	Version  bool   `help:"Print the version."`

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

// rangeFlags say which times are meant.
type rangeFlags struct {
	From  string `help:"Oldest time (included)." placeholder:"T"`
	To    string `help:"Newest time (not included)." placeholder:"T"`
	Since string `help:"The last so long, up to now or --to." placeholder:"D"`
}

// app is one run of the command.
type app struct {
	env   environment
	cli   cli
	store string // as the user wrote it
	live  string // URL of an ingester, or ""
	tail  config.Tail
	// tailAge is how long the tables of the newest records are kept, maxAge how old a
	// read may get.
	tailAge, maxAge time.Duration
	quiet           bool
	color           bool
	// searches tells that the verb takes -F, for those who forget it.
	searches bool
	now      time.Time // at the start, in the zone of the user
	started  time.Time
	out      *output
}

// verb is what each command of the cli is.
type verb interface {
	run(ctx context.Context, a *app) (code int, err error)
}

// printVersion prints what the binary was built from.
func (a *app) printVersion() error {
	version, revision := "(devel)", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		version = cmp.Or(info.Main.Version, version)
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = " " + s.Value
			}
		}
	}
	_, err := fmt.Fprintf(a.env.stdout, "logquery %s%s\n", version, revision)
	return err
}

// run parses the command line, runs what it says and gives the exit code.
func run(ctx context.Context, env environment) int {
	a := &app{env: env, out: newOutput(env.stdout), started: time.Now()}
	v, err := a.parse()
	if err != nil || v == nil {
		if err != nil {
			return a.exitCode(err)
		}
		return exitFound
	}
	code, err := v.run(ctx, a)
	if ferr := a.out.flush(); err == nil {
		err = ferr
	}
	if err != nil {
		return a.exitCode(err)
	}
	return code
}

// parse fills a; a nil verb means that all is done.
func (a *app) parse() (verb, error) {
	done := false
	var help bytes.Buffer
	parser, err := kong.New(&a.cli,
		kong.Name("logquery"),
		kong.Description("Read logs that are kept in blobs. Times, filters and forms of output: logquery read --help."),
		kong.Writers(&help, &help), kong.Exit(func(int) { done = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	if err != nil {
		return nil, err
	}
	// Kong would go on and complain of missing arguments after the help.
	args := arrange(parser.Model, a.env.args)
	parsed, err := parser.Parse(args)
	if done {
		_, err := io.Copy(a.env.stdout, &help)
		return nil, err
	}
	if a.cli.Version && err == nil {
		return nil, a.printVersion()
	}
	if err := checkFlags(parser.Model, args); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, mistake(parser.Model, args, err)
	}
	if err := a.configure(); err != nil {
		return nil, err
	}
	switch parsed.Selected().Name {
	case "read":
		a.searches = true
		return &a.cli.Read, nil
	case "tail":
		a.searches = true
		return &a.cli.Tail, nil
	case "hist":
		a.searches = true
		return &a.cli.Hist, nil
	case "ls":
		return &a.cli.Ls, nil
	case "ingesters":
		return &a.cli.Ingesters, nil
	case "cat":
		return &a.cli.Cat, nil
	case "verify":
		return &a.cli.Verify, nil
	case "bill":
		return &a.cli.Bill, nil
	}
	return nil, a.printVersion()
}

// configure settles what the common flags, the environment and the file say.
func (a *app) configure() error {
	a.quiet = a.cli.Quiet
	c, err := config.Load(a.cli.Config)
	if err != nil {
		return &usageError{err}
	}
	a.store, a.live, a.tail = cmp.Or(a.cli.Store, c.Store, openstore.Default), cmp.Or(a.cli.LiveURL, c.Live), c.Tail
	a.tailAge, a.maxAge = time.Duration(c.Retention.Tail), time.Duration(c.Retention.Grace)/2
	switch a.cli.Color {
	case "always":
		a.color = true
	case "auto":
		a.color = a.env.outTTY && a.env.getenv("NO_COLOR") == "" && a.env.getenv("TERM") != "dumb"
	}
	zone := a.env.local
	switch {
	case a.cli.UTC && a.cli.Timezone != "" && a.cli.Timezone != "UTC":
		return usagef("-u and --timezone %s contradict each other", a.cli.Timezone)
	case a.cli.UTC:
		zone = time.UTC
	case a.cli.Timezone != "":
		var err error
		if zone, err = time.LoadLocation(a.cli.Timezone); err != nil {
			return usagef("--timezone %s: %w; zones look like Europe/Berlin or UTC", a.cli.Timezone, err)
		}
	}
	a.now = a.env.now.In(zone)
	return nil
}

// open opens the store and gives a reader of it.
func (a *app) open(ctx context.Context) (*query.Reader, func() error, error) {
	store, closeStore, err := openstore.Open(ctx, a.store, false)
	if err != nil {
		return nil, nil, err
	}
	return a.reader(store), closeStore, nil
}

// reader makes a reader of a store.
func (a *app) reader(store storage.BlobStore) *query.Reader {
	return query.New(store, query.Options{MaxAge: a.maxAge})
}

// times gives the range that the flags mean.
func (a *app) times(f rangeFlags) (query.Range, error) {
	rng := query.Always()
	var err error
	if f.To != "" {
		if rng.To, err = parseTime(f.To, a.now); err != nil {
			return rng, usagef("--to: %w", err)
		}
	}
	switch {
	case f.From != "" && f.Since != "":
		return rng, usagef("--from and --since say the same; leave one out")
	case f.From != "":
		if rng.From, err = parseTime(f.From, a.now); err != nil {
			return rng, usagef("--from: %w", err)
		}
	case f.Since != "":
		d, err := config.ParseDuration(f.Since)
		if err != nil {
			return rng, usagef("--since: %w", err)
		}
		end := a.now
		if f.To != "" {
			end = time.Unix(0, rng.To)
		}
		rng.From = end.Add(-d).UnixNano()
	}
	if rng.From != query.Oldest && rng.To != query.Newest && rng.From >= rng.To {
		return rng, usagef("the range is empty: --from %s is not before --to %s", a.showTime(rng.From), a.showTime(rng.To))
	}
	return rng, nil
}

// showTime writes a time in the user's zone.
func (a *app) showTime(ns int64) string {
	return time.Unix(0, ns).In(a.now.Location()).Format("2006-01-02 15:04:05.999999999 -07:00")
}

// zoneName tells people which zone a time is in. The local one has no name but
// the letters that it goes by at the time, if any.
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

// echo says on stderr what is about to be read.
func (a *app) echo(rng query.Range) {
	from, to := "the oldest", "the newest"
	if rng.From != query.Oldest {
		from = a.showTime(rng.From)
	}
	if rng.To != query.Newest {
		to = a.showTime(rng.To)
	}
	if !a.quiet {
		fmt.Fprintf(a.env.stderr, "%s from %s to %s (%s)\n", sanitizeString(a.store), from, to, zoneName(a.now))
	}
}
