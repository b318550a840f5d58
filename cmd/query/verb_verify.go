package main

import (
	"context"
	"errors"
	"fmt"

	"blobtail/internal/cli"
	"blobtail/internal/units"
	"blobtail/reading"
)

type verifyCmd struct {
	Services   []string `arg:"" optional:"" name:"service" help:"Services or globs; all if none."`
	rangeFlags `group:"Time"`
	Output     string `short:"o" help:"pretty, or json: a line for each finding, and one for the sum." placeholder:"FORM"`
}

func (c *verifyCmd) run(ctx context.Context, a *app) (int, error) {
	if c.Output == "" {
		c.Output = "pretty" // into a pipe too: it is for people first
	}
	form, err := a.form(c.Output, "pretty", "json")
	if err != nil {
		return 0, err
	}
	rng, err := a.times(c.rangeFlags)
	if err != nil {
		return 0, err
	}
	services, err := servicesOf(c.Services)
	if err != nil {
		return 0, err
	}
	store, err := a.openStore(ctx, true)
	if err != nil {
		return 0, err
	}
	verify := store.Verify
	if a.store.Logs != nil {
		verify = a.verifyLogs
	}
	v, err := verify(ctx, reading.Ask{Services: services, Range: rng}, func(f reading.Finding) { a.found(ctx, form, f) })
	if err != nil {
		return 0, err
	}
	if form == "json" {
		a.json(struct {
			Blobs    int64 `json:"blobs"`
			Records  int64 `json:"records"`
			Bytes    int64 `json:"bytes"`
			Findings int64 `json:"findings"`
			Notes    int64 `json:"notes"`
		}{v.Blobs, v.Records, v.Bytes, v.Bad, v.Notes})
	}
	a.Note("%s with %s in %s verified, %s, %s", units.Count(v.Blobs, "blob"), units.Count(v.Records, "record"), bytesText(v.Bytes), units.Count(v.Bad, "finding"), units.Count(v.Notes, "note"))
	switch {
	case v.Bad > 0:
		return cli.Incomplete, nil
	case v.Blobs == 0:
		return cli.Nothing, nil
	}
	return cli.OK, nil
}

// found prints a finding. In JSON the name of an absent service is one too.
func (a *app) found(ctx context.Context, form string, f reading.Finding) {
	if form == "json" {
		a.json(struct {
			Blob    string `json:"blob,omitempty"`
			Note    bool   `json:"note"`
			Finding string `json:"finding"`
		}{f.Key, f.Note, f.Err.Error()})
		return
	}
	if none, ok := errors.AsType[*reading.NoServiceError](f.Err); ok {
		a.absent(ctx, []*reading.NoServiceError{none})
		return
	}
	print := a.Complain
	if f.Note {
		print = a.Note
	}
	if f.Key != "" {
		f.Err = fmt.Errorf("%s: %w", f.Key, f.Err)
	}
	print("%v", f.Err)
}
