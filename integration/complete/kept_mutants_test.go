package complete_test

// keptMutants are the rules that answers of kept findings, counts and ids rest on, each left out.
var keptMutants = []mutant{
	{name: "what was found in one blob taken for another", edits: []edit{{"reading/blobs/findings.go",
		`return findingID{s.blobID(), block, of}`, `return findingID{blobID{}, block, of}`}}},
	{name: "what was found in a blob kept by its name and batch", first: 36, edits: []edit{{"reading/blobs/findings.go",
		`return findingID{s.blobID(), block, of}`, `return findingID{blobID{key: s.Key, batch: s.Meta.Batch}, block, of}`}}},
	{name: "what one filter found taken for another", edits: []edit{{"reading/blobs/findings.go",
		`return s.findingID(block, l.match.id), true`, `return s.findingID(block, [sha256.Size]byte{}), true`}}},
	{name: "what was found for a level taken for all", first: 73, edits: []edit{{"reading/blobs/findings.go",
		`%q %q %q %q %q", f.Levels, f.Barred`, `%q %q %q %q %q", 0*f.Levels, f.Barred`}}},
	{name: "what was found in a range taken for all of a block", first: 7, edits: []edit{{"reading/blobs/findings.go",
		`	found := &finding{higher: []int64{}}
`, `	found := &finding{higher: []int64{}}
	if lo, err := searchTime(raw, l.task.rng.From); err == nil && b.First < l.task.rng.From {
		all.raw = raw[lo:]
	}
`}}},
	{name: "the count of one filter taken for another", first: 2, edits: []edit{{"reading/blobs/fold.go",
		`sha256.Sum256(append([]byte(f.ID), a.match.id[:]...))`, `sha256.Sum256([]byte(f.ID))`}}},
	{name: "the count of a range taken for all of a block", first: 7, edits: []edit{{"reading/blobs/fold.go",
		`size <= mostPart && l.task.rng.covers(b.First, b.Last) &&`, `size <= mostPart && b.Last >= b.First &&`}}},
	{name: "the ids of one blob taken for another", first: 25, edits: []edit{{"reading/blobs/keptids.go",
		`l.ids.Get(rowID{s.blobID(), first})`, `l.ids.Get(rowID{first: first})`}, {"reading/blobs/keptids.go",
		`l.ids.Put(rowID{s.blobID(), first}`, `l.ids.Put(rowID{first: first}`}}},
	{name: "the metadata of a name taken for all blobs that had it", first: 14, edits: []edit{{"catalog/memory.go",
		`if !ok || !maps.Equal(kept.stored, o.Metadata) {`, `if !ok {`}}},
}
