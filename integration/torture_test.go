package integration_test

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// torture reports whether long runs are wanted, and the duration of each test that
// can run for any time: BLOBTAIL_TORTURE is that in minutes. `make torture` sets it;
// `make test` does not.
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

// longOnly skips a test in the daily run, where others prove the same.
func longOnly(t testing.TB, others string) {
	t.Helper()
	if _, long := torture(t); !long {
		t.Skip(others)
	}
}

// lasting returns the duration of a test: the daily one, or torture's if that is
// longer.
func lasting(t testing.TB, daily time.Duration) time.Duration {
	if d, yes := torture(t); yes {
		return max(d, daily)
	}
	return daily
}

// sized returns a size of a test: the daily one, or that of a long run, which sets the
// variable.
func sized(variable string, daily, long int) int {
	if os.Getenv(variable) != "" {
		return long
	}
	return daily
}

// newSeed returns the seed of a test's random numbers: BLOBTAIL_SEED, to repeat a
// failure, else a new one.
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
