package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/openstore"
	"blobtail/internal/when"
	"blobtail/reading/remote"
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
		if f.Store == (openstore.Spec{}) && f.Config == "" && f.Server == "" {
			return cli.Usagef("logquery context add %s: add --store, and --live-url or --config if the store needs them, or add --server", c.Name)
		}
		if err := a.oneOfBoth(); err != nil {
			return err
		}
		of := config.Context{Store: f.Store.String(), Live: f.LiveURL, Server: f.Server, PlainHTTP: f.PlainHTTP, TokenFile: f.TokenFile, CA: f.CA, ServerName: f.ServerName, Config: f.Config, Timezone: f.Timezone}
		if _, err := a.trust(); err != nil {
			return err
		}
		if f.Server != "" {
			if _, err := remote.New(f.Server, remote.Options{}); err != nil {
				return err
			}
			of.Store = "" // that of the environment, if any
		}
		return a.contexts.Add(c.Name, anywhere(of, f.Store.Dir()))
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
		fmt.Fprintf(w, "%s %s\t%s\t%s\t%s\n", mark, name, cli.Safe(cmp.Or(of.Server, of.Store)), cli.Safe(of.Live), cli.Safe(cmp.Or(of.Timezone, of.Config)))
	}
	return cli.OK, w.Flush()
}

// anywhere makes the paths of a context absolute, because it is used in other directories.
func anywhere(of config.Context, dir string) config.Context {
	if path, err := filepath.Abs(dir); err == nil && dir != "" {
		of.Store = "dir:" + path
	}
	for _, file := range []*string{&of.Config, &of.TokenFile, &of.CA} {
		if path, err := filepath.Abs(*file); err == nil && *file != "" {
			*file = path
		}
	}
	return of
}

// useContext sets the flags that are not given from a context: the one of --context, or
// the current one unless a store or a file is given.
func (a *app) useContext() error {
	f := &a.flags
	if slices.Contains([]string{"version", "man", "lnav", "completion"}, a.verb.Name) {
		a.contexts = &config.Contexts{}
		return nil // they read no store
	}
	var err error
	if a.contexts, err = config.ReadContexts(a.env.configDir); err != nil {
		// Another user's contexts, as after sudo, and broken ones must not be in the way of a
		// store that is named otherwise.
		wanted := f.Context != "" || a.verb.Name == "context"
		if wanted || a.verb.Name != "complete" && f.Store == (openstore.Spec{}) && f.Config == "" && !errors.Is(err, fs.ErrPermission) {
			return &cli.UsageError{Err: err}
		}
		a.contexts = &config.Contexts{}
	}
	name := f.Context
	switch {
	case a.verb.Name == "context":
		return nil // its flags are of a new one
	case name != "":
		a.dropEnvironment()
		if of := a.contexts.All[name]; of.CA != "" && !a.given("ca") {
			f.CA = of.CA // without one, those that the environment names are still believed
		}
	case f.Store == (openstore.Spec{}) && f.Config == "" && f.Server == "":
		name = a.contexts.Current
	}
	if name == "" {
		return a.oneOfBoth()
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
	f.Server, f.PlainHTTP = cmp.Or(f.Server, of.Server), f.PlainHTTP || of.PlainHTTP
	f.CA, f.ServerName = cmp.Or(f.CA, of.CA), cmp.Or(f.ServerName, of.ServerName)
	f.LiveURL, f.TokenFile, f.Config = cmp.Or(f.LiveURL, of.Live), cmp.Or(f.TokenFile, of.TokenFile), cmp.Or(f.Config, of.Config)
	if f.Context = name; f.Timezone == "" && !f.UTC && of.Timezone != "" {
		if _, err := when.Zone(of.Timezone); err != nil {
			return cli.Usagef("context %s: %w", name, err)
		}
		f.Timezone = of.Timezone
	}
	return a.oneOfBoth()
}

// dropEnvironment drops the places that variables of the environment name: a context that is
// named counts more than these, and less than flags.
func (a *app) dropEnvironment() {
	f := &a.flags
	if !a.given("store") {
		f.Store = openstore.Spec{}
	}
	if !a.given("live-url") {
		f.LiveURL = ""
	}
	if !a.given("token-file") {
		f.TokenFile = "" // that of another store
	}
	if !a.given("config") {
		f.Config = ""
	}
	if !a.given("server") {
		f.Server = ""
	}
	if !a.given("server-name") {
		f.ServerName = ""
	}
}

// oneOfBoth decides between a server and a store. A flag counts more than the environment and
// a context, and a server more than a store otherwise.
func (a *app) oneOfBoth() error {
	f := &a.flags
	switch {
	case f.Server == "":
	case !a.given("store") && !a.given("config"):
	case a.given("server"):
		return cli.Usagef("--server reads over a server, and --store or --config a store; leave one out")
	default:
		f.Server = ""
	}
	return nil
}

// given reports whether a flag with a value is on the command line.
func (a *app) given(flag string) bool {
	return slices.ContainsFunc(a.args, func(arg string) bool { return strings.HasPrefix(arg, "--"+flag+"=") })
}
