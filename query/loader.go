package query

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/record"
	"blobtail/storage"
)

// A loader opens the blobs of a pass, fetches their blocks, and reduces them to the
// lines that the pass wants. Its goroutines work for the feeds. All its fields are
// constant or safe for all goroutines; the fields of an opening, a group and a future
// belong to the loader until done is closed, and then to the feed.
type loader struct {
	ctx   context.Context
	stop  context.CancelFunc
	work  sync.WaitGroup // all goroutines of the pass
	task  *task
	match *Matcher
	count counters

	decoders chan *blobfmt.Decoder // one for each concurrently decoded block; nil: not made yet
	buffers  chan []byte
}

func newLoader(ctx context.Context, t *task, match *Matcher, workers int) *loader {
	l := &loader{task: t, match: match, decoders: make(chan *blobfmt.Decoder, workers), buffers: make(chan []byte, 4*workers+8)}
	l.ctx, l.stop = context.WithCancel(ctx)
	for range workers {
		l.decoders <- nil
	}
	return l
}

// opening is a source that is being opened.
type opening struct {
	done   chan struct{}
	err    error
	blocks []int  // the wanted ones, in the order of reading
	group  *group // of the first blocks, unless a limit may end the read
	walked bool   // its index is not readable
	warn   error
	lost   []error
}

// group is a row of adjacent blocks that one GET fetches.
type group struct {
	done     chan struct{}
	end      int // of feed.blocks
	off, len int64
	data     []byte
	err      error
	told     bool // the feed's: its error is reported
}

// future is a block on its way.
type future struct {
	done   chan struct{}
	block  int // of the index
	group  *group
	spare  bool // the feed's: counted in readahead.spare
	kept   kept
	higher int64 // records that fail the filter only by a higher level
	buf    []byte
	err    error
}

// open opens a source in the background. It then fetches the first group of blocks,
// of up to group bytes; 0: none.
func (l *loader) open(s *source, group int64) *opening {
	o := &opening{done: make(chan struct{})}
	l.work.Go(func() {
		l.fill(s, o, group)
		close(o.done)
		if o.group != nil {
			l.fetch(s, o.group)
		}
	})
	return o
}

func (l *loader) fill(s *source, o *opening, group int64) {
	_, err := s.readIndex(l.ctx, true)
	switch corrupt := (*blobfmt.CorruptError)(nil); {
	case errors.As(err, &corrupt), errors.Is(err, blobfmt.ErrNewer), errors.Is(err, storage.ErrDamaged):
		if s.State == catalog.Sound { // otherwise the listing has reported it
			o.warn = err
		}
		o.err = l.walk(s, o)
	case err != nil:
		o.err = err
	}
	if o.err != nil {
		return
	}
	o.blocks = l.choose(s)
	if len(o.blocks) > 0 && group > 0 {
		o.group = newGroup(s.index, o.blocks, 0, group)
	}
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
			blocks = append(blocks, i)
		case !l.match.hasText():
			// With texts the number of those of higher levels is unknown.
			higher, _ := new(tally).block(b, l.task.rng, l.match)
			l.count.higher.Add(higher)
		}
	}
	if s.body == nil {
		l.count.blocksSkipped.Add(int64(len(s.index.Blocks) - len(blocks)))
	}
	if l.task.desc {
		slices.Reverse(blocks)
	}
	return blocks
}

// newGroup joins blocks[next] and the following blocks that are adjacent in the blob,
// until they have size bytes. Those of a body have no bytes to be fetched.
func newGroup(index *blobfmt.Index, blocks []int, next int, size int64) *group {
	b := index.Blocks[blocks[next]]
	off, end := b.Offset, b.Offset+b.Stored
	for next++; next < len(blocks); next++ {
		b = index.Blocks[blocks[next]]
		lo, hi := min(off, b.Offset), max(end, b.Offset+b.Stored)
		if hi-lo > size || b.Offset != end && b.Offset+b.Stored != off {
			break
		}
		off, end = lo, hi
	}
	return &group{done: make(chan struct{}), end: next, off: off, len: end - off}
}

func (l *loader) fetch(s *source, g *group) {
	g.data, g.err = s.fetch(l.ctx, g.off, g.len)
	close(g.done)
}

