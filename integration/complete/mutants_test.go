package complete_test

import (
	"slices"
	"testing"

	"blobtail/internal/dev/testkit"
)

// mutant is a rule left out.
type mutant struct {
	name  string
	edits []edit
	first int // seed to begin with
	seeds int // seeds within which a read must notice it; 0 is 2,000
}

type edit = testkit.Edit

// mutatedEnv tells the simulation that it runs for a mutant.
const mutatedEnv = "BLOBTAIL_COMPLETE_MUTATED"

// The simulation is worth the faults it finds. So each rule behind "exit 0 implies
// complete" is taken out of the source, and then a read must lack a record within a
// number of seeds.
func TestMutants(t *testing.T) {
	testkit.FullOnly(t, "the mutants are built without the race detector")
	var all []testkit.Mutant
	for _, m := range slices.Concat(mutants, hangMutants) {
		all = append(all, testkit.Mutant{Name: m.name, Edits: m.edits, First: m.first, Seeds: m.seeds})
	}
	for _, m := range serverMutants {
		all = append(all, testkit.Mutant{Name: m.name, Edits: m.edits, First: m.first, Seeds: m.seeds, Test: "TestServers"})
	}
	for _, m := range distantMutants {
		all = append(all, testkit.Mutant{Name: m.name, Edits: m.edits, First: m.first, Seeds: m.seeds, Test: "TestDistant"})
	}
	for _, m := range keptMutants {
		all = append(all, testkit.Mutant{Name: m.name, Edits: m.edits, First: m.first, Seeds: m.seeds, Test: "TestKept"})
	}
	for _, m := range storeCopyMutants {
		all = append(all, testkit.Mutant{Name: m.name, Edits: m.edits, First: m.first, Seeds: m.seeds, Test: "TestStoreCopies"})
	}
	for _, m := range shippedMutants {
		all = append(all, testkit.Mutant{Name: m.name, Edits: m.edits, First: m.first, Seeds: m.seeds, Test: "TestShipped"})
	}
	for _, m := range thiefMutants {
		all = append(all, testkit.Mutant{Name: m.name, Edits: m.edits, First: m.first, Seeds: m.seeds, Test: "TestThief"})
	}
	for _, m := range sharedMutants {
		all = append(all, testkit.Mutant{Name: m.name, Edits: m.edits, First: m.first, Seeds: m.seeds, Test: "TestShared"})
	}
	simulation.Catch(t, all)
}
