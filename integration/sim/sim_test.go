// Package sim_test runs the parts of an ingester (wal, buffer, blobwriter) and the
// reader over simulated disks, stores, streams and clocks. At the end it compares the
// records read with the answers that clients got.
//
// [TestSimulation] draws whole worlds from seeds. Ingesters are killed, or lose their
// power, at any operation of their disks. A store loses requests, answers late or not
// at all, and executes requests that were given up long ago. Clients and a stream send
// again elsewhere. The stream gets partitions and loses them. Days are dropped, and compactors run. [TestStates] forks the disk at
// every operation of one workload and starts from each state that a crash may leave.
// [TestMutants] removes the rules of the production code, one after another, and makes
// sure that the simulation notices.
//
// A seed fixes the steps and the faults, and time is virtual. But the scheduler chooses
// between two runnable goroutines, and segment and batch ids are random. So a seed that
// fails may pass when it is run again.
//
//	BLOBTAIL_SIM_SEEDS=20000 go test ./integration/sim -run TestSimulation
//	BLOBTAIL_SIM_FIRST=712 BLOBTAIL_SIM_SEEDS=1 go test ./integration/sim -run TestSimulation -v
package sim_test

import (
	"fmt"
	"regexp"
	"testing"

	"blobtail/internal/dev/testkit"
)

// Each acknowledged record is read once, and any other record at most once. A request
// accepted once is never stored twice. All this holds under any fault.
func TestSimulation(t *testing.T) {
	var total totals
	first, done := testkit.Worlds(t, simulation, newWorld, func(w *world) { testkit.Add(&total, &w.totals) })
	t.Logf("%d seeds from %d: %s", done, first, &total)
}

var simulation = testkit.Simulation{
	Package: "integration/sim", Test: "TestSimulation", Prefix: "BLOBTAIL_SIM", Seeds: 500, Env: []string{"BLOBTAIL_CRASH_STATES=75000"},
	Broken: regexp.MustCompile(`violation: (seed \d+[:,] .*)`),
}

// totals counts the events in one world, or in many.
type totals struct {
	lives, kills, powerCuts, shutdowns, failedSyncs, fullDisk int
	requests, sent, repeats, refused                          int
	messages, republished, deliveries, acks, acksLost         int
	puts, lostRequests, lostAnswers, latePuts, landed         int
	blobs, parked                                             int
	raised, expired, expiredBatches                           int
	compacted, compactedTo, replaced                          int
}

func (t *totals) String() string {
	return fmt.Sprintf("%d lives of ingesters (%d killed, %d ended by power cuts, %d shut down before), %d failed fsyncs, %d writes to a full disk; "+
		"%d requests sent %d times, %d refused, %d repeats recognised; "+
		"%d messages, and %d again in partitions and out of them, delivered %d times, %d acknowledged before the end, %d acks lost or late; "+
		"%d creates: %d lost, %d answers lost, %d late, of which %d took a name; %d blobs; %d batches parked in worlds with a refused service; "+
		"%d times days dropped, %d records answered as expired, %d batches not stored for it; "+
		"%d blobs compacted to %d, %d deleted for it",
		t.lives, t.kills, t.powerCuts, t.shutdowns, t.failedSyncs, t.fullDisk,
		t.requests, t.sent, t.refused, t.repeats, t.messages, t.republished, t.deliveries, t.acks, t.acksLost,
		t.puts, t.lostRequests, t.lostAnswers, t.latePuts, t.landed, t.blobs, t.parked, t.raised, t.expired, t.expiredBatches, t.compacted, t.compactedTo, t.replaced)
}
