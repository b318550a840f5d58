package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"blobtail/internal/cli"
	"blobtail/record"
	"blobtail/retention/compact"
)

type compactCmd struct {
	Service []string `help:"Name or glob of services; all if none." placeholder:"GLOB"`
	Grace   string   `help:"How long a replaced blob stays for those who read it (retention.grace of the configuration, 1h)." placeholder:"D"`
}

func (c *compactCmd) run(ctx context.Context, a *app) (int, error) {
	for _, glob := range c.Service {
		if !record.ValidPattern(glob) {
			return 0, cli.Usagef("--service %q: want a name or a glob such as web-*", glob)
		}
	}
	o, err := a.open(ctx, nil, c.Grace)
	if err != nil {
		return 0, err
	}
	o.Grace = cmp.Or(o.Grace, -1) // none; for the compactor 0 is its default
	r, err := compact.Run(ctx, a.store.Blobs, compact.Options{Grace: o.Grace, Services: c.Service, Log: a.log, Progress: &a.progress})
	if len(r.Unmatched) > 0 && r.Services == 0 && err == nil {
		return 0, cli.Usagef("no service is called %s; logquery ls has those that there are", strings.Join(r.Unmatched, " or "))
	}
	_, perr := fmt.Fprintf(os.Stdout, "rewrote %d blobs with %d bytes into %d with %d, of %d hours of %d services; deleted %d that were replaced, with %d bytes; %d more wait for the grace\n",
		r.In, r.BytesIn, r.Out, r.BytesOut, r.Hours, r.Services, r.Deleted, r.Freed, r.Waiting)
	if err != nil || perr != nil {
		a.verdict(r.Problems, true)
		return 0, errors.Join(err, perr)
	}
	for _, glob := range r.Unmatched {
		a.Complain("no service is called %s", glob)
	}
	if r.Foreign > 0 {
		a.Complain("%d objects are no blobs of ours and stay", r.Foreign)
	}
	return a.verdict(r.Problems, r.Out+r.Deleted > 0), nil
}
