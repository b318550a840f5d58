package integration_test

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// torture says whether the tests are to take their time, and how long each of
// those that can take any may: BLOBTAIL_TORTURE is that in minutes. `make
// torture` sets it; `make test` does not.
func torture(t testing.TB) (each time.Duration, yes bool) {
	t.Helper()
	text := os.Getenv("BLOBTAIL_TORTURE")
	if text == "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n <= 0 {
		t.Fatalf("BLOBTAIL_TORTURE=%s is no number of minutes", text)
	}
	return time.Duration(n * float64(time.Minute)), true
}

// lasting is how long a test goes on: so long every day, or what torture gives it.
func lasting(t testing.TB, daily time.Duration) time.Duration {
	if d, yes := torture(t); yes {
		return max(d, daily)
	}
	return daily
}

// newSeed is the seed of a test's dice: BLOBTAIL_SEED, to go through a failure
// again, else a new one.
func newSeed(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("BLOBTAIL_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("BLOBTAIL_SEED=%s is no number", text)
		}
		seed = n
	}
	t.Logf("seed %d", seed)
	return seed
}
