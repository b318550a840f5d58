package complete_test

// shippedMutants are the rules of shipped logs, each left out. Those of copied batches, of copied stores,
// of the last object, of the fence, and of moments within an adoption, have tests in buffer/ship.
var shippedMutants = []mutant{
	{name: "shipped: acknowledged before the object is there", edits: []edit{{"buffer/ship/ship.go",
		`done, changed, fenced := s.id != "" && pos < s.shipped, s.changed, s.fenced`,
		`done, changed, fenced := s.id != "", s.changed, s.fenced`}}},
	{name: "shipped: the adopted row is cleared first", edits: []edit{{"buffer/ship/adopt.go",
		`	requests, until := 0, row.Started
`, `	requests, until := 0, row.Started
	if err := lease.Adopted(ctx, a.Tables, row, s.o.ID(), until, a.Now()); err != nil {
		return err
	}
`}, {"buffer/ship/adopt.go", `	if err := lease.Adopted(ctx, a.Tables, row, s.o.ID(), until, a.Now()); err != nil {
		return err
	}
	s.o.Logger`, `	s.o.Logger`}}},
	{name: "shipped: an adopter does not lower its floor", edits: []edit{{"internal/lease/lease.go",
		`		if a.holding.Load() && oldest >= a.floor.Load() {
`, `		if a.holding.Load() {
`}}},
	{name: "shipped: objects are deleted before blobs have their records", edits: []edit{{"buffer/ship/ship.go",
		`n < mostReaped && s.kept[n].to <= first`, `n < mostReaped`}}},
	{name: "shipped: what was on the disk alone is no loss", edits: []edit{{"internal/lease/adopt.go",
		`	if was.Ships != ack.Shipped.String() && was.GivenUp.IsZero() {
`, `	if was.Ships == "" {
`}}},
	{name: "shipped: a start relies on its notes", edits: []edit{{"internal/lease/announcer.go",
		`	if notes.Ships != "" {
`, `	if notes.Ships == "none" {
`}}},
}
