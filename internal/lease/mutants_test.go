package lease_test

import (
	"regexp"
	"testing"

	"blobtail/internal/dev/testkit"
)

// Each rule of the floor is needed: without it a test of the floor fails. Rules that
// readers notice soon are left out of integration/complete too.
func TestFloorMutants(t *testing.T) {
	testkit.FullOnly(t, "the mutants are built without the race detector")
	testkit.Simulation{
		Package: "internal/lease", Test: "TestFloorWorlds", Prefix: "BLOBTAIL_FLOOR",
		Broken: regexp.MustCompile(`(floor(?:world)?_test\.go:\d+: .*)`),
	}.Catch(t, floorMutants)
}

var floorMutants = []testkit.Mutant{
	{Name: "acknowledged before the row says holding", Edits: []testkit.Edit{{"internal/lease/lease.go",
		`		if a.o.BestEffort {
			return func() {}, nil
		}
`, `		if try != nil {
			return func() {}, nil
		}
`}}},
	{Name: "writes without a condition", Test: "TestFloorRisesInOrder", Edits: []testkit.Edit{{"internal/lease/lease.go",
		`	version, err := a.tables.Swap(ctx, Table, Partition, next.row())
`, `	version, err := "", a.tables.Upsert(ctx, Table, Partition, []storage.Row{next.row()})
`}}},
	{Name: "the file leaves holding after the row", Edits: []testkit.Edit{{"internal/lease/lease.go",
		`	case want.state != Holding:
		if err := a.notes`, `	case want.state != Holding && a == nil:
		if err := a.notes`}}},
	{Name: "a start assumes that the row says holding", Edits: []testkit.Edit{{"internal/lease/announcer.go",
		`a.holding.Store(notes.State == Holding)`, `a.holding.Store(true)`}}},
	{Name: "idle while the log has records", Edits: []testkit.Edit{{"internal/lease/lease.go",
		`	if _, some := a.o.Oldest(); some {
		a.busy`, `	if _, some := a.o.Oldest(); some && a == nil {
		a.busy`}}},
	{Name: "a record below the floor acknowledged", Edits: []testkit.Edit{{"internal/lease/lease.go",
		`a.holding.Load() && oldest >= a.floor.Load() {`, `a.holding.Load() {`}}},
	{Name: "the floor rises over records in the log", Edits: []testkit.Edit{{"internal/lease/floor.go",
		`		earliest = t
	}
	switch`, `		_ = t
	}
	switch`}}},
	{Name: "the floor of the file rises after that of the row", Edits: []testkit.Edit{{"internal/lease/lease.go",
		`	case a.notes.State == Holding && a.notes.floor() < want.floor:
`, `	case a.notes.State == Holding && a.notes.floor() < want.floor && a == nil:
`}}},
	{Name: "the floor of the file falls before that of the row", Edits: []testkit.Edit{{"internal/lease/lease.go",
		`	next := a.compose(want, id)
`, `	if want.state == Holding && a.notes.State == Holding {
		if err := a.notes.change(func(n *notes) { n.say(want) }); err != nil {
			return err
		}
		a.floor.Store(want.floor)
	}
	next := a.compose(want, id)
`}}},
	{Name: "requests go on by the lower floor while it rises", Edits: []testkit.Edit{{"internal/lease/floor.go",
		`		a.floor.Store(higher)
`, ``}}},
	{Name: "a start takes the floor of the file for none", Edits: []testkit.Edit{{"internal/lease/announcer.go",
		`a.floor.Store(notes.floor())`, `a.floor.Store(unknown)`}}},
	{Name: "the floor of a new row is above records in the log", Test: "TestFloorOfNewRow", Edits: []testkit.Edit{{"internal/lease/floor.go",
		`	if earliest, some := a.o.Earliest(); some {
		oldest = min(oldest, earliest)
	}
`, ``}}},
	{Name: "the floor of a log that is not read yet", Test: "TestFloorOfStart", Edits: []testkit.Edit{{"internal/lease/floor.go",
		`	case !a.o.Replayed():
		return unknown
`, ``}}},
	{Name: "a copy relies on the floor of the first log", Test: "TestFloorUnreliable", Edits: []testkit.Edit{{"internal/lease/notes.go",
		`		n.State, n.Writers = "", nil
`, `		n.Writers = nil
`}}},
	{Name: "a floor with best effort", Test: "TestFloorUnreliable", Edits: []testkit.Edit{{"internal/lease/announcer.go",
		`		o.Earliest = nil // what it takes without the row may be of any time
`, `		_ = o
`}}},
	{Name: "a file of a960ca37 with a floor is not believed", Test: "TestFloorWithoutState", Edits: []testkit.Edit{{"internal/lease/notes.go",
		`	if !n.Floor.IsZero() {
		n.State = Holding
	}
`, ``}}},
	{Name: "the range may reach beyond the floor", Test: "TestSpares", Edits: []testkit.Edit{{"internal/lease/heartbeat.go",
		`!time.Unix(0, to).After(i.Floor)`, `!time.Unix(0, to).After(i.Floor.Add(time.Minute))`}}},
}
