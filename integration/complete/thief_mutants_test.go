package complete_test

// thiefMutants are the rules by which a read notices that blobs of closed days are gone, each left out.
var thiefMutants = []mutant{
	{name: "robbed: a day that does not agree with its account is whole", edits: []edit{{"reading/blobs/accounts.go",
		`!c.part.Accounts(sums, from, to) ||`, `from > 24 ||`}}},
	{name: "robbed: days of which nothing is left are no matter", edits: []edit{{"reading/blobs/accounts.go",
		`range append(a.vanished(ctx, sum), a.doubts...)`, `range a.doubts`}}},
	{name: "robbed: hours that no window lists are no matter", first: 110, edits: []edit{{"reading/blobs/newest.go",
		`	if err := w.passed(ctx); err != nil {
		return err
	}
`, ``}}},
	{name: "robbed: an old account counts", first: 1180, edits: []edit{{"reading/blobs/accounts.go",
		`		c.part = *e
`, `		if c.part.Part.Number == 0 {
			c.part = *e
		}
`}, {"catalog/account.go",
		`			l.Part, l.Parts = e, append(l.Parts, e.Key)
`, `			if l.Parts = append(l.Parts, e.Key); len(l.Parts) == 1 {
				l.Part = e
			}
`}}},
	{name: "robbed: the next account forgets what is missing", edits: []edit{{"retention/closing/next.go",
		`		gone[place{b.Key, b.Batch}], taken[b.Key] = true, true
		a.Blobs = append(a.Blobs, b)
`, `		gone[place{b.Key, b.Batch}], taken[b.Key] = true, true
`}}},
}
