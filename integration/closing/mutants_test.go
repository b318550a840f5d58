package closing_test

import (
	"testing"

	"blobtail/internal/dev/testkit"
)

// The simulation is worth the faults it finds. So each rule of closed days is taken out of the source,
// and a world must break a promise within a number of seeds.
func TestMutants(t *testing.T) {
	testkit.FullOnly(t, "the mutants are built without the race detector")
	simulation.Catch(t, mutants)
}

type edit = testkit.Edit

// mutants are the rules of closed days, each left out.
var mutants = []testkit.Mutant{
	{Name: "a part before the listing has settled", First: 987, Edits: []edit{{"retention/closing/closer.go",
		`		l, before, err = c.Settled(ctx, l)
	case`, `		before, err = catalog.ReadPart(ctx, c.store, l.Part.Key)
	case`}}},
	{Name: "deletion before the link", First: 38, Edits: []edit{{"retention/compact/remove.go",
		`d != nil && u.linked[link{b.Key, b.Meta.Batch}] {`, `d != nil {`}}},
	{Name: "a name linked with any batch", First: 972, Edits: []edit{{"retention/compact/account.go",
		`linked[link{b.Key, b.Batch}] = true`, `linked[link{key: b.Key}] = true`}, {"retention/compact/remove.go",
		`u.linked[link{b.Key, b.Meta.Batch}] {`, `u.linked[link{key: b.Key}] {`}}},
	{Name: "late blobs as losses", First: 83, Edits: []edit{{"retention/closing/next.go",
		`if !come[l.Key] {`, `if l.Key != "" {`}}},
	{Name: "late blobs as missing ones", First: 2, Edits: []edit{{"reading/blobs/accounts.go",
		`	a.tellLost(d, part, sum)
`, `	if len(missing) == 0 && len(l.Blobs) > len(part.Blobs)+len(part.Replaced) {
		found = append(found, &Problem{Blob: l.Part.Key, Err: errors.New("the day has another number of blobs")})
	}
	a.tellLost(d, part, sum)
`}}},
	{Name: "a digest without names", First: 2, Edits: []edit{{"catalog/closed/digest.go",
		`d.line = append(append(d.line[:0], name...), ' ')`, `d.line = d.line[:0]`}}},
	{Name: "an old number believed", Edits: []edit{{"retention/closing/closer.go",
		`		err = c.store.Create(ctx, p.Name, body, storage.Attrs{ContentType: closed.ContentType, Metadata: meta})
`, `		err = c.store.Create(ctx, p.Name, body, storage.Attrs{ContentType: closed.ContentType, Metadata: meta})
		if errors.Is(err, storage.ErrExist) {
			err = nil
		}
`}}},
	{Name: "judged by a listing of before", First: 646, Edits: []edit{{"catalog/account.go",
		`l.Part.Part.Number <= part {`, `l.Part.Part.Number >= 0 {`}}},
	{Name: "compaction of an open day", Edits: []edit{{"retention/compact/hour.go",
		`	if l.Part.Part.Number == 0 {
`, `	if l.Part.Part.Number < 0 {
`}, {"retention/compact/hour.go",
		`	linked, ok, err := r.account(ctx, l)
`, `	linked, ok, err := map[link]bool{}, true, error(nil)
	if l.Part.Part.Number > 0 {
		linked, ok, err = r.account(ctx, l)
	}
`}}},
	{Name: "a first account where there was one", First: 1401, Edits: []edit{{"retention/closing/closer.go",
		`l.Part.Part.Number < listed.Number {`, `l.Part.Part.Number < 0 {`}}},
	{Name: "a drop that was killed is not told", Edits: []edit{{"retention/remove.go",
		`slices.Contains(s.hidden.Dropped, d.Day) {`, `d.Day < 0 {`}}, Test: "TestKilled"},
	{Name: "verify goes by the newest root alone", First: 5, Edits: []edit{{"reading/blobs/verify_accounts.go",
		`		v.named = append(v.named, root.Days)
`, `		if v.named == nil {
			v.named = []closed.Parts{{}}
		}
		v.named[0].Add(root.Days)
`}}},
	{Name: "each root follows from the one before", Edits: []edit{{"reading/blobs/verify_accounts.go",
		`(!first || root.BeforeName == "")) {`, `first == first) {`}}, Test: "TestMidnight"},
	{Name: "days without a period passed over", First: 1, Edits: []edit{{"catalog/days.go",
		`level+1 == dayLevels && len(`, `level+1 == 0 && len(`}}},
	{Name: "hours passed over", First: 177, Edits: []edit{{"reading/blobs/newest.go",
		`!d.part.Accounts(d.sums, h, h+1) {`, `h < 0 {`}}},
	{Name: "late hours listed without the account", First: 188, Edits: []edit{{"catalog/list.go",
		`day <= r.Closed && to.Equal(`, `day < 0 && to.Equal(`}}},
}
