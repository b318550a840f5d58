package blobs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"hash/crc32"
	"slices"
	"sync"
	"sync/atomic"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/fanout"
)

// A loader opens the blobs of a pass, fetches their blocks, and reduces them to the
// lines that the pass wants. All its fields are constant or safe for all goroutines.
type loader struct {
	ctx   context.Context
	stop  context.CancelFunc
	work  sync.WaitGroup // all goroutines of the pass
	task  *task
	match *Matcher
	// needs are those of the filter, and keys those of its ids that can rule out blocks.
	needs needs
	keys  []uint32
	edges *Edges
	sum   *Summary // only for atomic additions
	// most is the [Query.MaxRaw] of the read, which has decoded spent bytes.
	most  int64
	spent atomic.Int64
	// distant says that requests to the store take long.
	distant bool

	decoder  *blobfmt.Decoder
	findings *findings   // nil: none are kept
	ids      *keptIDs    // nil: none are kept
	shared   *shared     // with other reads
	buffers  chan []byte // of decoded blocks
	spares   chan []byte // of groups
	folding  *folding    // nil: the lines are wanted
	surveyed atomic.Bool // a block was read for the fields that it has
}

func (a *asked) newLoader(ctx context.Context, t *task, sum *Summary) *loader {
	r := a.reader
	workers := r.opt.Workers
	l := &loader{
		task: t, match: a.match, edges: &a.query.Edges, sum: sum, most: a.query.MaxRaw, distant: r.opt.Distant, decoder: r.decoder, findings: r.findings, ids: r.idsOf(t),
		shared: r.shared, buffers: make(chan []byte, 4*workers+8), spares: make(chan []byte, 8),
	}
	l.needs = a.match.needs()
	l.keys = l.needs.keys()
	l.ctx, l.stop = context.WithCancel(ctx)
	return l
}

// background runs f. Each call of the result waits until f has returned, and returns
// its error.
func (l *loader) background(f func() error) (wait func() error) {
	done := make(chan struct{})
	var err error
	var fault *fanout.Panic
	l.work.Go(func() {
		defer close(done)
		fault = fanout.Keep(func() { err = f() })
	})
	return func() error {
		<-done
		fault.Again()
		return err
	}
}

// group is a row of adjacent blocks that one GET fetches. wait sets data.
type group struct {
	wait     func() error
	end      int // of source.blocks
	off, len int64
	data     []byte
	told     bool // the cursor's: its error is reported

	own  bool         // nobody else has the memory of data
	left atomic.Int32 // blocks that are not decoded yet
}

// future is a block on its way. wait sets the fields below group.
type future struct {
	wait   func() error
	block  int // of the index
	group  *group
	kept   kept
	higher int64   // records that fail the filter only by a higher level
	part   *folded // of a fold
	buf    []byte
}

// open opens a source, chooses its wanted blocks, and begins to fetch the first group of
// them, of up to size bytes. If early is set, it begins to decode the first of them too.
func (l *loader) open(s *source, size int64, early bool) error {
	if s.Size > idsFirst {
		if none, err := l.readIDs(s); none || err != nil {
			return err
		}
	}
	if !s.recall(l.ctx) && l.distant {
		l.foresee(s, size)
	}
	_, err := s.readIndex(l.ctx, true)
	switch corrupt := (*blobfmt.CorruptError)(nil); {
	case errors.As(err, &corrupt), errors.Is(err, blobfmt.ErrNewer), errors.Is(err, storage.ErrDamaged):
		if s.State == catalog.Sound { // otherwise the listing has reported it
			s.warn = err
		}
		err = l.walk(s)
	}
	if err != nil {
		return err
	}
	if s.Size <= idsFirst {
		if none, err := l.readIDs(s); none || err != nil {
			return err
		}
	}
	l.readWords(s)
	if s.blocks = l.choose(s); len(s.blocks) > 0 {
		s.reopened()
	}
	all := l.distant && l.task.limit == 0 && s.stored() <= fewBytes
	if len(s.blocks) > 0 && size > 0 {
		s.groups = append(s.groups, l.group(s, 0, size))
		if early {
			s.early = l.block(s, s.blocks[0], s.groups[0])
		}
		for next := s.groups[0].end; all && next < len(s.blocks); {
			g := l.group(s, next, size)
			s.groups, next = append(s.groups, g), g.end
		}
	}
	return nil
}

