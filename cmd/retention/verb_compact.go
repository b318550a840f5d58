package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"blobtail/internal/cli"
	"blobtail/internal/units"
	"blobtail/retention/compact"
	"blobtail/storage"
)

type compactCmd struct {
	Service []string `sep:"none" help:"Name or glob of services; all if none." placeholder:"GLOB"`
	Grace   string   `help:"How long a replaced blob stays for those who read it (retention.grace of the configuration, 1h)." placeholder:"D"`
}

func (c *compactCmd) run(ctx context.Context, a *app) (int, error) {
	if err := fold(&c.Service); err != nil {
		return 0, err
	}
	o, err := a.open(ctx, nil, c.Grace, false)
	if err != nil {
		return 0, err
	}
	o.Grace = cmp.Or(o.Grace, -1) // none; for the compactor 0 is its default
	options := compact.Options{Grace: o.Grace, Services: c.Service, Key: o.Closing.Key, Log: a.log, Progress: &a.progress}
	r, err := compact.Run(ctx, a.store.Blobs, options)
	if len(r.Unmatched) > 0 && r.Services == 0 && err == nil {
		return 0, cli.Usagef("no service is called %s; logquery ls has those that there are", strings.Join(r.Unmatched, " or "))
	}
	_, perr := fmt.Fprintln(os.Stdout, compacted(&r))
	if err != nil || perr != nil {
		a.verdict(r.Problems, true)
		return 0, errors.Join(err, perr)
	}
	for _, glob := range r.Unmatched {
		a.Complain("no service is called %s", glob)
	}
	if r.Foreign > 0 {
		a.Complain("%s", noBlobs(r.Foreign))
	}
	return a.verdict(r.Problems, r.Out+r.Deleted > 0), nil
}

// compacted tells the work of a run in one line.
func compacted(r *compact.Result) string {
	text := "nothing to rewrite in " + units.Count(r.Services, "service")
	if r.In > 0 {
		text = fmt.Sprintf("rewrote %s with %s into %s with %s, in %s; looked at %s", units.Count(r.In, "blob"), units.Count(r.BytesIn, "byte"),
			units.Count(r.Out, "blob"), units.Count(r.BytesOut, "byte"), units.Count(r.Hours, "hour"), units.Count(r.Services, "service"))
	}
	if r.Deleted > 0 {
		text += fmt.Sprintf("; deleted %s that had been replaced before, with %s", units.Count(r.Deleted, "blob"), units.Count(r.Freed, "byte"))
	}
	if r.Waiting > 0 {
		wait := units.Word(r.Waiting, "waits", "wait")
		text += fmt.Sprintf("; %s %s for the end of the grace, or of a hold", units.Count(r.Waiting, "replaced blob"), wait)
	}
	if r.Held > 0 {
		text += fmt.Sprintf("; %s: %s", units.Count(r.Held, "replaced blob"), storage.ErrHeld)
	}
	if r.Unclosed > 0 {
		text += fmt.Sprintf("; left %s that retention close has to close first", units.Count(r.Unclosed, "day"))
	}
	return text
}
