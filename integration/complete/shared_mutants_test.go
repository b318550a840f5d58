package complete_test

// sharedMutants are the rules that questions rest on which are shared with workers, each left out. Package
// fan has more.
var sharedMutants = []mutant{
	{name: "a second between two parts left out", edits: []edit{{"reading/blobs/parts.go",
		`Range{From: at, To: p.rng.To}`, `Range{From: at + 1_000_000_000, To: p.rng.To}`}}},
	{name: "a second read by two parts", edits: []edit{{"reading/blobs/parts.go",
		`			part.To = at
`, `			part.To = at + 1_000_000_000
`}}},
	{name: "workers ask ingesters", edits: []edit{{"reading/parts.go",
		`	a.Live, a.Here.Sure = unflushed.Elsewhere, true
`, `	a.Here.Sure = true
`}}},
	{name: "parts with unflushed records read by workers", edits: []edit{{"reading/fan/share.go",
		`			if p.taken || w != nil && p.Held {
`, `			if p.taken {
`}}},
	{name: "the answer of a worker that broke off taken for whole", edits: []edit{{"reading/fan/share.go",
		`	blameless := errors.Is(err, errCrowded) || errors.As(err, new(*reading.AskError)) // this process tells what is wrong
`, `	blameless := errors.Is(err, errCrowded) || errors.As(err, new(*reading.AskError))
	if _, ok := errors.AsType[*remote.BrokenError](err); ok && s.d.Joint == nil {
		err = nil
	}
`}, {"reading/fan/share.go", `	"blobtail/storage/fanout"
`, `	"blobtail/reading/remote"
	"blobtail/storage/fanout"
`}}},
	{name: "problems of workers not told", edits: []edit{{"reading/fan/share.go",
		`	p.answer, p.elsewhere = ans, elsewhere
`, `	if p.answer, p.elsewhere = ans, elsewhere; elsewhere {
		p.answer.Problems = nil
	}
`}}},
}
