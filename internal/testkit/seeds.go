package testkit

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
)

// Setting is a number from the environment, or another one if it has none.
func Setting(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// Seeds runs a world for each of count seeds from first on, two at a time, until one
// fails t. It returns the number of worlds that ended.
func Seeds(t *testing.T, first, count int, world func(t *testing.T, seed uint64)) (done int) {
	var next, ended atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		for worker := range 2 {
			t.Run(fmt.Sprint(worker), func(t *testing.T) {
				t.Parallel()
				for !t.Failed() {
					n := int(next.Add(1) - 1)
					if n >= count {
						return
					}
					if world(t, uint64(first+n)); t.Failed() {
						next.Store(int64(count)) // the other one stops too
					}
					Collect(ended.Add(1))
				}
			})
		}
	})
	return int(ended.Load())
}

// Collect is called after each world and frees the memory of all that ended. The
// collector alone takes all that is made while it marks for alive, and lets the heap
// grow by that each time.
func Collect(done int64) {
	if done%50 == 0 {
		runtime.GC()
	}
}
