// Command retention deletes expired logs and days of a service that must not have been
// logged. It also replaces small blobs by large ones.
//
// stdout has plans and results. stderr has notes, and for the record a JSON line for each
// horizon that is raised, each day of a service that is deleted, and each table dropped.
package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"github.com/alecthomas/kong"
	"github.com/rs/zerolog"

	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/lease"
	"blobtail/internal/openstore"
	"blobtail/internal/progress"
	"blobtail/internal/storeid"
	"blobtail/internal/when"
	"blobtail/retention"
	"blobtail/retention/closing"
)

func main() {
	a := &app{Console: cli.Console{Name: "retention", Stderr: os.Stderr}}
	if printed, err := cli.PrintVersion(a.Name, os.Args[1:], os.Stdout); printed {
		os.Exit(a.exitCode(err))
	}
	ctx, stop := cli.UntilSignal(0)
	defer stop()
	os.Exit(a.run(ctx))
}

// grammar is the command line. The policy is only in the configuration file, and can be
// reviewed there.
type grammar struct {
	cli.Settings
	Version cli.VersionFlag `help:"Print the version."`

	Plan    planCmd    `cmd:"" help:"Say what would go, per service and day; delete nothing."`
	Apply   applyCmd   `cmd:"" help:"One run: delete what has been hidden for the grace, hide what is past its age."`
	Drop    dropCmd    `cmd:"" help:"Delete one day of one service at once, such as one with a leaked secret."`
	Erase   eraseCmd   `cmd:"" help:"Remove the records that match an expression, such as those of one person."`
	Hold    holdCmd    `cmd:"" help:"Keep days of services until the release of the hold, whatever the policy says."`
	Holds   holdsCmd   `cmd:"" help:"List the holds."`
	Release releaseCmd `cmd:"" help:"End a hold: the policy counts again."`
	Compact compactCmd `cmd:"" help:"Make large blobs of small ones, of days that are closed."`

	Close      closeCmd      `cmd:"" help:"Close all days that are over: write which blobs each has, so that reads notice a lost one."`
	AcceptLoss acceptLossCmd `cmd:"" help:"Accept that blobs of a closed day are lost: reads say so in a note, and exit with 0 again."`
	Key        keyCmd        `cmd:"" help:"Make the key that signs closed days: close.key of the configuration."`

	Copy    copyCmd    `cmd:"" help:"Copy what another store lacks of this one, for a backup."`
	Export  exportCmd  `cmd:"" help:"Write closed days as Parquet, for Spark, DuckDB, ClickHouse and others."`
	Promote promoteCmd `cmd:"" help:"Make a copy a store of its own: ingesters and the other verbs take it then."`

	Man        manCmd        `cmd:"" help:"Print the manual page."`
	Completion completionCmd `cmd:"" help:"Print a script that completes verbs and flags in a shell."`
	Complete   completeCmd   `cmd:"" hidden:""`
}

// verb is one command of the grammar.
type verb interface {
	run(ctx context.Context, a *app) (code int, err error)
}

// app is one run of the command.
type app struct {
	cli.Console
	flags  grammar
	verb   *kong.Node
	model  *kong.Application
	config config.Config
	store  *openstore.Store // nil until open
	log    zerolog.Logger

	progress progress.Counter
	applied  retention.Result // zero if apply had none
}

// run parses the command line, runs the verb and returns the exit code.
func (a *app) run(ctx context.Context) int {
	v, err := a.parse()
	code := cli.OK
	if err == nil {
		if why := cli.UnknownZone(os.Getenv); why != "" {
			a.Note("%s", why)
		}
		line := a.progressLine()
		code, err = v.run(ctx, a)
		line.End()
		if errors.Is(err, context.Canceled) {
			line.Interrupted(&a.Console)
		}
		if a.store != nil {
			err = errors.Join(err, a.store.Close())
		}
	}
	if err != nil {
		code = a.exitCode(err)
	}
	if apply, ok := v.(*applyCmd); ok && apply.MetricsFile != "" {
		if err := writeMetrics(apply.MetricsFile, &a.applied, code, time.Now()); err != nil {
			a.Complain("metrics: %v", err)
			code = cmp.Or(code, cli.Incomplete)
		}
	}
	return code
}

