package complete_test

// hangMutants are the rules of reads beside ingesters that hang (SIGSTOP) and come back, each left
// out.
var hangMutants = []mutant{
	{name: "a remembered hang counts as an answer", first: 51, edits: []edit{{"reading/unflushed/roster.go",
		`		if i.State == lease.Holding && !answered {
`, `		if i.State == lease.Holding && !answered && !strings.Contains(fmt.Sprint(h.errs[i.ID]), "sign of life") {
`}}},
}
