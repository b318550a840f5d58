package testkit

import (
	"os"
	"testing"
)

// Share is how many cases a test goes through. Tests that count their cases have two
// runs in `make test`: one without the race detector has them all, and one with it,
// which makes simulations and compression some ten times slower, has a few. So has a
// run with -short.
func Share(all, few int) int {
	if raceEnabled || testing.Short() {
		return few
	}
	return all
}

// Portion is a [Share] with a third size: `make torture`, which sets BLOBTAIL_TORTURE, goes
// through all cases, and `make test` through a part of them.
func Portion(all, part, few int) int {
	if os.Getenv("BLOBTAIL_TORTURE") != "" {
		part = all
	}
	return Share(part, few)
}

// FullOnly leaves a test to the run without the race detector, and says why.
func FullOnly(t testing.TB, why string) {
	t.Helper()
	if raceEnabled || testing.Short() {
		t.Skip(why)
	}
}