// progressLine shows on a terminal how far the verb is. The log and the messages go above
// the line.
func (a *app) progressLine() *cli.Progress {
	terminal := cli.IsTerminal(os.Stderr)
	noun, to := "blob", io.Writer(nil)
	if a.verb.Name == "compact" {
		noun = "service"
	}
	if terminal {
		to = os.Stderr
	}
	line := cli.ShowProgress(to, &a.progress, noun)
	a.Stderr = line.Over(os.Stderr)
	a.log = cli.NewLog(a.Stderr, terminal)
	return line
}

// parse fills a and returns the verb. The verb comes with an error of the configuration
// too.
func (a *app) parse() (verb, error) {
	parser, err := cli.NewParser(&a.flags, a.Name,
		"Deletes logs by the day, as the section retention of the configuration says. A day is hidden first, and deleted by a run that comes a grace later.",
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}), signposts().Help())
	if err != nil {
		return nil, err
	}
	parsed, err := parser.Parse(joined(os.Args[1:]))
	if err != nil {
		return nil, misread(parser.Model, cli.WithoutValue(err))
	}
	if err := signposts().Misplaced(parsed); err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	a.verb, a.model = parsed.Selected(), parser.Model
	v := a.verb.Target.Addr().Interface().(verb)
	if _, guides := v.(guiding); guides {
		return v, nil // it needs no configuration, and works beside a wrong one
	}
	if a.config, err = a.flags.Load(); err != nil {
		return v, err
	}
	if err := a.config.Validate(); err != nil {
		return v, &cli.UsageError{Err: err}
	}
	return v, nil
}

// joined joins --now with its value, because the value may begin with "-".
func joined(args []string) []string {
	if i := slices.Index(args, "--now"); i >= 0 && i+1 < len(args) {
		return slices.Concat(args[:i], []string{"--now=" + args[i+1]}, args[i+2:])
	}
	return args
}

// open opens the store until the end of the run, and returns the options of a job: the
// policy of the configuration, and the flags. A job that reads changes nothing.
func (a *app) open(ctx context.Context, now *string, grace string, reads bool) (o retention.Options, err error) {
	c := a.config.Retention
	o = retention.Options{
		Policy: retention.Policy{Default: time.Duration(c.Default), Tail: time.Duration(c.Tail)},
		Grace:  time.Duration(c.Grace), Prefix: a.config.Tail.Prefix, Log: a.log, Progress: &a.progress,
	}
	o.Closing = &closing.Options{After: time.Duration(a.config.Close.After)}
	if !reads { // it signs nothing
		if o.Closing.Key, err = a.config.Close.PrivateKey(); err != nil {
			return o, &cli.UsageError{Err: err}
		}
	}
	for _, r := range c.Rules {
		o.Policy.Rules = append(o.Policy.Rules, retention.Rule{Service: r.Service, Age: time.Duration(r.Age)})
	}
	if grace != "" {
		if o.Grace, err = config.ParseDuration(grace); err != nil {
			return o, cli.Usagef("--grace: %w", err)
		}
	}
	if now != nil {
		// The days of logs are in UTC.
		clock := time.Now().UTC()
		if o.At, err = when.Time(*now, clock); err != nil {
			return o, cli.Usagef("--now: %w", err)
		}
		other, err := when.Time(*now, clock.AddDate(-3, -1, -1))
		o.AtByClock = err != nil || !other.Equal(o.At) // as yesterday, or 10 Nov
	}
	if a.store, err = openstore.OpenWith(ctx, a.config.Store, false, openstore.Options{Reads: reads}); err == nil {
		a.Explain = a.store.Explain
		err = lease.Older(ctx, a.store.Tables, a.config.Store.Name())
	}
	if err == nil && !reads {
		_, err = storeid.Read(ctx, a.store.Blobs)
	}
	return o, err
}