// block requests a block of a source, which comes with a group.
func (l *loader) block(s *source, n int, g *group) *future {
	b := &s.index.Blocks[n]
	f := &future{done: make(chan struct{}), block: n, group: g}
	l.work.Go(func() {
		defer close(f.done)
		<-g.done
		if f.err = g.err; f.err == nil {
			l.load(f, s, b, g.data[b.Offset-g.off:][:b.Stored])
			l.count.higher.Add(f.higher)
		}
	})
	return f
}

// load makes the lines of a block, and reduces them to the wanted ones.
func (l *loader) load(f *future, s *source, b *blobfmt.Block, stored []byte) {
	var raw []byte
	own := true
	if s.body != nil {
		change := l.match.hasText() || wanted(l.match.levels, &b.Levels) < int64(b.Records)
		raw, own, f.err = s.body.lines(f.block, change, l.buffer)
	} else {
		raw, f.err = l.decode(b, stored)
	}
	if f.err != nil {
		return
	}
	if own {
		f.buf = raw
	}
	f.kept, f.higher, f.err = l.match.keep(raw, b, l.task.rng)
	if len(f.kept.raw) < len(f.buf)/4 { // a few lines must not hold the memory of a whole block
		buf := f.buf
		f.kept.raw, f.buf = append([]byte(nil), f.kept.raw...), nil
		l.recycle(buf)
	}
}

// decode decompresses a block.
func (l *loader) decode(b *blobfmt.Block, stored []byte) (raw []byte, err error) {
	var d *blobfmt.Decoder
	select {
	case d = <-l.decoders:
	case <-l.ctx.Done():
		return nil, l.ctx.Err()
	}
	defer func() { l.decoders <- d }()
	if d == nil {
		if d, err = blobfmt.NewDecoder(); err != nil {
			return nil, err
		}
	}
	l.count.blocksRead.Add(1)
	return d.Block(l.buffer(), stored, *b)
}

func (l *loader) buffer() []byte {
	select {
	case b := <-l.buffers:
		return b[:0]
	default:
		return nil
	}
}

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
func (l *loader) walk(s *source, o *opening) error {
	o.walked = true
	all, err := s.whole(l.ctx)
	if errors.Is(err, storage.ErrDamaged) {
		if s.State == catalog.Sound {
			o.lost = append(o.lost, s.problem(0, 0, bareError(err)))
		}
	} else if err != nil {
		return err
	}
	d, err := blobfmt.NewDecoder()
	if err != nil {
		return err
	}
	s.body = &body{}
	s.index = &s.body.index
	records := int64(0)
	for frame, err := range d.Walk(s.Key, all) {
		var b blobfmt.Block
		if err == nil {
			b, err = describe(frame.Lines)
		}
		if err != nil {
			o.lost = append(o.lost, s.problem(frame.Offset, frame.Stored, err))
			continue
		}
		records += int64(b.Records)
		s.index.Blocks = append(s.index.Blocks, b)
		s.body.blocks = append(s.body.blocks, contents{raw: bytes.Clone(frame.Lines)})
	}
	if s.State == catalog.Sound && records != s.Meta.Records && len(o.lost) == 0 {
		o.lost = append(o.lost, s.problem(0, 0, &blobfmt.CorruptError{Blob: s.Key, Reason: "records are missing"}))
	}
	return nil
}

// describe checks and counts lines that no index describes.
func describe(lines []byte) (b blobfmt.Block, err error) {
	for at := 0; at < len(lines); b.Records++ {
		t, ok := record.LineTime(lines[at:])
		size := bytes.IndexByte(lines[at:], '\n') + 1
		switch {
		case !ok || size == 0:
			return b, errLine
		case b.Records == 0:
			b.First = t
		case t < b.Last:
			return b, errOrder
		}
		b.Last = t
		b.Levels[record.LineLevel(lines[at:])]++
		at += size
	}
	return b, nil
}

// wantsBlob reports whether a blob may hold wanted records, by its metadata. If they
// rule it out by the levels, the blob is not even opened.
func (l *loader) wantsBlob(b *blob) bool {
	if b.State != catalog.Sound || wanted(l.match.levels, &b.Meta.Levels) > 0 {
		return true
	}
	if !l.match.hasText() && l.task.rng.covers(b.Meta.First, b.Meta.Last) {
		l.count.higher.Add(wanted(l.match.high, &b.Meta.Levels))
	}
	return false
}