// choose picks the blocks of the index that may hold wanted records, in the order of
// reading.
func (l *loader) choose(s *source) []int {
	blocks := make([]int, 0, len(s.index.Blocks))
	for i := range s.index.Blocks {
		b := &s.index.Blocks[i]
		switch {
		case !l.task.rng.touches(b.First, b.Last):
		case wanted(l.match.levels, &b.Levels) > 0:
			if !l.rulesOut(s, i) && !l.recallPart(s, i) && l.recallFinding(s, i) {
				blocks = append(blocks, i)
			}
		case !l.match.readsLines():
			// With texts the number of those of higher levels is unknown.
			higher, _ := new(tally).block(b, l.task.rng, l.match)
			atomic.AddInt64(&l.sum.Higher, higher)
		}
	}
	if s.body == nil {
		atomic.AddInt64(&l.sum.BlocksSkipped, int64(len(s.index.Blocks)-len(blocks)))
	}
	if l.task.desc {
		slices.Reverse(blocks)
	}
	return blocks
}

// group fetches the wanted block of a number and the following ones that are adjacent in
// the blob, until they have size bytes. Those that came with the index are a group of their
// own. Those of a body have no bytes to be fetched.
func (l *loader) group(s *source, next int, size int64) *group {
	begin := next
	b := &s.index.Blocks[s.blocks[next]]
	off, end := b.Offset, b.Offset+b.Stored
	here, found := s.withIndex(b), s.found(s.blocks[next]) != nil
	for next++; next < len(s.blocks); next++ {
		b = &s.index.Blocks[s.blocks[next]]
		lo, hi := min(off, b.Offset), max(end, b.Offset+b.Stored)
		if hi-lo > size || b.Offset != end && b.Offset+b.Stored != off || s.withIndex(b) != here ||
			(s.found(s.blocks[next]) != nil) != found {
			break
		}
		off, end = lo, hi
	}
	g := &group{end: next, off: off, len: end - off}
	if g.left.Store(int32(next - begin)); found {
		g.wait = done
		return g
	}
	g.wait = l.background(func() (err error) {
		spare := take(l.spares, &l.shared.groups)
		g.data, g.own, err = s.fetchInto(l.ctx, spare, g.off, g.len)
		return err
	})
	return g
}

// decoded notes that a block of the group needs its data no more. The last one gives up the
// memory.
func (l *loader) decoded(g *group) {
	if g.left.Add(-1) == 0 && g.own {
		select {
		case l.spares <- g.data:
		default:
		}
	}
}

// block requests a block of a source, which comes with a group.
func (l *loader) block(s *source, n int, g *group) *future {
	b := &s.index.Blocks[n]
	f := &future{block: n, group: g}
	if found := s.found(n); found != nil {
		var err error
		f.kept, f.higher, err = found.within(b, l.task.rng)
		atomic.AddInt64(&l.sum.Higher, f.higher)
		if err = cmp.Or(err, l.limit(f, b)); err == nil && l.folding != nil {
			err = l.fold(f, s)
		}
		f.wait = func() error { return err }
		return f
	}
	f.wait = l.background(func() error {
		err := g.wait()
		if err == nil {
			err = l.load(f, s, b, g.data[b.Offset-g.off:][:b.Stored])
			l.decoded(g)
			atomic.AddInt64(&l.sum.Higher, f.higher)
		}
		return err
	})
	return f
}

