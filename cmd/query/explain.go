package main

import (
	"context"
	"fmt"

	"blobtail/internal/cli"
	"blobtail/internal/units"
	"blobtail/reading"
)

// explain prints how a question would read blobs: their number, the needs of its filters, and the
// blocks that ids, words, times and levels rule out.
func (a *app) explain(ctx context.Context, from reading.Source, ask reading.Ask) (*reading.Outcome, error) {
	store, ok := from.(*reading.Store)
	if !ok {
		return nil, cli.Usagef("--explain looks at the blobs of a store; over a server --stats tells what a read took")
	}
	x, out, err := store.Explain(ctx, ask)
	if err != nil {
		return out, err
	}
	fmt.Fprintf(a.out, "blobs    %d of %s, %s\n", x.Blobs, units.Count(int64(x.Services), "service"), bytesText(x.Stored))
	switch {
	case len(x.Needs) > 0:
		for _, need := range x.Needs {
			fmt.Fprintf(a.out, "needs    %s\n", need)
		}
	case ask.ReadsLines():
		fmt.Fprintln(a.out, "needs    no whole word and no id, so the indexes of words and ids rule out no block")
	}
	fmt.Fprintf(a.out, "blocks   %d: %d ruled out by ids, %d by words, %d by time and level\n", x.Blocks, x.ByIDs, x.ByWords, x.Others)
	fmt.Fprintf(a.out, "to read  %s with %s, %s\n", units.Count(x.Read, "block"), units.Count(x.Records, "record"), bytesText(x.Bytes))
	if ask.Limit > 0 {
		fmt.Fprintf(a.out, "limit    %d: it reads from the newest block on, until it has them\n", ask.Limit)
	}
	return out, nil
}
