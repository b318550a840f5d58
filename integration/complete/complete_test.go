// Package complete_test tests one rule of reads: exit 0 implies that the answer has
// every record acknowledged before the read began. It runs the parts that the rule
// rests on (wal over simulated disks, buffer, blobwriter, lease, live, unflushed and
// query) in one process and in virtual time.
//
// [TestComplete] draws whole worlds from seeds. Ingesters are killed, stopped or
// copied, or lose their power or their disks. Tables and blobs fail, hang, lose
// answers, or carry out a write after its caller has given up, for each party by
// itself. Operators forget ingesters and remove the table. Readers reach all of this,
// some of it or none. After each read without a problem, the test compares the records
// in the answer with the acknowledged ones. At the end every fault is repaired, and
// reads must be complete again. In a world without faults every read must be complete,
// and no request may be refused. [TestMutants] removes the rules of the production
// code, one after another, and makes sure that a read notices. In [TestThief] somebody
// removes, swaps and puts back objects of closed days. In [TestShared] readers share their questions
// with workers.
//
// A world leaves out these cases, because the rule does not cover them:
//
//   - Records of an ingester with best effort.
//   - Records that an operator has given up. A forgotten ingester's records count again
//     when it writes its row again. After the table is removed, the records of
//     ingesters that have not written again do not count until the first ingester that
//     had a row writes one. They do not count either from the moment the losses are
//     acknowledged.
//   - A copy of a log that runs next to the original with the same inode, as a copy of
//     a whole disk does. An ingester cannot tell such a copy from a restart. So a read
//     may rely on the copy alone until the original notices, at its next announcement.
//   - A request that is sent again after its log moved to another store. The log knows
//     the request and reports it as stored, which it is, in the first store.
//   - Several named services with a limit: see [reading.ask].
//   - A process that is stopped between [lease.Announcer.Enter] and the end of
//     Accept. A goroutine that waits for a mutex keeps the time of a bubble from
//     passing.
//   - Damaged disks, and a store that loses its object _store or is replaced under a
//     running ingester.
//
// A seed fixes the steps and the faults, and time is virtual. But the scheduler chooses
// between two runnable goroutines, and ids of processes and batches are random. Nearly
// all seeds tell the same story each time, but a failing seed may pass on the next run.
//
//	BLOBTAIL_COMPLETE_SEEDS=20000 go test ./integration/complete -run TestComplete
//	BLOBTAIL_COMPLETE_FIRST=712 BLOBTAIL_COMPLETE_SEEDS=1 go test ./integration/complete -v
//
// With BLOBTAIL_COMPLETE_STORY=1 a seed that passes is logged in full, too.
package complete_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"blobtail/internal/dev/testkit"
)

// A read that exits with 0 has every record that was acknowledged before it began, no
// record twice, and no record that was never sent.
func TestComplete(t *testing.T) {
	testComplete(t, simulation, newWorld)
}

// So it is with readers that are far from their store. They list it in parts, and guess by clocks
// that may be wrong.
func TestDistant(t *testing.T) {
	s := simulation
	s.Test, s.Seeds = "TestDistant", 150
	testComplete(t, s, func(seed uint64) *world {
		w := newWorld(seed)
		w.distant = true
		return w
	})
}

func testComplete(t *testing.T, s testkit.Simulation, create func(seed uint64) *world) {
	var total totals
	first, done := testkit.Worlds(t, s, create, func(w *world) { testkit.Add(&total, &w.totals) })
	t.Logf("%d seeds from %d: %s", done, first, &total)
	// Refusing everything proves nothing.
	if done >= 200 && os.Getenv(mutatedEnv) == "" && total.Complete*3 < total.Reads {
		t.Errorf("only %d of %d reads are complete", total.Complete, total.Reads)
	}
}

var simulation = testkit.Simulation{
	Package: "integration/complete", Test: "TestComplete", Prefix: "BLOBTAIL_COMPLETE", Seeds: 250, Few: 8, Env: []string{mutatedEnv + "=1"},
	Broken: regexp.MustCompile(`violation: (seed \d+: .*(exit 0 without|never sent|comes twice|a complete answer|asks an ingester).*)`),
}

// totals counts the events in one world, or in many.
type totals struct {
	Starts, Kills, PowerCuts, Stops, Destroyed, Damaged, Frozen, Copies, Drops, OtherStore int
	Sent, Acked                                                                            int
	Adopted, Fenced, Back, Broken                                                          int
	Reads, Complete, Blind                                                                 int
	Holding, Idle, Stopped, Forgotten, Losses                                              int
	LateWrites, LateLanded                                                                 int

	refused, incomplete map[string]int // by cause
}

func byCause(m map[string]int) string {
	var parts []string
	for _, k := range slices.SortedFunc(maps.Keys(m), func(a, b string) int { return cmp.Or(m[b]-m[a], strings.Compare(a, b)) }) {
		parts = append(parts, fmt.Sprintf("%s %d", k, m[k]))
	}
	return strings.Join(parts, "; ")
}

func (t *totals) String() string {
	return fmt.Sprintf("%d starts, %d kills, %d power cuts, %d stops, %d disks destroyed, %d logs called damaged after a power cut, %d times stopped by SIGSTOP, %d logs copied, %d tables removed, %d starts refused with another store; "+
		"%d requests sent, %d acknowledged, not: %s; "+
		"rows turned to holding %d times, idle %d, stopped %d, %d forgotten, %d times losses acknowledged; %d late writes, of which %d were carried out; "+
		"%d reads, %d complete, %d without any URL, incomplete for: %s",
		t.Starts, t.Kills, t.PowerCuts, t.Stops, t.Destroyed, t.Damaged, t.Frozen, t.Copies, t.Drops, t.OtherStore,
		t.Sent, t.Acked, byCause(t.refused), t.Holding, t.Idle, t.Stopped, t.Forgotten, t.Losses, t.LateWrites, t.LateLanded,
		t.Reads, t.Complete, t.Blind, byCause(t.incomplete))
}