// load makes the lines of a block, and reduces them to the wanted ones.
func (l *loader) load(f *future, s *source, b *blobfmt.Block, stored []byte) (err error) {
	l.shared.slots <- struct{}{} // before a buffer is taken, so that a few do for many blocks
	defer func() { <-l.shared.slots }()
	if l.ctx.Err() != nil {
		return l.ctx.Err()
	}
	if err = l.charge(b); err != nil {
		return err
	}
	if s.body != nil {
		f.buf, err = s.body.lines(f.block, l.buffer())
	} else {
		atomic.AddInt64(&l.sum.BlocksRead, 1)
		f.buf, err = l.decoder.Block(l.buffer(), stored, *b)
	}
	if err != nil {
		return err
	}
	var own bool
	f.kept, f.higher, own, err = l.judge(s, f.block, f.buf)
	if ended := l.match.budget.Err(); ended != nil {
		return ended
	}
	err = cmp.Or(err, l.limit(f, b))
	if own {
		l.recycle(f.buf)
		f.buf = nil
	}
	if l.folding != nil && err == nil {
		return l.fold(f, s)
	}
	if !own && len(f.kept.raw) < len(f.buf)/4 { // a few lines must not hold the memory of a whole block
		buf := f.buf
		f.kept.raw, f.buf = append([]byte(nil), f.kept.raw...), nil
		l.recycle(buf)
	}
	return err
}

// limit leaves no more lines of a block than a read of the newest may need.
func (l *loader) limit(f *future, b *blobfmt.Block) error {
	if l.task.desc && l.task.limit > 0 && l.task.limit < b.Records && len(f.kept.raw) > 0 && !l.edges.endsIn(b) {
		// One more shows that there are more. Copies of these lines may come from other
		// blobs, but then they count there.
		return f.kept.newest(l.task.limit + 1)
	}
	return nil
}

// done is the wait for something that is there.
func done() error { return nil }

func (l *loader) buffer() []byte { return take(l.buffers, &l.shared.blocks)[:0] }

func (l *loader) recycle(b []byte) {
	if cap(b) == 0 {
		return
	}
	select {
	case l.buffers <- b:
	default:
	}
}

// walk reads all of a blob without a readable index into a body, without the origins of
// its records.
func (l *loader) walk(s *source) error {
	all, err := s.whole(l.ctx)
	if errors.Is(err, storage.ErrDamaged) {
		if s.State == catalog.Sound {
			s.lost = append(s.lost, s.problem(0, 0, bareError(err)))
		}
	} else if err != nil {
		return err
	}
	s.body = &body{}
	s.index = &s.body.index
	records, crc := int64(0), uint32(0)
	for frame, err := range l.decoder.Walk(s.Key, all) {
		var b blobfmt.Block
		if err == nil {
			b, err = describe(frame.Lines)
		}
		if err != nil {
			s.lost = append(s.lost, s.problem(frame.Offset, frame.Stored, err))
			continue
		}
		records += int64(b.Records)
		crc = crc32.Update(crc, crc32.MakeTable(crc32.Castagnoli), frame.Lines)
		s.index.Blocks = append(s.index.Blocks, b)
		s.body.blocks = append(s.body.blocks, contents{raw: bytes.Clone(frame.Lines)})
	}
	switch sound := s.State == catalog.Sound && len(s.lost) == 0; {
	case sound && records != s.Meta.Records:
		s.lost = append(s.lost, s.problem(0, 0, &blobfmt.CorruptError{Blob: s.Key, Reason: "records are missing"}))
	case sound && crc != s.Meta.CRC:
		return errElsewhere
	}
	return nil
}

// describe checks and counts lines that no index describes.
func describe(lines []byte) (b blobfmt.Block, err error) {
	for line := range bytes.Lines(lines) {
		t, ok := record.LineTime(line)
		switch {
		case !ok || line[len(line)-1] != '\n':
			return b, errLine
		case b.Records == 0:
			b.First = t
		case t < b.Last:
			return b, errOrder
		}
		b.Last = t
		b.Levels[record.LineLevel(line)]++
		b.Records++
	}
	return b, nil
}

// wantsBlob reports whether a blob may hold wanted records, by its metadata. If they
// rule it out by the levels, the blob is not even opened.
func (l *loader) wantsBlob(b *blob) bool {
	if b.State != catalog.Sound || wanted(l.match.levels, &b.Meta.Levels) > 0 {
		return true
	}
	if !l.match.readsLines() && l.task.rng.covers(b.Meta.First, b.Meta.Last) {
		atomic.AddInt64(&l.sum.Higher, wanted(l.match.high, &b.Meta.Levels))
	}
	return false
}
