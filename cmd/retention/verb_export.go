package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"blobtail/internal/cli"
	"blobtail/internal/openstore"
	"blobtail/internal/storeid"
	"blobtail/internal/units"
	"blobtail/retention"
	"blobtail/retention/export"
)

type exportCmd struct {
	Services []string       `arg:"" optional:"" name:"service" default:"*" help:"Services or globs; all if none."`
	Parquet  bool           `help:"Write Parquet: there is no other form."`
	To       openstore.Spec `help:"Where the export is, or will be: a directory or a container of its own." required:"" placeholder:"STORE"`
}

func (c *exportCmd) run(ctx context.Context, a *app) (int, error) {
	if !c.Parquet {
		return 0, cli.Usagef("say the form of the export: --parquet, there is no other one")
	}
	if err := fold(&c.Services); err != nil {
		return 0, err
	}
	o, err := a.open(ctx, nil, "", true)
	if err != nil {
		return 0, err
	}
	return a.export(ctx, c.To, c.Services, o)
}

// export makes the export what the closed days of the store are, and tells what it did.
func (a *app) export(ctx context.Context, place openstore.Spec, services []string, job retention.Options) (code int, err error) {
	o := export.Options{Services: services, Distant: a.config.Store.Remote(), MaxAge: job.Grace / 2, Progress: &a.progress}
	if err := a.apart(place); err != nil {
		return 0, err
	}
	if o.Store, err = storeid.Read(ctx, a.store.Blobs); err != nil && !errors.As(err, new(*storeid.CopyError)) {
		return 0, err
	}
	to, err := openstore.OpenWith(ctx, place, true, openstore.Options{Bare: true})
	if err != nil {
		return 0, cli.Usagef("--to %s: %v", place, err) // the error may be one that is explained by --store
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	if _, err := to.Blobs.Stat(ctx, storeid.Key); err == nil {
		return 0, cli.Usagef("--to %s: it is a store of records; take another place", place)
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(320 << 20)) // messages of 1 MB make much garbage
	r, err := export.Run(ctx, a.store.Blobs, to.Blobs, o)
	if err == nil && r.Unknown != "" {
		err = cli.Usagef("no service is called %s; logquery ls has those that there are", r.Unknown)
	}
	if err != nil {
		a.Problems(r.Problems)
		return 0, err
	}
	_, err = fmt.Fprintf(os.Stdout, "exported %s with %s; removed %s that the store has hidden; looked at %s\n",
		units.Count(r.Made, "closed day"), units.Count(r.Records, "record"), units.Count(r.Removed, "day"),
		units.Count(r.Services, "service"))
	return a.verdict(r.Problems, r.Made+r.Removed > 0), err
}
