package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/rs/zerolog"

	"blobtail/config"
	"blobtail/internal/openstore"
	"blobtail/retention"
	"blobtail/storage"
)

// cli is the command line. How long what is kept stands in the configuration file
// alone, where it can be reviewed.
type cli struct {
	Config  string `help:"Configuration file (YAML); its section retention is the policy." env:"BLOBTAIL_CONFIG" placeholder:"FILE"`
	Store   string `help:"dir:PATH or azure:[ACCOUNT/]CONTAINER (dir:./data)." env:"BLOBTAIL_STORE" placeholder:"STORE"`
	Version bool   `help:"Print the version."`

	Plan    planCmd    `cmd:"" help:"Say what would go, per service and day; delete nothing."`
	Apply   applyCmd   `cmd:"" help:"One run: delete what has been hidden for the grace, hide what is past its age."`
	Drop    dropCmd    `cmd:"" help:"Delete one day of one service at once, such as one with a leaked secret."`
	Compact compactCmd `cmd:"" help:"Make large blobs of small ones, of hours that ended a day ago or more."`
}

// verb is what each command of the cli is.
type verb interface {
	run(ctx context.Context, a *app) (code int, err error)
}

// app is one run of the command.
type app struct {
	env    environment
	cli    cli
	config config.Config
	log    zerolog.Logger
}

// run parses the command line, runs what it says and gives the exit code.
func run(ctx context.Context, env environment) int {
	a := &app{env: env, log: zerolog.New(env.stderr).With().Timestamp().Logger()}
	v, err := a.parse()
	if err != nil || v == nil {
		code := a.exitCode(err)
		if apply, ok := v.(*applyCmd); ok {
			code = apply.told(a, nil, code)
		}
		return code
	}
	code, err := v.run(ctx, a)
	if err != nil {
		return a.exitCode(err)
	}
	return code
}

// parse fills a; a nil verb without an error means that all is done. With an error
// the verb is there where the configuration is what is wrong.
func (a *app) parse() (verb, error) {
	done := false
	var help bytes.Buffer
	parser, err := kong.New(&a.cli, kong.Name("retention"),
		kong.Description("Deletes logs by the day, as the section retention of the configuration says. A day is hidden first, and deleted by a run that comes a grace later."),
		kong.Writers(&help, &help), kong.Exit(func(int) { done = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	if err != nil {
		return nil, err
	}
	args := joined(a.env.args)
	parsed, err := parser.Parse(args)
	if done { // kong would go on and complain of a missing verb
		_, err := io.Copy(a.env.stdout, &help)
		return nil, err
	}
	if a.cli.Version {
		_, err := fmt.Fprintln(a.env.stdout, "retention", version())
		return nil, err
	}
	if err != nil {
		return nil, usagef("%w; see retention --help", err)
	}
	v := map[string]verb{"plan": &a.cli.Plan, "apply": &a.cli.Apply, "drop": &a.cli.Drop, "compact": &a.cli.Compact}[parsed.Selected().Name]
	if a.config, err = config.Load(a.cli.Config); err != nil {
		return v, &usageError{err}
	}
	a.config.Store = cmp.Or(a.cli.Store, a.config.Store, openstore.Default)
	if err := errors.Join(a.config.Validate(), openstore.Check(a.config.Store)); err != nil {
		return v, &usageError{err}
	}
	return v, nil
}

// joined puts --now and its value together, for the value may begin with "-".
func joined(args []string) []string {
	args = slices.Clone(args)
	for i := 0; i+1 < len(args); i++ {
		if args[i] == "--now" {
			args[i] += "=" + args[i+1]
			args = slices.Delete(args, i+1, i+2)
		}
	}
	return args
}

// open opens the store and its tables.
func (a *app) open(ctx context.Context) (blobs storage.BlobStore, tables storage.TableStore, closeAll func() error, err error) {
	blobs, closeBlobs, err := openstore.Open(ctx, a.config.Store, false)
	if err != nil {
		return nil, nil, nil, err
	}
	tables, closeTables, err := openstore.Tables(a.config.Store, blobs)
	if err != nil {
		return nil, nil, nil, errors.Join(err, closeBlobs())
	}
	return blobs, tables, func() error { return errors.Join(closeTables(), closeBlobs()) }, nil
}

// options are those of a job: the policy of the configuration, and what the flags
// say besides.
func (a *app) options(now *string, grace string) (o retention.Options, err error) {
	c := a.config.Retention
	o = retention.Options{
		Policy: retention.Policy{Default: time.Duration(c.Default), Tail: time.Duration(c.Tail)},
		Grace:  time.Duration(c.Grace), Prefix: a.config.Tail.Prefix, Clock: a.env.clock, Log: a.log,
	}
	for _, r := range c.Rules {
		o.Policy.Rules = append(o.Policy.Rules, retention.Rule{Service: r.Service, Age: time.Duration(r.Age)})
	}
	if grace != "" {
		if o.Grace, err = config.ParseDuration(grace); err != nil {
			return o, usagef("--grace: %w", err)
		}
	}
	if now != nil {
		if o.At, err = parseTime(*now, a.env.clock()); err == nil && o.At.IsZero() {
			err = fmt.Errorf("%q: there were no logs then", *now)
		}
		if err != nil {
			return o, usagef("--now: %w", err)
		}
	}
	return o, nil
}

// parseTime reads a time; one without a zone is UTC, as the days of logs are.
func parseTime(text string, now time.Time) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly, "2006-01-02 15:04", "2006-01-02T15:04", time.DateTime, "2006-01-02T15:04:05"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	if text == "now" {
		return now, nil
	}
	if ago, ok := strings.CutPrefix(strings.TrimPrefix(text, "now"), "-"); ok {
		d, err := config.ParseDuration(ago)
		return now.Add(-d), err
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && len(text) >= 9 && len(text) <= 11 {
		return time.Unix(n, 0), nil
	}
	return time.Time{}, fmt.Errorf("%q is no time; times look like 2026-11-20, 2026-11-20T15:04:05Z, -2h or unix seconds, in UTC", text)
}

// version is the module's version, or the commit it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := cmp.Or(info.Main.Version, "(devel)")
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v += " " + s.Value
		}
	}
	return v
}
