package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"text/tabwriter"

	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/openstore"
	"blobtail/internal/when"
)

type contextCmd struct {
	Do   string `arg:"" optional:"" enum:"ls,add,use,rm,list,remove" name:"do" default:"ls" help:"ls, add, use or rm."`
	Name string `arg:"" optional:"" help:"Name of the context."`
}

func (c *contextCmd) run(_ context.Context, a *app) (int, error) {
	if c.Do == "ls" || c.Do == "list" {
		return c.list(a)
	}
	if c.Name == "" {
		return 0, cli.Usagef("logquery context %s: which one? Add its name", c.Do)
	}
	if err := c.change(a); err != nil {
		return 0, &cli.UsageError{Err: err}
	}
	return cli.OK, a.contexts.Write()
}

func (c *contextCmd) change(a *app) error {
	switch c.Do {
	case "add":
		f := &a.flags
		if f.Store == (openstore.Spec{}) && f.Config == "" {
			return cli.Usagef("logquery context add %s: add --store, and --live-url or --config if the store needs them", c.Name)
		}
		return a.contexts.Add(c.Name, config.Context{Store: f.Store.String(), Live: f.LiveURL, Config: f.Config, Timezone: f.Timezone})
	case "use":
		return a.contexts.Use(c.Name)
	}
	return a.contexts.Remove(c.Name)
}

// list prints the contexts, the current one with a star.
func (c *contextCmd) list(a *app) (int, error) {
	names := a.contexts.Names()
	if len(names) == 0 {
		a.Note("there are no contexts; make one: logquery context add NAME --store STORE")
		return cli.Nothing, nil
	}
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	for _, name := range names {
		mark, of := " ", a.contexts.All[name]
		if name == a.contexts.Current {
			mark = "*"
		}
		fmt.Fprintf(w, "%s %s\t%s\t%s\t%s\n", mark, name, cli.Safe(of.Store), cli.Safe(of.Live), cli.Safe(cmp.Or(of.Timezone, of.Config)))
	}
	return cli.OK, w.Flush()
}

// useContext sets the flags that are not given from a context: the one of --context, or
// the current one unless a store or a file is given.
func (a *app) useContext() error {
	f := &a.flags
	var err error
	if a.contexts, err = config.ReadContexts(a.env.configDir); err != nil {
		// Another user's contexts, as after sudo, and broken ones must not be in the way of a
		// store that is named otherwise.
		wanted := f.Context != "" || a.verb.Name == "context"
		if wanted || f.Store == (openstore.Spec{}) && f.Config == "" && !errors.Is(err, fs.ErrPermission) {
			return &cli.UsageError{Err: err}
		}
		a.contexts = &config.Contexts{}
	}
	name := f.Context
	switch {
	case a.verb.Name == "context":
		return nil // its flags are of a new one
	case name != "":
		// It is given for this run, and the environment for all.
		if f.Store.String() == a.env.getenv("BLOBTAIL_STORE") {
			f.Store = openstore.Spec{}
		}
		if f.LiveURL == a.env.getenv("BLOBTAIL_LIVE") {
			f.LiveURL = ""
		}
	case f.Store == (openstore.Spec{}) && f.Config == "":
		name = a.contexts.Current
	}
	if name == "" {
		return nil
	}
	of, err := a.contexts.Get(name)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	if of.Store != "" && f.Store == (openstore.Spec{}) {
		if err := f.Store.UnmarshalText([]byte(of.Store)); err != nil {
			return cli.Usagef("context %s: %w", name, err)
		}
	}
	f.LiveURL, f.Config = cmp.Or(f.LiveURL, of.Live), cmp.Or(f.Config, of.Config)
	if f.Timezone == "" && !f.UTC && of.Timezone != "" {
		if _, err := when.Zone(of.Timezone); err != nil {
			return cli.Usagef("context %s: %w", name, err)
		}
		f.Timezone = of.Timezone
	}
	return nil
}
