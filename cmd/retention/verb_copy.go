package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"blobtail/catalog"
	"blobtail/catalog/horizon"
	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/openstore"
	"blobtail/internal/storeid"
	"blobtail/internal/units"
	"blobtail/record"
	"blobtail/retention/copying"
	"blobtail/storage"
)

type copyCmd struct {
	Services  []string       `arg:"" optional:"" name:"service" help:"Services or globs; all if none. A copy has the same ones for ever."`
	To        openstore.Spec `help:"The copy: an empty store, or one that copy has made of this one." required:"" placeholder:"STORE"`
	Since     string         `help:"Look at days (UTC) from this one on, or of the last 2d; later runs find the others." placeholder:"D"`
	Bandwidth units.Size     `help:"Copy at most so many bytes a second, such as 10MB; 0: no limit." default:"0" placeholder:"SIZE"`
}

func (c *copyCmd) run(ctx context.Context, a *app) (code int, err error) {
	if err := fold(&c.Services); err != nil {
		return 0, err
	}
	o := copying.Options{Name: a.config.Store.Name(), Services: c.Services, Progress: &a.progress, Now: time.Now}
	if o.Bandwidth = int64(c.Bandwidth); o.Bandwidth > 0 && o.Bandwidth < 1000 {
		return 0, cli.Usagef("--bandwidth %s is of each second; want a number and a unit, such as 10MB", c.Bandwidth)
	}
	if o.Since, err = c.first(time.Now()); err != nil {
		return 0, cli.Usagef("--since: %w", err)
	}
	if err := a.apart(c.To); err != nil {
		return 0, err
	}
	if _, err := a.open(ctx, nil, "", true); err != nil {
		return 0, err
	}
	names, err := catalog.Services(ctx, a.store.Blobs)
	if err != nil {
		return 0, err
	}
	for _, glob := range c.Services { // before anything is made: a copy has its services for ever
		if !slices.ContainsFunc(names, func(name string) bool { return record.MatchService(glob, name) }) {
			return 0, cli.Usagef("no service is called %s; logquery ls has those that there are", glob)
		}
	}
	to, err := openstore.Open(ctx, c.To, true)
	if err != nil {
		return 0, cli.Usagef("--to %s: %v", c.To, err) // the error may be one that is explained by --store
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	o.Tables = a.store.Tables
	r, err := copying.Run(ctx, a.store.Blobs, to.Blobs, o)
	if err != nil {
		a.Problems(r.Problems)
		return 0, err
	}
	text := fmt.Sprintf("copied %s with %s, deleted %s; looked at %s", units.Count(r.Copied, "object"), units.Count(r.Bytes, "byte"),
		units.Count(r.Deleted, "object"), units.Count(r.Services, "service"))
	if !r.Whole.Through.IsZero() {
		text += "; " + (&storeid.CopyError{Services: c.Services, Extent: r.Whole}).Whole()
	}
	_, err = fmt.Fprintln(os.Stdout, text)
	return a.verdict(r.Problems, true), err
}

// apart checks that another store is one of ours and not this one, and that none is within the other.
func (a *app) apart(to openstore.Spec) error {
	if to.Logs() || a.config.Store.Logs() {
		return cli.Usagef("Azure's own logs are no store of ours: they cannot be copied, and nothing can be copied to them")
	}
	here, there := to.Dir(), a.config.Store.Dir()
	if here != "" && there != "" {
		here, there = resolved(here)+"/", resolved(there)+"/"
	}
	if to == a.config.Store || here != "" && there != "" && (strings.HasPrefix(here, there) || strings.HasPrefix(there, here)) {
		return cli.Usagef("--to %s: %s is the same directory, or one is within the other; take another place", to, a.config.Store)
	}
	return nil
}

// first is the first day to look at; 0: all.
func (c *copyCmd) first(now time.Time) (day horizon.Day, err error) {
	if c.Since == "" {
		return 0, nil
	}
	if age, aerr := config.ParseDuration(c.Since); aerr == nil {
		day = horizon.DayOf(now.Add(-age))
	} else {
		day, err = parseDay(c.Since, now)
	}
	if err == nil && day > horizon.DayOf(now)+1 {
		err = fmt.Errorf("%s is to come; want a day up to today, or a span such as 2d", day)
	}
	return day, err
}

// resolved is the place of a directory that need not exist, without symbolic links.
func resolved(dir string) string {
	dir, err := filepath.Abs(dir)
	if place, lerr := filepath.EvalSymlinks(dir); lerr == nil || err != nil {
		return place
	}
	return filepath.Join(resolved(filepath.Dir(dir)), filepath.Base(dir))
}

type promoteCmd struct {
	Anyway bool `help:"Promote a copy that lacks what was before its --since, services, or blobs."`
}

func (c *promoteCmd) run(ctx context.Context, a *app) (int, error) {
	_, err := a.open(ctx, nil, "", false)
	is, copied := errors.AsType[*storeid.CopyError](err)
	if err == nil {
		if _, err = a.store.Blobs.Stat(ctx, storeid.Promoted); err == nil {
			_, err = fmt.Fprintln(os.Stdout, "promoted before; nothing was done")
			return cli.OK, err
		}
		if errors.Is(err, storage.ErrNotExist) {
			err = cli.Usagef("%s is no copy of another store; retention copy makes one", a.config.Store)
		}
	}
	if copied {
		lacks := is.Lacks(math.MinInt64, math.MinInt64)
		if lacks == nil && is.Services != nil {
			lacks = errors.New("this store is a copy " + is.Whole() + " alone")
		}
		if lacks != nil && !c.Anyway {
			return 0, cli.Usagef("%w; to promote it as it is, for good: --anyway", lacks)
		}
		err = storeid.Promote(ctx, a.store.Blobs)
	}
	if err != nil {
		return 0, err
	}
	_, err = fmt.Fprintf(os.Stdout, "promoted; it was a copy of the store %s, %s\n", is.Source, is.Whole())
	return cli.OK, err
}
