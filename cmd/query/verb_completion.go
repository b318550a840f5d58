package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/guide"
	"blobtail/reading"
	"blobtail/record"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (c *completionCmd) run(_ context.Context, a *app) (int, error) {
	_, err := a.out.Write([]byte(guide.Script(c.Shell, a.Name)))
	return cli.OK, err
}

// completeCmd prints the completions of the last word.
type completeCmd struct {
	Words []string `arg:"" optional:""`
}

// completionPatience is how long a store may take for services or fields.
const completionPatience = 2 * time.Second

func (c *completeCmd) run(ctx context.Context, a *app) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, completionPatience)
	defer cancel()
	of := guide.Completion{
		Guide: signposts(), App: a.model, Given: a.useFlag,
		Values:    func(verb *kong.Node, flag string) []string { return a.valuesOf(ctx, verb, flag) },
		Arguments: func(verb *kong.Node, before []string) []string { return a.argumentsOf(ctx, verb, before) },
	}
	for _, candidate := range of.Of(c.Words) {
		fmt.Fprintln(a.out, candidate)
	}
	return cli.OK, nil
}

// argumentsOf are the words that may stand behind others of a verb.
func (a *app) argumentsOf(ctx context.Context, verb *kong.Node, before []string) []string {
	switch {
	case verb.Name == "top" && len(before) == 0:
		return a.fieldNames(ctx)
	case verb.Name == "context" && len(before) > 0:
		return a.contexts.Names()
	case verb.Name == "man", verb.Name == "lnav", verb.Name == "version", verb.Name == "serve", verb.Name == "ingesters":
		return nil
	}
	return a.serviceList(ctx)
}

// useFlag uses a flag of the words. A mistake in it is found when the command runs.
func (a *app) useFlag(name, value string) {
	switch name {
	case "store":
		_ = a.flags.Store.UnmarshalText([]byte(value))
		a.config.Store = a.flags.Store
		a.flags.Server = ""
	case "server":
		a.flags.Server = value
	case "token-file":
		a.flags.TokenFile = value
	case "ca":
		a.flags.CA = value
	case "server-name":
		a.flags.ServerName = value
	case "context":
		if of, err := a.contexts.Get(value); err == nil {
			f := &a.flags
			_ = a.config.Store.UnmarshalText([]byte(of.Store))
			f.Server, f.TokenFile, f.PlainHTTP, f.CA, f.ServerName = of.Server, of.TokenFile, of.PlainHTTP, of.CA, of.ServerName
		}
	case "config":
		if c, err := config.Load(value); err == nil {
			a.config = c
		}
	}
}

// valuesOf are the values of a flag, if they are few.
func (a *app) valuesOf(ctx context.Context, verb *kong.Node, flag string) []string {
	switch flag {
	case "level", "not-level":
		return []string{"trace", "debug", "info", "warn", "error", "critical", "debug+", "info+", "warn+", "error+"}
	case "output":
		return []string{"pretty", "json", "raw", "csv", "logfmt"}
	case "color":
		return []string{"auto", "always", "never"}
	case "live":
		return []string{"auto", "off", "only"}
	case "context":
		return a.contexts.Names()
	case "day", "from", "to", "since":
		return []string{"today", "yesterday"}
	case "by":
		if verb.Name == "bill" {
			return []string{"service", "day"}
		}
		return []string{"1m", "5m", "1h", "1d"}
	case "against":
		return []string{"1h", "24h", "7d"}
	case "sort":
		return []string{"name", "records", "blobs", "bytes", "size", "unflushed", "first", "last"}
	case "parse":
		return []string{"json", "logfmt"}
	case "fields", "by-field":
		return a.fieldNames(ctx)
	}
	return nil
}

func (a *app) serviceList(ctx context.Context) []string {
	from, err := a.open(ctx, false)
	if err != nil {
		return nil
	}
	names, _ := from.Names(ctx)
	return names
}

// fieldNames are the fields of the newest records.
func (a *app) fieldNames(ctx context.Context) (names []string) {
	from, err := a.open(ctx, false)
	if err != nil {
		return nil
	}
	ask := reading.Ask{Services: []string{"*"}, Range: reading.Always(), Live: reading.Off, Limit: 1000}
	_, err = from.Records(ctx, ask, func(lines []byte) error {
		for line := range bytes.Lines(lines) {
			for key := range record.Fields(line) {
				if name := named(string(key)); !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return names
}
