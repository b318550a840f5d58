package sim_test

// mutants are the rules of the commit protocol that the production code has, each left out.
var mutants = []mutant{
	{name: "acknowledged before the fsync", edits: []edit{{"buffer/accept.go",
		`		if err := b.log.Sync(pos); err != nil || !stored {
			return err
		}
`, `		if !stored {
			return nil
		}
`}}},
	{name: "created before the batch record is durable", edits: []edit{{"buffer/flow.go",
		`	if err := b.log.Sync(batch.named.Record); err != nil {
		return false, fmt.Errorf("sync the batch record: %w", err)
	}
`, ``}}},
	{name: "a segment not synced when it is rolled", edits: []edit{{"buffer/wal/append.go",
		`	if err := l.syncFile(l.w.file); err != nil {
		return err
	}
	if err := l.inPlace`, `	if err := l.inPlace`}}},
	// Batch records list their runs. The mutant takes the list for a range: all
	// that is open up to its end.
	{name: "runs taken by range", edits: []edit{{"buffer/replay.go",
		`if want[f.Pos] {`, `if f.Pos <= last {`}, {"buffer/replay.go",
		`		want[e.Pos] = true
`, `		last, want[e.Pos] = e.Pos, true
`}, {"buffer/replay.go",
		`	want := make(map[wal.Pos]bool, named.Len())
`, `	last, want := wal.Pos(0), make(map[wal.Pos]bool, named.Len())
`}}},
	// The note on the newest segment, which comes next, would have the same effect if
	// there is room for it.
	{name: "the directory not synced when a segment is made", edits: []edit{{"buffer/wal/append.go",
		`		err = l.syncFile(f)
	}
	if err == nil {
		err = l.syncDir(l.dir)
	}
`, `		err = l.syncFile(f)
	}
`}, {"buffer/wal/newest.go", `	return l.rename(temp, `, `	return l.fs.Rename(temp, `}}},
	{name: "nothing copied and synced on opening", edits: []edit{{"buffer/wal/torn.go",
		`	if err := l.replace(f, last.Number, cut); err != nil {
		return false, err
	}
`, ``}}},
	// Rare: it needs an fsync that fails, a death from it, an opening that believes the
	// cache, and a power cut.
	{name: "the last segment synced but not copied on opening", first: 142, seeds: 20000, edits: []edit{{"buffer/wal/torn.go",
		`	if err := l.replace(f, last.Number, cut); err != nil {
		return false, err
	}
`, `	w, err := l.fs.OpenFile(l.files.path(last.Number, segmentSuffix), os.O_RDWR, 0)
	if err == nil {
		err = errors.Join(w.Truncate(cut), l.syncFile(w), l.syncDir(l.dir))
	}
	if err != nil {
		return false, err
	}
`}, {"buffer/wal/torn.go", `import (
`, `import (
	"errors"
`}}},
	{name: "commits not synced before their segments go", edits: []edit{{"buffer/account.go",
		`		if end != 0 {
			if err := b.log.Sync(end); err != nil {
				return err
			}
		}
`, `		_ = end
`}}},
	{name: "copies of a run kept in a batch", edits: []edit{{"buffer/runlog/families.go",
		`	if first != nil && r.isCopyOf(first) {
`, `	if first != nil && r.isCopyOf(first) && len(f.first) == 0 {
`}, {"buffer/runlog/families.go",
		`			l = copied
`, `			l = renamed
`}}},
	{name: "a name that is taken counted as another's", edits: []edit{{"blobwriter/blobwriter.go",
		`	held, err := w.look(ctx, key)
`, `	if key != "" {
		return &holder{}, nil
	}
	held, err := w.look(ctx, key)
`}}},
	{name: "a name that is taken counted as ours", edits: []edit{{"blobwriter/blobwriter.go",
		`	held, err := w.look(ctx, key)
`, `	if key != "" {
		return &holder{true, m}, nil
	}
	held, err := w.look(ctx, key)
`}}},
	{name: "the next name after no answer", first: 10, edits: []edit{{"blobwriter/blobwriter.go",
		`		return nil, fmt.Errorf("create %s: %w", key, err)
`, `		return &holder{}, nil
`}}},
	// There are no claims: a name is left for its successor only. The mutant jumps.
	{name: "a jump to a random name", edits: []edit{{"blobwriter/blobwriter.go",
		`		name.Number++
		if passed`, `		name.Number += 1 + rand.IntN(50)
		if passed`}, {"blobwriter/blobwriter.go",
		`	"runtime"
`, `	"math/rand/v2"
	"runtime"
`}}},
	{name: "several unlinks before the directory is synced", first: 543, edits: []edit{{"buffer/wal/log.go",
		`	l.sealed -= front.Size
	l.mu.Unlock()
	return l.syncDir(l.dir)
`, `	l.sealed -= front.Size
	l.mu.Unlock()
	if front.Number%16 > 0 {
		return nil
	}
	return l.syncDir(l.dir)
`}}},
	{name: "copies not dropped by the reader", edits: []edit{{"reading/blobs/merge.go",
		`	same := p.again(c.src, &at, line)
`, `	same := false
`}}},
	{name: "a message acknowledged before it is stored", edits: []edit{{"buffer/messages.go",
		`	s.remember(m)
	s.open++
`, `	s.remember(m)
	s.open++
	s.told.Stored(m.reply)
`}}},
	{name: "a message that is in the log already acknowledged as a repeat", edits: []edit{{"buffer/messages.go",
		`		m.reply = r.Reply
	}
`, `		m.reply = r.Reply
	}
	s.told.Stored(m.reply)
`}}},
	// Batches that a start leaves out of a message do not count, not even against it.
	{name: "a message acknowledged when its known batches are stored", edits: []edit{{"buffer/adopt.go",
		`		if !f.m.gone {
			f.m.gone = true
			p.b.o.Messages.Dropped(f.m.reply)
		}
`, `		f.m.left--
		f.m.open--
`}}},
	{name: "parked copies not synced before what they replace goes", first: 220, edits: []edit{{"buffer/park.go",
		`	b.settled = max(b.settled, batch.named.Record)
`, ``}}},
	{name: "parked copies without the name that they stand at", edits: []edit{{"buffer/park.go",
		`Pin: batch.pin, Since`, `Pin: b.sink.Plan(batch.Service(), batch.Period()), Since`}}},
	{name: "batches parked once only", test: "TestParking", edits: []edit{{"buffer/park.go",
		`	for _, batch := range found {
		batch.try.taken = true`, `	found = slices.DeleteFunc(found, func(batch *Batch) bool { return batch.named.IsCopy() })
	for _, batch := range found {
		batch.try.taken = true`}}},

	// Not in the table: rules that came with the code.
	{name: "another outcome taken for a repeat", edits: []edit{{"buffer/repeats.go",
		`	case o.outcome.Same(r.Outcome):
`, `	case len(r.Lines) > 0:
`}}},
	{name: "of another outcome only copies known", first: 41, edits: []edit{{"buffer/runlog/families.go",
		`	return lots, lots == nil || slices`, `	return lots, slices`}}},
	{name: "batches that lack runs left as they are", first: 4879, seeds: 20000, edits: []edit{{"buffer/replay.go",
		`	p.salvage()
`, ``}}},
	{name: "no look for itself in a listing of names", edits: []edit{{"blobwriter/blobwriter.go",
		`err != nil || m.Batch == own {`, `err != nil || len(m.Batch) == 0 {`}}},
	{name: "a failed look at a name that is taken counted as another's", edits: []edit{{"blobwriter/blobwriter.go",
		`		return nil, fmt.Errorf("see whose %s is: %w", key, err)
`, `		return &holder{}, nil
`}}},

	// Not in the table: days that are dropped.
	{name: "a put without a look at what has been dropped", edits: []edit{{"catalog/horizon/watch.go",
		`h, err := g.w.Fresh(ctx)`, `h, err := Horizons(nil), ctx.Err()`}}},
	{name: "a put by what was known last", edits: []edit{{"catalog/horizon/watch.go",
		`h, err := g.w.Fresh(ctx)`, `h, err := g.w.known.Load().h, ctx.Err()`}}},
	{name: "what is not known taken for dropped", first: 33, edits: []edit{{"catalog/horizon/watch.go",
		`	if err == nil && h.Hides(`, `	if err != nil && ctx.Err() == nil || h.Hides(`}}},
	{name: "messages of an expired batch not acknowledged", edits: []edit{{"buffer/flow.go",
		`	b.messages.stored(batch.messages)
	if`, `	if !expired {
		b.messages.stored(batch.messages)
	}
	if`}}},

	// Not in the table: streams in partitions.
	{name: "the number of a partition taken for the service", edits: []edit{{"source/natssource/message.go",
		`serviceOf(m.Header, subject)`, `serviceOf(m.Header, m.Subject)`}}},
	{name: "the partition a part of a message's identity", edits: []edit{{"source/natssource/message.go",
		`r.IdentifyByKey(subject, 0`, `r.IdentifyByKey(m.Subject, 0`}}},

	// Not in the table: blobs that are compacted.
	{name: "compaction forgets what was replaced before", edits: []edit{{"retention/compact/rewrite.go",
		`replaces = append(replaces, b.replaces...)`, `_ = b.replaces`}}},

	// Not in the table: the dir store's steps that keep MINE true after a crash.
	{name: "a file linked into place before it is synced", test: "TestStates", edits: []edit{{"storage/dir/create.go",
		`		err = f.Sync()
`, `		err = nil
`}}},
	{name: "the directory of a new file not synced", test: "TestStates", edits: []edit{{"storage/dir/create.go",
		`for dir := path;`, `for dir := filepath.Dir(path);`}}},
	{name: "the directories above a new directory not synced", test: "TestStates", edits: []edit{{"storage/dir/create.go",
		`dir != s.root; {`, `dir == path; {`}}},
}
