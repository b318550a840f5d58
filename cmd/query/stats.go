package main

import (
	"fmt"
	"strings"
	"time"

	"blobtail/internal/bill"
	"blobtail/internal/units"
	"blobtail/reading"
	"blobtail/storage/traffic"
)

// stats tells the work of a read, and the price of its requests.
func (a *app) stats(out *reading.Outcome, took time.Duration) {
	copies := ""
	if out.Copies > 0 {
		// A record is in a log and in a blob for a while; both are read, and one is printed.
		copies = fmt.Sprintf("; %s read twice and printed once", units.Count(out.Copies, "record"))
	}
	filtered := ""
	if out.RuledOutByIDs+out.RuledOutByWords > 0 {
		filtered = fmt.Sprintf(" (%d by ids, %d by words)", out.RuledOutByIDs, out.RuledOutByWords)
	}
	fmt.Fprintf(a.env.stderr, "%s, %s; blobs %d listed, %d opened; blocks %d read, %d skipped%s; %s, %s fetched%s; %s\n",
		units.Count(out.Records, "record"), bytesText(out.Bytes), out.BlobsListed, out.BlobsOpened, out.BlocksRead, out.BlocksSkipped, filtered,
		units.Count(out.Requests, "read"), bytesText(out.Fetched), copies, took.Round(10*time.Microsecond))
	a.requests()
}

// requests tells the requests that went out by their kinds, and their price. A directory
// takes none.
func (a *app) requests() {
	var kinds []string
	for k := range traffic.Kinds {
		n, size := a.sent.Of(k)
		if k != traffic.Live && a.store != nil {
			n, size = a.store.Traffic.Of(k)
		}
		if n > 0 {
			kinds = append(kinds, fmt.Sprintf("%d %s (%s)", n, k, bytesText(size)))
		}
	}
	if len(kinds) == 0 {
		return
	}
	price := ""
	if a.config.Store.Remote() {
		if p, err := bill.Load(""); err == nil {
			price = fmt.Sprintf("; %.6f %s at the prices of %s, without traffic", p.Sent(a.store.Traffic), p.Currency, p.Dates())
		}
	}
	fmt.Fprintf(a.env.stderr, "requests: %s%s\n", strings.Join(kinds, ", "), price)
}
