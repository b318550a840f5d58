package fan_test

import (
	"regexp"
	"testing"

	"blobtail/internal/dev/testkit"
)

// The rules that a shared answer rests on are taken out of the source, one after another. Then a test
// has to fail.
func TestMutants(t *testing.T) {
	testkit.FullOnly(t, "the mutants are built without the race detector")
	testkit.Simulation{
		Package: "reading/fan", Test: "TestSame", Prefix: "BLOBTAIL_FAN", Broken: regexp.MustCompile(`--- FAIL: (Test\S+)`),
	}.Catch(t, mutants())
}

func mutants() []testkit.Mutant {
	const share, part, parts = "reading/fan/share.go", "reading/fan/part.go", "reading/parts.go"
	return []testkit.Mutant{
		{Name: "a part reads the time of its end", Edits: []testkit.Edit{{"reading/blobs/parts.go",
			`			part.To = at
`, `			part.To = at + 1
`}}},
		{Name: "a part leaves out the time of its begin", Edits: []testkit.Edit{{"reading/blobs/parts.go",
			`Range{From: at, To: p.rng.To}`, `Range{From: at + 1, To: p.rng.To}`}}},
		{Name: "the outcome of a try that broke off is kept", Edits: []testkit.Edit{{"reading/fan/fan.go",
			`	if err != nil {
		return reading.Answer{}, err
	}
	ans.Summary, ans.Notes = out.Summary(), out.Notes
	return ans, nil
`, `	if out != nil {
		ans.Summary, ans.Notes = out.Summary(), out.Notes
	}
	return ans, err
`}, {share,
			`		p.broken()
		return false
`, `		p.broken()
		p.answer.Join(&ans.Summary)
		return false
`}, {share,
			`	p.answer, p.elsewhere = ans, elsewhere
`, `	ans.Join(&p.answer.Summary)
	p.answer, p.elsewhere = ans, elsewhere
`}}},
		{Name: "a name that is absent is not told", Edits: []testkit.Edit{{"reading/blobs/parts.go",
			`	sum.Join(&of)
`, `	sum.Absent = nil
	sum.Join(&of)
`}}},
		{Name: "lines that came are read again", Edits: []testkit.Edit{{part,
			`		rng.From = p.edge
`, `		rng.From = p.From
`}}},
		{Name: "lines that came are read again, backwards", Edits: []testkit.Edit{{part,
			`		rng.To = p.edge
	} else`, `		rng.To = p.To
	} else`}}},
		{Name: "lines are shown before all of their time came", Edits: []testkit.Edit{{part,
			`	if breaks {
`, `	if breaks && len(lines) == 0 {
`}}},
		{Name: "nobody counts what came before an answer broke off", Test: "TestBrokenIncomplete", Edits: []testkit.Edit{{share,
			`		if there.Records != p.kept.lines || sum != p.kept.sum {
`, `		if there.Records < 0 {
`}}},
		{Name: "workers ask ingesters", Edits: []testkit.Edit{{parts,
			`	a.Live, a.Here.Sure = unflushed.Elsewhere, true
`, `	a.Here.Sure = true
`}}},
		{Name: "workers read parts with unflushed records", Edits: []testkit.Edit{{share,
			`			if p.taken || w != nil && p.Held {
`, `			if p.taken {
`}}},
		{Name: "workers of another store are believed", Test: "TestRefused", Edits: []testkit.Edit{{parts,
			`	case id != p.store:
`, `	case id != p.store && p.age < 0:
`}}},
		{Name: "workers of another version are believed", Test: "TestFaults", Edits: []testkit.Edit{{parts,
			`	if version != partVersion || store`, `	if version == "" || store`}}},
		{Name: "the age of a question begins with its part", Test: "TestPart", Edits: []testkit.Edit{{parts,
			`	q.Sure, q.Part, q.Aged = true, true, p.age
`, `	q.Sure, q.Part = true, true
`}}},
		{Name: "workers read parts with an edge", Test: "TestEdges", Edits: []testkit.Edit{{parts,
			`		p.Held = p.Held || a.Edges.Touch(p.Range)
`, `		p.Held = p.Held || a.Edges.Touch(p.Range) && p.Bytes < 0
`}}},
		{Name: "an hour of one service is divided", Test: "TestSmall", Edits: []testkit.Edit{{parts,
			`	case plan.Hours() < 2:
`, `	case plan.Hours() < 0:
`}}},
	}
}
