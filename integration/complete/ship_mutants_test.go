package complete_test

// shippedMutants are the rules of shipped logs, each left out. Those of copied batches, and of copied
// stores, have tests in buffer/ship.
var shippedMutants = []mutant{
	{name: "shipped: acknowledged before the object is there", edits: []edit{{"buffer/ship/ship.go",
		`done, changed, fenced := s.opened && pos < s.shipped, s.changed, s.fenced`,
		`done, changed, fenced := s.opened, s.changed, s.fenced`}}},
	{name: "shipped: an adopter marks the log after it has read it", edits: []edit{{"buffer/ship/adopt.go",
		`	parts, err := s.mark(ctx, id, store)
`, `	parts, err := list(ctx, s.o.Blobs, id)
	parts = slices.DeleteFunc(parts, func(o *object) bool { return o.adopter != "" })
`}, {"buffer/ship/adopt.go", `	if err := s.awaitShipped(ctx); err != nil {
`, `	err = s.awaitShipped(ctx)
	if err == nil {
		_, err = s.mark(ctx, id, store)
	}
	if err != nil {
`}}},
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
	{name: "shipped: the last object is deleted too", edits: []edit{{"buffer/ship/ship.go",
		`n < len(s.kept)-1`, `n < len(s.kept)`}}},
	{name: "shipped: an adopted ingester takes the number behind the mark", edits: []edit{{"buffer/ship/ship.go",
		`	if taken != nil {
		s.fence(taken)
		return false, nil
	}
`, `	if taken != nil {
		s.next++
		s.pending = nil
		return true, nil
	}
`}}},
	{name: "shipped: an adopter does not wait until it has shipped", edits: []edit{{"buffer/ship/adopt.go",
		`	if err := s.awaitShipped(ctx); err != nil {
		return err
	}
`, ``}}},
	{name: "shipped: the row of one that is back is cleared", edits: []edit{{"internal/lease/adopt.go",
		`	if _, err := tables.Swap(ctx, Table, Partition, next.row()); err != nil {
`, `	if err := tables.Upsert(ctx, Table, Partition, []storage.Row{next.row()}); err != nil {
`}}},
	{name: "shipped: what was on the disk alone is no loss", edits: []edit{{"internal/lease/adopt.go",
		`	if was.Ships != ack.Shipped.String() {
`, `	if was.Ships == "" {
`}}},
	{name: "shipped: a start relies on its notes", edits: []edit{{"internal/lease/announcer.go",
		`	if notes.Ships != "" {
`, `	if notes.Ships == "none" {
`}}},
}
