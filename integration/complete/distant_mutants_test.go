package complete_test

// distantMutants are the rules that a read of a store far away rests on, each left out: it lists a
// range in parts, and guesses the hour of the newest records.
var distantMutants = []mutant{
	{name: "days after the reader's present one left out", edits: []edit{{"catalog/parts.go",
		`	if open {
		parts = append(`, `	if open && len(parts) > 99 {
		parts = append(`}}},
	{name: "the present day taken for the last one of a range in the future", first: 187, edits: []edit{{"catalog/parts.go",
		`DayRange(day).list(ctx, store, service)`, `DayRange(max(day, horizon.DayOf(time.Now()))).list(ctx, store, service)`}}},
	{name: "a day of the parts left out", edits: []edit{{"catalog/parts.go",
		`		out, at = append(out, Range{at, end, r.Closed}), end
`, `		if out, at = append(out, Range{at, end, r.Closed}), end; len(out) == 2 {
			out = out[:1]
		}
`}}},
	{name: "the minutes before a day left out", edits: []edit{{"catalog/parts.go",
		`		out, at = append(out, Range{at, end, r.Closed}), end
`, `		out, at = append(out, Range{at, end.Add(-time.Hour), r.Closed}), end
`}}},
	{name: "a part that failed taken for a whole one", first: 51, edits: []edit{{"catalog/parts.go",
		`				if !yield(o.blob, o.err) || o.err != nil {
`, `				if o.err != nil {
					break
				}
				if !yield(o.blob, nil) {
`}}},
	{name: "directories of later days that cannot be listed taken for none", first: 222, edits: []edit{{"catalog/parts.go",
		`			if err != nil {
				yield(storage.Blob{}, err)
				return
			}
`, `			if err != nil {
				return
			}
`}}},
	{name: "the guess of the newest hour believed", edits: []edit{{"reading/blobs/newest.go",
		`if from <= rng.From ||`, `if from <= rng.From || w.hours == nil ||`}}},
	{name: "the guess of the present hour of very many services believed", edits: []edit{{"reading/blobs/scout.go",
		`	if len(walks) >= manyServices {
`, `	if len(walks) >= 1 {
`}, {"reading/blobs/newest.go",
		`if from <= rng.From ||`, `if from <= rng.From || w.hours == nil ||`}}},
	{name: "the window of a guess ends with the guessed hour", first: 14, edits: []edit{{"reading/blobs/newest.go",
		`	to := rng.To
	for width`, `	to := rng.To
	if t := w.guess(ctx); !t.IsZero() {
		to = min(to, record.ClampTime(t.Add(2*time.Hour)))
	}
	for width`}}},
}
