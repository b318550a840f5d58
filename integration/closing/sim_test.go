// Package closing_test runs closed days (package closing) over simulated stores: ingesters that
// store late, daily runs, operators who close and drop days, compaction, expiry, readers, and hands
// that remove and change objects. Each operation, and each page of a listing, happens at a moment of
// its own, so that all of them meet. Processes are killed at any operation, and hang.
//
// [TestClosing] draws whole worlds from seeds. [TestKilled] kills each job of some small worlds at
// each of its operations. In [TestMidnight] runs of two days end together. [TestMutants] takes the
// rules out of the production code, one after another, and makes sure that a world notices.
//
// The promises:
//
//   - No false alarm: as long as no hand has touched the store, no read, no verify and no job says
//     that something is missing, has vanished or was changed.
//   - No loss unnamed: a read that says it is complete has every record that was stored before it
//     began and was not dropped, whatever hands have removed of an account that a root names; and
//     verify names each day that they have touched.
//   - Link, then act: compaction deletes no blob before a part says that another replaces it, and
//     never the last copy of a record. It leaves days without an account alone.
//   - An account has all that was stored before its run began, and at the end names nothing as lost
//     that came late.
//
// A seed fixes the steps and the faults, and time is virtual. The scheduler chooses between two
// goroutines that can run at the same moment, so a seed that fails may pass when it is run again.
//
//	BLOBTAIL_CLOSING_SEEDS=20000 go test ./integration/closing -run TestClosing
//	BLOBTAIL_CLOSING_FIRST=712 BLOBTAIL_CLOSING_SEEDS=1 go test ./integration/closing -run TestClosing -v
package closing_test

import (
	"fmt"
	"regexp"
	"testing"

	"blobtail/internal/dev/testkit"
)

var simulation = testkit.Simulation{
	Package: "integration/closing", Test: "TestClosing", Prefix: "BLOBTAIL_CLOSING", Seeds: 250, Few: 8,
	Broken: regexp.MustCompile(`violation: (seed \d+: .*)`),
}

func TestClosing(t *testing.T) {
	var total totals
	first, done := testkit.Worlds(t, simulation, newWorld, func(w *world) { testkit.Add(&total, &w.totals) })
	t.Logf("%d seeds from %d: %s", done, first, &total)
	// Refusing everything proves nothing.
	few := total.Complete*2 < total.Reads || total.Hands < done/4 || total.Deleted < done || total.Closed < done
	if done >= 200 && !t.Failed() && few {
		t.Error("these worlds have too little in them")
	}
}

// totals counts the events in one world, or in many.
type totals struct {
	Parts, Roots, Closed       int
	Compacted, Deleted, Kills  int
	Reads, Complete, Concealed int
	Verified, Hands            int
}

func (t *totals) String() string {
	return fmt.Sprintf("%d parts, %d roots, %d days closed at the end; %d blobs made by compaction, %d objects deleted; %d kills; "+
		"%d reads, %d complete, and %d records in them concealed by hands; %d times verified; %d hands",
		t.Parts, t.Roots, t.Closed, t.Compacted, t.Deleted, t.Kills, t.Reads, t.Complete, t.Concealed, t.Verified, t.Hands)
}
