package main

import (
	"context"
	"fmt"

	"blobtail/internal/cli"
	"blobtail/query"
)

type verifyCmd struct {
	Services   []string `arg:"" optional:"" name:"service" help:"Services or globs; all if none."`
	rangeFlags `group:"Time"`
}

func (c *verifyCmd) run(ctx context.Context, a *app) (int, error) {
	rng, err := a.times(c.rangeFlags)
	if err != nil {
		return 0, err
	}
	reader, err := a.open(ctx)
	if err != nil {
		return 0, err
	}
	v, err := reader.Verify(ctx, query.Query{Services: c.Services, Range: rng}, func(f query.Finding) {
		print := a.Complain
		if f.Note {
			print = a.Note
		}
		if f.Key != "" {
			f.Err = fmt.Errorf("%s: %w", f.Key, f.Err)
		}
		print("%v", f.Err)
	})
	if err != nil {
		return 0, err
	}
	a.Note("%d blobs with %d records in %s verified, %d findings, %d notes", v.Blobs, v.Records, bytesText(v.Bytes), v.Bad, v.Notes)
	switch {
	case v.Bad > 0:
		return cli.Incomplete, nil
	case v.Blobs == 0:
		return cli.Nothing, nil
	}
	return cli.OK, nil
}
