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

// memoryGoal is where the collector of a server begins to work harder, so that many large
// queries at once do not take the process far beyond. GOMEMLIMIT sets another one.
const memoryGoal = 384 << 20

// boundMemory is for a server, in place of collectLater, which would lift the goal after the
// first collection.
func boundMemory(getenv func(string) string) {
	if getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryGoal)
	}
}
