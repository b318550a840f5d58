package testkit

import (
	"os"
	"testing"
)

// Share is how many cases a test goes through: all, or a few with -short. `make test` runs all, and
// once more a few under the race detector, which makes a test some ten times slower.
func Share(all, few int) int {
	if testing.Short() {
		return few
	}
	return all
}

// Torture tells whether `make torture` runs the tests, which sets BLOBTAIL_TORTURE. Tests then go
// through cases that are too many for each change.
func Torture() bool { return os.Getenv("BLOBTAIL_TORTURE") != "" }

// Portion is a [Share] with a third size: [Torture] goes through all cases, and `make test` through
// a part of them.
func Portion(all, part, few int) int {
	if Torture() {
		return all
	}
	return Share(part, few)
}

// FullOnly leaves a test out with -short, and says why: it handles much data, or measures memory,
// which the race detector takes too.
func FullOnly(t testing.TB, why string) {
	t.Helper()
	if testing.Short() {
		t.Skip(why)
	}
}
