package erase_test

import (
	"regexp"
	"testing"

	"blobtail/internal/dev/testkit"
)

// Each rule is needed: without it a test fails.
func TestMutants(t *testing.T) {
	testkit.FullOnly(t, "the mutants are built without the race detector")
	testkit.Simulation{
		Package: "retention/erase", Test: "TestWithinCompaction", Prefix: "BLOBTAIL_ERASE",
		Broken: regexp.MustCompile(`([a-z]+_test\.go:\d+: .*)`),
	}.Catch(t, []testkit.Mutant{
		{Name: "no mark", Seeds: 1, Edits: []testkit.Edit{{"retention/erase/pass.go",
			`erasure.Mark(ctx, r.blobs, service, day, r.marked)`, `erasure.Mark(ctx, r.blobs, "x", 1, r.marked)`}}},
		{Name: "no hold looked for before a step", Test: "TestMeetsHold", Seeds: 1, Edits: []testkit.Edit{{"retention/erase/pass.go",
			`	err := r.free(ctx, d)
`, `	_, err := d, ctx.Err()
`}, {"retention/erase/pass.go",
			`err = r.free(ctx, d)
`, `err = ctx.Err()
`}}},
		{Name: "no hold looked for before an erased blob", Test: "TestMeetsHold", Seeds: 1, Edits: []testkit.Edit{{
			"retention/erase/pass.go", `err := r.claim(ctx, l.Service, l.Day)`, `err := ctx.Err()`}}},
		{Name: "the hold looks for no mark", Test: "TestMeetsHold", Seeds: 1, Edits: []testkit.Edit{{"retention/hold.go",
			`now.Add(-erasure.Fresh)`, `now.Add(erasure.Fresh)`}}},
		{Name: "compaction deletes what is held", Test: "TestMeetsHold", Seeds: 1, Edits: []testkit.Edit{{"retention/compact/remove.go",
			`if holds.Of(u.service, horizon.DayOf(u.hour)) != nil {`, `if holds.Of("x", horizon.DayOf(u.hour)) != nil {`}}},
		{Name: "the mark not looked for after the Create", Seeds: 1, Edits: []testkit.Edit{{"retention/compact/rewrite.go",
			`	outrun, err := w.outrun(ctx, meta.Batch)
`, `	outrun, err := false, error(nil)
`}}},
		{Name: "the id of the plain compaction", Test: "TestLargeAlone", Seeds: 1, Edits: []testkit.Edit{{"retention/erase/pass.go",
			`[]byte("blobtail erased\n"), expr[:], of[:])`, `[]byte("blobtail compacted\n"), of[:], expr[:0])`}}},
		{Name: "sections skipped", Test: "TestNothingLeft", Seeds: 1, Edits: []testkit.Edit{{"catalog/catalog.go",
			`	if c.Erased {
`, `	if c.Erased && c.Records < 0 {
`}}},
		{Name: "a plain compaction of them", Test: "TestNothingLeft", Seeds: 1, Edits: []testkit.Edit{{"retention/compact/rewrite.go",
			`return b.Meta.Erased })`, `return b.Meta.Records < 0 })`}}},
		{Name: "the account does not tell", Test: "TestNothingLeft", Seeds: 1, Edits: []testkit.Edit{{"retention/erase/pass.go",
			`	if l.Part.Part.Number > 0 {
`, `	if l.Part.Part.Number < 0 {
`}}},
		{Name: "no second listing", Test: "TestHolding", Seeds: 1, Edits: []testkit.Edit{{"retention/erase/erase.go",
			`		if idle++; r.out.did() != did {
`, `		if idle++; r.out.Deleted > 0 {
			break
		} else if r.out.did() != did {
`}}},
		{Name: "deleted too soon", Test: "TestReadFromBefore", Seeds: 1, Edits: []testkit.Edit{{"retention/erase/pass.go",
			`&& r.now.Sub(e.Created) >= r.o.Patience {`, `&& r.now.Sub(e.Created) >= 0 {`}}},
	})
}
