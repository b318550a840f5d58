package sim_test

import (
	"testing"

	"blobtail/internal/dev/testkit"
)

// mutant is a rule of the production code left out.
type mutant struct {
	name  string
	edits []edit
	test  string // test that must notice; "" is TestSimulation
	first int    // seed to begin with
	seeds int    // seeds within which the test must notice it; 0 is 2,000
}

type edit = testkit.Edit

// The simulation is worth the faults it finds. So each rule behind commit-protocol is
// taken out of the source, and the rest must break a promise within a number of seeds.
func TestMutants(t *testing.T) {
	testkit.FullOnly(t, "the mutants are built without the race detector")
	var all []testkit.Mutant
	for _, m := range mutants {
		all = append(all, testkit.Mutant{Name: m.name, Edits: m.edits, Test: m.test, First: m.first, Seeds: m.seeds})
	}
	simulation.Catch(t, all)
}
