package main

import (
	"context"

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
	reader, closeStore, err := a.open(ctx)
	if err != nil {
		return 0, err
	}
	defer closeStore()
	v, err := reader.Verify(ctx, query.Query{Services: c.Services, Range: rng}, func(f query.Finding) {
		switch {
		case f.Note && f.Key == "":
			a.note("%v", f.Err)
		case f.Note:
			a.note("%s: %v", f.Key, f.Err)
		case f.Key == "":
			a.complain("%v", f.Err)
		default:
			a.complain("%s: %v", f.Key, f.Err)
		}
	})
	if err != nil {
		return 0, err
	}
	a.note("%d blobs with %d records in %s verified, %d findings, %d notes", v.Blobs, v.Records, bytesText(v.Bytes), v.Bad, v.Notes)
	switch {
	case v.Bad > 0:
		return exitIncomplete, nil
	case v.Blobs == 0:
		return exitNothing, nil
	}
	return exitFound, nil
}
