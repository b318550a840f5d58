// Package complete_test holds reads to the rule that exit 0 implies that every
// record acknowledged before the read began is in the answer. It runs the parts that
// the rule rests on (wal over simulated disks, buffer, blobwriter, heartbeat, live,
// newest and query) in one process and in virtual time.
//
// [TestComplete] draws whole worlds from seeds: ingesters that are killed, stopped or
// copied, or lose their power or their disks; tables and blobs that fail, hang, lose
// answers, or carry out a write when nobody waits for it any more, for each party by
// itself; operators who forget ingesters and remove the table; readers that may reach
// some of all this. After each read without a problem what was acknowledged is held
// against what came. At the end all is mended, and reads must be complete again; where
// nothing fails, every read must be, and no request may be refused. [TestMutants] takes
// the rules of the production code away, one after another, and makes sure that a
// read notices.
//
// What a world leaves out, because the rule does not cover it:
//
//   - Readers of a remote store that know no URL are documented to exit with 0 and a
//     note. They are run, and must give out nothing twice and nothing foreign.
//   - What an ingester with best effort took, and what an operator has given up: the
//     records of an ingester that was forgotten until that writes its row again; when
//     the table was removed, also what ingesters hold that have not written again,
//     until the first that had a row does, and from when the losses are acknowledged.
//   - A copy of a log under the inode of the first, as a copy of a whole disk makes it,
//     beside the first. An ingester cannot tell such a copy from a restart, so until
//     the first one notices, at its next announcement, a read may rely on the copy
//     alone.
//   - A request that is sent again after its log went over to another store. The log
//     knows the request, and says that it is stored: it is, in the first store.
//   - Several named services with a limit: see [reading.ask].
//   - A process that is stopped between [heartbeat.Announcer.Enter] and the end of
//     Accept. Whoever waits for a mutex keeps the time of a bubble from passing.
//   - Damage of disks, and a store that loses its object _store or is replaced under a
//     running ingester.
//
// A seed fixes what is done and what goes wrong, and time is virtual, but which of two
// goroutines that may both run goes first is up to the scheduler, and ids of processes
// and batches are random. Nearly all seeds tell the same story each time; one that
// fails may pass when it is run again.
//
//	BLOBTAIL_COMPLETE_SEEDS=20000 go test ./integration/complete -run TestComplete
//	BLOBTAIL_COMPLETE_FIRST=712 BLOBTAIL_COMPLETE_SEEDS=1 go test ./integration/complete -run TestComplete -v
//	BLOBTAIL_COMPLETE_STORY=1 BLOBTAIL_COMPLETE_FIRST=712 ... # also tells the story of a seed that passes
package complete_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"blobtail/internal/testkit"
)

// A read that exits with 0 has every record that was acknowledged before it began,
// none twice, and none that was never sent.
func TestComplete(t *testing.T) {
	first := testkit.Setting("BLOBTAIL_COMPLETE_FIRST", 0)
	var mu sync.Mutex
	var total totals
	done := testkit.Seeds(t, first, testkit.Setting("BLOBTAIL_COMPLETE_SEEDS", testkit.Share(2000, 25)), func(t *testing.T, seed uint64) {
		w := runWorld(t, seed)
		mu.Lock()
		defer mu.Unlock()
		total.add(&w.totals)
	})
	t.Logf("%d seeds from %d: %s", done, first, &total)
	// Nothing is proved by refusing everything.
	if done >= 200 && os.Getenv(mutatedEnv) == "" && total.Complete*3 < total.Reads {
		t.Errorf("only %d of %d reads are complete", total.Complete, total.Reads)
	}
}

func runWorld(t *testing.T, seed uint64) *world {
	var w *world
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(seed)
		w.run()
	})
	for _, v := range w.violations {
		t.Errorf("violation: seed %d: %s", seed, v)
	}
	for _, v := range w.troubles {
		t.Errorf("trouble: seed %d: %s", seed, v)
	}
	if len(w.violations)+len(w.troubles) > 0 || os.Getenv("BLOBTAIL_COMPLETE_STORY") != "" {
		t.Logf("%+v\n%s\nagain: BLOBTAIL_COMPLETE_FIRST=%d BLOBTAIL_COMPLETE_SEEDS=1 go test ./integration/complete -run TestComplete -v",
			w.p, strings.Join(w.story, "\n"), seed)
	}
	return w
}

// totals are what happened in a world, or in many.
type totals struct {
	Starts, Kills, PowerCuts, Stops, Destroyed, Damaged, Frozen, Copies, Drops, OtherStore int
	Sent, Acked                                                                            int
	Reads, Complete, Blind                                                                 int
	Holding, Idle, Stopped, Forgotten, Losses                                              int
	LateWrites, LateLanded                                                                 int

	refused, incomplete map[string]int // by cause
}

func (t *totals) add(o *totals) {
	sum, more := reflect.ValueOf(t).Elem(), reflect.ValueOf(o).Elem()
	for i := range sum.NumField() {
		if f := sum.Field(i); f.CanInt() && f.CanSet() {
			f.SetInt(f.Int() + more.Field(i).Int())
		}
	}
	join := func(to *map[string]int, from map[string]int) {
		if *to == nil {
			*to = map[string]int{}
		}
		for k, n := range from {
			(*to)[k] += n
		}
	}
	join(&t.refused, o.refused)
	join(&t.incomplete, o.incomplete)
}

func byCause(m map[string]int) string {
	var parts []string
	for _, k := range slices.SortedFunc(maps.Keys(m), func(a, b string) int { return cmp.Or(m[b]-m[a], strings.Compare(a, b)) }) {
		parts = append(parts, fmt.Sprintf("%s %d", k, m[k]))
	}
	return strings.Join(parts, "; ")
}

func (t *totals) String() string {
	return fmt.Sprintf("%d starts, %d kills, %d power cuts, %d stops, %d disks destroyed, %d logs called damaged after a power cut, %d times stopped by SIGSTOP, %d logs copied, %d tables removed, %d starts refused with another store;\n"+
		"%d requests sent, %d acknowledged, not: %s;\n"+
		"rows turned to holding %d times, idle %d, stopped %d, %d forgotten, %d times losses acknowledged; %d late writes, of which %d were carried out;\n"+
		"%d reads, %d complete, %d without any URL, incomplete for: %s",
		t.Starts, t.Kills, t.PowerCuts, t.Stops, t.Destroyed, t.Damaged, t.Frozen, t.Copies, t.Drops, t.OtherStore,
		t.Sent, t.Acked, byCause(t.refused), t.Holding, t.Idle, t.Stopped, t.Forgotten, t.Losses, t.LateWrites, t.LateLanded,
		t.Reads, t.Complete, t.Blind, byCause(t.incomplete))
}
