package main

import (
	"context"
	"fmt"
	"runtime"

	"blobtail/internal/bill"
	"blobtail/internal/cli"
	"blobtail/internal/units"
	"blobtail/reading"
)

// explain prints how a question would read blobs: their number, the needs of its filters, and the
// blocks that ids, words, times and levels rule out.
func (a *app) explain(ctx context.Context, from reading.Source, ask reading.Ask, count bool) (*reading.Outcome, error) {
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
	if count && !ask.ReadsLines() {
		x.Parts, x.Alone = 0, "the indexes suffice"
	}
	fmt.Fprintf(a.out, "to read  %s with %s, %s; %s\n", units.Count(x.Read, "block"), units.Count(x.Records, "record"), bytesText(x.Bytes),
		wayText(&x, a.config.Store.Remote()))
	if ask.Limit > 0 {
		fmt.Fprintf(a.out, "limit    %d: it reads from the newest block on, until it has them\n", ask.Limit)
	}
	return out, nil
}

const (
	// searched is how many bytes of lines a core searches in a second, measured on two of them.
	searched = 1150e6
	// oneGet is how many bytes of a blob a request brings, at most.
	oneGet = 8 << 20
	// manyBytes are so many that a read of them says what it takes.
	manyBytes = 1 << 30
)

// wayText tells whether workers read parts of a question, or why they do not; and what the read takes.
func wayText(x *reading.Explanation, remote bool) string {
	text := "alone: " + x.Alone
	if x.Parts > 0 {
		text = fmt.Sprintf("in %s with %s", units.Count(int64(x.Parts), "part"), units.Count(int64(x.Workers), "worker"))
	}
	if x.Bytes < manyBytes {
		return text
	}
	cores := runtime.GOMAXPROCS(0)
	minutes := float64(x.Raw) / searched / 60 / float64(cores*(1+x.Workers))
	text += fmt.Sprintf("; about %.1f minutes if each has %s", minutes, units.Count(int64(cores), "core"))
	if p, err := bill.Load(""); err == nil && remote {
		gets := int64(x.Blobs) + max(int64(x.Blobs), x.Bytes/oneGet)
		text += fmt.Sprintf(", %.6f %s at the prices of %s", p.Gets(gets), p.Currency, p.Dates())
	}
	return text
}
