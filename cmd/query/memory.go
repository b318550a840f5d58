package main

import (
	"math"
	"runtime"
	"runtime/debug"
)

// uncollected is the memory from which on garbage is collected: more than short reads take
// in all.
const uncollected = 64 << 20

// collectLater puts off the garbage collector until the process has taken some memory. Most
// reads end before, and a collection takes a part of their time. A longer read collects as
// usual. The environment decides if it has a setting.
func collectLater(getenv func(string) string) {
	if getenv("GOGC") != "" || getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(uncollected)
	// The first collection cleans this up. From then on the limit would let the collector
	// run all the time.
	runtime.AddCleanup(new([16]byte), func(struct{}) {
		debug.SetGCPercent(100)
		debug.SetMemoryLimit(math.MaxInt64)
	}, struct{}{})
}

// serverMemory is the memory from which on a server collects garbage more often. Its queries
// keep less than half of that.
const serverMemory = 400 << 20

// boundMemory lets a server collect garbage as usual, and more often before it takes much
// memory. The environment decides if it has a setting.
func boundMemory(getenv func(string) string) {
	if getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(serverMemory)
	}
}
