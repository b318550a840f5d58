package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// allGarbage is how many bytes of garbage the collector leaves before it collects. Nearly
	// all memory in use is buffers for batches, which are used again. With the runtime's
	// rule, as much garbage as memory in use, the process grows for millions of records
	// although it needs no more.
	allGarbage = 24 << 20

	// A collection costs time for each byte in use that has pointers, so there is more
	// garbage where much is in use. With little in use the runtime's own rule holds.
	leastPercent, mostPercent = 15, 100
)

// garbagePercent is the garbage that the collector may leave, in percent of the memory in use.
func garbagePercent(inUse uint64) int {
	return int(min(max(allGarbage*100/max(inUse, 1), leastPercent), mostPercent))
}

// boundGarbage sets the percentage of the collector until ctx ends. The operator's GOGC wins.
func boundGarbage(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	t := time.NewTicker(200 * time.Millisecond)
	defer t.Stop()
	inUse := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	for set := mostPercent; ; {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		metrics.Read(inUse)
		// Setting it stops the process for a moment, so small changes are left out.
		if want := garbagePercent(inUse[0].Value.Uint64()); want < set-set/8 || want > set+set/8 {
			debug.SetGCPercent(want)
			set = want
		}
	}
}
