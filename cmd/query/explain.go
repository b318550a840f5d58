package main

import (
	"context"
	"fmt"

	"blobtail/query"
)

// explain prints what a query would read of blobs: which of them, what its filters need, and
// which blocks are ruled out by what.
func (a *app) explain(ctx context.Context, from view, q query.Query) (query.Summary, error) {
	x, sum, err := from.explain(ctx, q)
	if err != nil {
		return sum, err
	}
	fmt.Fprintf(a.out, "blobs    %d of %s, %s\n", x.Blobs, countOf(int64(x.Services), "service"), bytesText(x.Stored))
	switch {
	case len(x.Needs) > 0:
		for _, need := range x.Needs {
			fmt.Fprintf(a.out, "needs    %s\n", need)
		}
	case q.Filter.ReadsLines():
		fmt.Fprintln(a.out, "needs    no word and no id that filters know")
	}
	fmt.Fprintf(a.out, "blocks   %d: %d ruled out by ids, %d by words, %d by time and level\n", x.Blocks, x.ByIDs, x.ByWords, x.Others)
	fmt.Fprintf(a.out, "to read  %s with %s, %s\n", countOf(x.Read, "block"), countOf(x.Records, "record"), bytesText(x.Bytes))
	if q.Limit > 0 {
		fmt.Fprintf(a.out, "limit    %d: it reads from the newest block on, until it has them\n", q.Limit)
	}
	return sum, nil
}
