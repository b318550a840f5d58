package complete_test

// serverMutants are the rules that the answers of a server rest on, each left out.
var serverMutants = []mutant{
	// Results that clients share.
	{name: "the newest records of one range taken for those of another", first: 178, edits: []edit{{"reading/gathering.go",
		`	if q.Limit > 0 {
		return ""
	}
`, `	if q.Limit > 0 && !q.Filter.ReadsLines() {
		return fmt.Sprintf("%d newest %d %q", m.mode, q.Filter.Levels, q.Services)
	}
	if q.Limit > 0 {
		return ""
	}
`}, {"reading/gathering.go",
		`	all := blobs.Query{Services: q.Services, Range: q.Range, Filter: `, `	all := blobs.Query{Services: q.Services, Range: q.Range, Limit: q.Limit, Filter: `}}},
	{name: "the unflushed records of one range taken for those of another", first: 166, edits: []edit{{"reading/gathering.go",
		`all.Range.From, all.Range.To = min(all.Range.From, m.query.Range.From), max(all.Range.To, m.query.Range.To)`, `all.Range.From, all.Range.To = q.Range.From, q.Range.To`}}},
	{name: "the unflushed records of one level taken for all", first: 3, edits: []edit{{"reading/gathering.go",
		`all.Filter.Levels |= levels
		} else {
			all.Filter.Levels = 0 // all of them
`, `all.Filter.Levels |= levels
		} else {
			all.Filter.Levels |= levels
`}}},
	{name: "unflushed records that were asked for before the query came", first: 132, edits: []edit{{"reading/bursts.go",
		`	if d.pending != c {
		return // it has begun
	}
	d.pending = nil
`, `	select {
	case <-c.began:
		return
	default:
	}
`}, {"reading/bursts.go",
		`	c.members = append(c.members, m)
	if alone`, `	select {
	case <-c.began:
		m.shares = newGathering()
		for _, o := range c.members {
			o.shares.mu.Lock()
			if o.shares.left < len(o.shares.members) && o.key() != "" && o.key() == m.key() && o.query.Range == m.query.Range {
				m.shares = o.shares
			}
			o.shares.mu.Unlock()
		}
		m.shares.members = append(m.shares.members, m)
	default:
	}
	c.members = append(c.members, m)
	if alone`}, {"reading/gathering.go",
		`	if len(g.members) == 1 {
`, `	if len(g.members) == 1 && m.key() == "" {
`}}},
	{name: "a listing that began before the reader was ready", first: 2545, edits: []edit{{"storage/together/together.go",
		`f != nil && f.began >= r.since && `, `f != nil && `}, {"storage/together/together.go",
		`	case <-r.p.ready:
`, `	case <-r.until:
`}, {"storage/together/together.go",
		`time.AfterFunc(patience,`, `time.AfterFunc(0*patience,`}}},
	{name: "an index kept by the name of the blob alone", first: 83, edits: []edit{{"reading/blobs/indexcache/indexcache.go",
		`c.kept.Get(id{key, batch})`, `c.kept.Get(id{key: key})`}, {"reading/blobs/indexcache/indexcache.go",
		`c.kept.Put(id{key, batch}, x`, `c.kept.Put(id{key: key}, x`}, {"blobfmt/detached.go",
		`	if x.size != size {
		return nil
	}
`, `	_ = size
`}}},

	// Lists for hints.
	{name: "services from a list that was made before", first: 7, edits: []edit{{"reading/run.go",
		`	names, unknown, err := blobs.Resolve(ctx, q)
`, `	var names, unknown []string
	all, err := s.Names(ctx)
	for _, name := range all {
		if matches(m.asked, name) && chosen(name) {
			names = append(names, name)
		}
	}
`}}},
	{name: "a list without an ingester that did not answer called complete", edits: []edit{{"serve/api/services.go",
		`Outcome: form.OutcomeOf(out), Range: c.rangeOf(&a)}`, `Outcome: form.OutcomeOf(&reading.Outcome{}), Range: c.rangeOf(&a)}
	_ = out`}}},
	{name: "a list for hints refuses a tail", first: 55, edits: []edit{{"serve/api/tail.go",
		`	return c.store.Exist(c.r.Context(), *a)
`, `	return &reading.NoServiceError{Name: a.Services[0]}
`}}},

	// The outcome that an answer reports.
	{name: "an outcome joined without its problems", first: 656, edits: []edit{{"reading/blobs/query.go",
		`	s.Problems, s.Warnings = joined(s.Problems, o.Problems), joined(s.Warnings, o.Warnings)
`, `	s.Warnings = joined(s.Warnings, o.Warnings)
`}}},
	{name: "an outcome without what ingesters lack", edits: []edit{{"reading/unflushed/unflushed.go",
		`	out.Lack(r.Problems...)
`, ``}}},
	{name: "a service without records ends the counting", first: 848, edits: []edit{{"reading/counts.go",
		`	q.Sure = true
	err = fanout`, `	err = fanout`}}},
	{name: "clients of Loki that show no warnings get the rest", first: 59, edits: []edit{{"serve/loki/write.go",
		`		if !c.told.Complete() && !c.partial() {
`, `		if len(c.told.Problems()) > 100 && !c.partial() {
`}}},

	// Unflushed records.
	{name: "ingesters heard before their records are kept", first: 133, edits: []edit{{"reading/unflushed/gather.go",
		`g.Report.problem(fmt.Errorf("what ingesters answered is not in this read, so records that are in no blob are missing: %w", err))`,
		`g.Report.note("%v", err)`}}},
	{name: "others take the places of the newest records", first: 178, edits: []edit{{"reading/unflushed/gather.go",
		`(expired || slices.ContainsFunc(from.all, few))`, `(expired || len(from.all) > 9 && few(from.all[0]))`}}},
}
