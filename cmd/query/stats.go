package main

import (
	"fmt"
	"strings"
	"time"

	"blobtail/internal/bill"
	"blobtail/query"
	"blobtail/storage/traffic"
)

// stats tells the work of a read, and the price of its requests.
func (a *app) stats(sum *query.Summary, took time.Duration) {
	copies := ""
	if sum.Copies > 0 {
		// A record is in a log and in a blob for a while; both are read, and one is printed.
		copies = fmt.Sprintf("; %s read twice and printed once", countOf(sum.Copies, "record"))
	}
	filtered := ""
	if sum.RuledOutByIDs+sum.RuledOutByWords > 0 {
		filtered = fmt.Sprintf(" (%d by ids, %d by words)", sum.RuledOutByIDs, sum.RuledOutByWords)
	}
	fmt.Fprintf(a.env.stderr, "%s, %s; blobs %d listed, %d opened; blocks %d read, %d skipped%s; %s, %s fetched%s; %s\n",
		countOf(sum.Records, "record"), bytesText(sum.Bytes), sum.BlobsListed, sum.BlobsOpened, sum.BlocksRead, sum.BlocksSkipped, filtered,
		countOf(sum.Requests, "read"), bytesText(sum.Fetched), copies, took.Round(10*time.Microsecond))
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

// countOf is a number with its noun.
func countOf(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
