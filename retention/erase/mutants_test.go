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
			`if err := erasure.Mark(ctx, r.blobs, d.Service, d.Day, r.out.Hash[:16]); err != nil {`,
			`if err := erasure.Mark(ctx, r.blobs, "x", 1, r.out.Hash[:16]); err != nil {`}}},
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
			`		if r.out.nothing() {
			break
`, `		if r.out.nothing() || r.out.Deleted > 0 {
			break
`}}},
		{Name: "deleted too soon", Test: "TestReadFromBefore", Seeds: 1, Edits: []testkit.Edit{{"retention/erase/pass.go",
			`&& r.now.Sub(e.Created) >= r.o.Patience;`, `&& r.now.Sub(e.Created) >= 0;`}}},
	})
}
