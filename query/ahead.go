package query

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"blobtail/blobfmt"
	"blobtail/storage"
)

// run is one pass over the blobs of a plan: what its cursors share.
type run struct {
	asked *asked
	ctx   context.Context
	stop  context.CancelFunc
	work  sync.WaitGroup // all goroutines of this run
	desc  bool
	lazy  bool // a limit may end the run early: fetch little ahead
	rng   Range
	match *matcher
	count *counters

	// decoders holds one for each block that may be decoded at once.
	decoders chan *blobfmt.Decoder
	buffers  chan []byte
	groupMax int64

	// The rest belongs to the goroutine that merges.
	order   []*cursor // all, in the order in which they are reached
	reached int       // of order: opened, or being so
	done    int       // cursors used up
	live    int       // cursors opened and not used up
	spare   int       // blocks that may still be asked for ahead, beyond one for each cursor
	sum     *Summary
	blamed  map[*source]bool // vanished, or of unknown origins: said once
	// blind says that a blob without an index is read, so that its records have
	// no known identity. Of equal times the bytes then decide first, such that
	// what may be a copy comes next to its like.
	blind bool
}

// Limits of what is fetched ahead.
const (
	openAhead  = 3         // blobs
	groupsLive = 64 << 20  // bytes of stored blocks, over all cursors
	firstGroup = 256 << 10 // bytes of the first group when a limit may end the read: a block
)

// opening is a blob that is being opened.
type opening struct {
	done   chan struct{}
	err    error
	blocks []int
	group  *group    // of the first blocks, unless a limit may end the read
	found  []*future // a blob without a readable index: all that is wanted of it
	walked bool      // it is such a blob
	warn   error
	lost   []error
}

// group is a row of adjacent blocks that one GET fetches.
type group struct {
	done     chan struct{}
	end      int // of cursor.blocks
	off, len int64
	data     []byte
	err      error
	told     bool // its error is reported
}

// future is a block on its way.
type future struct {
	done        chan struct{}
	block       int
	first, last int64
	off, len    int64
	group       *group
	spare       bool // counted in run.spare
	kept        kept
	buf         []byte
	err         error
}

// startOpen opens the cursor's blob in the background.
func (c *cursor) startOpen() {
	o := &opening{done: make(chan struct{})}
	c.opening = o
	r := c.run
	r.work.Go(func() {
		r.open(c.src, o)
		close(o.done)
		if o.group != nil {
			r.fetch(c.src, o.group)
		}
	})
}

func (r *run) open(s *source, o *opening) {
	index, err := s.readIndex(r.ctx, true)
	switch corrupt := (*blobfmt.CorruptError)(nil); {
	case errors.As(err, &corrupt), errors.Is(err, blobfmt.ErrNewer), errors.Is(err, storage.ErrDamaged):
		if !s.bare { // of that it is said already that all is not well
			o.warn = err
		}
		r.walk(s, o)
	case err != nil:
		o.err = err
	default:
		var skipped int64
		o.blocks, skipped = r.choose(index)
		if s.stream != nil {
			return
		}
		r.count.blocksSkipped.Add(skipped)
		if len(o.blocks) > 0 && !r.lazy {
			o.group = newGroup(index, o.blocks, 0, r.groupMax)
		}
	}
}

// openUpTo starts the opening of all cursors before order[n].
func (r *run) openUpTo(n int) {
	for ; r.reached < min(n, len(r.order)); r.reached++ {
		if c := r.order[r.reached]; c.opening == nil {
			c.startOpen()
		}
	}
}

// finishOpen waits until the blob is open.
func (c *cursor) finishOpen() error {
	r := c.run
	if c.opening == nil {
		c.startOpen()
	}
	further := openAhead
	if r.lazy {
		further = min(further, r.done)
	}
	r.openUpTo(r.done + r.live + 1 + further)
	select {
	case <-c.opening.done:
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
	o := c.opening
	c.opened, c.blocks, c.ahead = true, o.blocks, o.found
	r.live++
	r.blind = r.blind || o.walked
	if o.warn != nil {
		r.sum.Warnings = append(r.sum.Warnings, fmt.Errorf("read without its index: %w", o.warn))
	}
	r.sum.Problems = append(r.sum.Problems, o.lost...)
	if o.err != nil {
		return r.blame(c.src, c.src.problem(0, 0, o.err))
	}
	c.group, c.size = o.group, r.groupMax
	if r.lazy {
		c.size = min(firstGroup, c.size)
	} else {
		c.lookAhead()
	}
	return nil
}

// lookAhead asks for the blocks that come next, as far as memory allows: one
// always, more while no one else needs the room.
func (c *cursor) lookAhead() {
	r := c.run
	for c.next < len(c.blocks) {
		spare := len(c.ahead) > 0 || r.live > 64
		if spare && r.spare == 0 {
			return
		}
		c.schedule()
		if spare {
			r.spare--
			c.ahead[len(c.ahead)-1].spare = true
		}
	}
}

func (r *run) giveBack(f *future) {
	if f.spare {
		r.spare++
	}
}

// schedule asks for the next block.
func (c *cursor) schedule() {
	if c.src.stream != nil {
		c.scheduleLoose()
		return
	}
	if c.group == nil || c.next >= c.group.end {
		c.nextGroup()
	}
	r, g, n := c.run, c.group, c.blocks[c.next]
	b := &c.src.index.Blocks[n]
	f := &future{done: make(chan struct{}), block: n, first: b.First, last: b.Last, off: b.Offset, len: b.Stored, group: g}
	c.next++
	c.ahead = append(c.ahead, f)
	r.work.Go(func() {
		defer close(f.done)
		<-g.done
		if f.err = g.err; f.err != nil {
			return
		}
		r.decode(f, b, g.data[b.Offset-g.off:][:b.Stored])
	})
}

func (c *cursor) scheduleLoose() {
	r, s, n := c.run, c.src.stream, c.blocks[c.next]
	b := &s.index.Blocks[n]
	f := &future{done: make(chan struct{}), block: n, first: b.First, last: b.Last}
	c.next++
	c.ahead = append(c.ahead, f)
	r.work.Go(func() {
		defer close(f.done)
		r.loosen(f, s, n)
	})
}

// nextGroup fetches the blocks from c.next on that lie side by side.
func (c *cursor) nextGroup() {
	r := c.run
	g := newGroup(c.src.index, c.blocks, c.next, c.size)
	c.group = g
	// What is shared among many cursors is small for each.
	c.size = min(c.size*2, max(1<<20, min(r.groupMax, groupsLive/int64(max(1, r.live)))))
	r.work.Go(func() { r.fetch(c.src, g) })
}

// newGroup joins blocks[next] and those behind it that are adjacent in the blob
// until they have size bytes.
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

func (r *run) fetch(s *source, g *group) {
	g.data, g.err = s.fetch(r.ctx, g.off, g.len)
	close(g.done)
}

// decode decompresses a block and reduces it to what is wanted.
func (r *run) decode(f *future, b *blobfmt.Block, stored []byte) {
	var d *blobfmt.Decoder
	select {
	case d = <-r.decoders:
	case <-r.ctx.Done():
		f.err = r.ctx.Err()
		return
	}
	defer func() { r.decoders <- d }()
	if d == nil {
		if d, f.err = blobfmt.NewDecoder(); f.err != nil {
			return
		}
	}
	r.count.blocksRead.Add(1)
	var raw []byte
	if raw, f.err = d.Block(r.buffer(), stored, *b); f.err != nil {
		return
	}
	f.buf = raw
	var higher int64
	if f.kept, higher, f.err = r.match.keep(raw, b, r.rng); f.err != nil {
		return
	}
	r.count.higher.Add(higher)
	r.shrink(f)
}

// shrink sees to it that a few lines do not hold a whole block.
func (r *run) shrink(f *future) {
	if len(f.kept.raw) < len(f.buf)/4 {
		buf := f.buf
		f.kept.raw, f.buf = append([]byte(nil), f.kept.raw...), nil
		r.recycle(buf)
	}
}

func (r *run) buffer() []byte {
	select {
	case b := <-r.buffers:
		return b[:0]
	default:
		return nil
	}
}

func (r *run) recycle(b []byte) {
	if cap(b) == 0 {
		return
	}
	select {
	case r.buffers <- b:
	default:
	}
}

// walk reads a blob whose index cannot be read: all of it.
func (r *run) walk(s *source, o *opening) {
	o.walked = true
	body, err := s.whole(r.ctx)
	if errors.Is(err, storage.ErrDamaged) {
		if !s.bare {
			o.lost = append(o.lost, s.problem(0, 0, bareError(err)))
		}
	} else if err != nil {
		o.err = err
		return
	}
	d, err := blobfmt.NewDecoder()
	if err != nil {
		o.err = err
		return
	}
	records := int64(0)
	for frame, err := range d.Walk(s.key, body) {
		if err != nil {
			o.lost = append(o.lost, s.problem(0, 0, err))
			continue
		}
		f, n, err := r.found(frame)
		if err != nil {
			o.lost = append(o.lost, s.problem(frame.Offset, frame.Stored, err))
			continue
		}
		records += n
		if len(f.kept.raw) > 0 {
			o.found = append(o.found, f)
		}
	}
	if !s.bare && records != s.meta.Records && len(o.lost) == 0 {
		o.lost = append(o.lost, s.problem(0, 0, &blobfmt.CorruptError{Blob: s.key, Reason: "records are missing"}))
	}
	if r.desc {
		for i, j := 0, len(o.found)-1; i < j; i, j = i+1, j-1 {
			o.found[i], o.found[j] = o.found[j], o.found[i]
		}
	}
}

// blame reports what happened to a blob, unless it ends the read.
func (r *run) blame(s *source, p *Problem) error {
	if err := fatal(r.ctx, p.Err); err != nil {
		return err
	}
	if r.blamed[s] {
		return nil
	}
	if errors.Is(p.Err, storage.ErrNotExist) {
		r.blamed[s] = true
		expired, err := r.asked.gone(r.ctx, s, p.Err)
		if expired || r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		p = &Problem{Blob: p.Blob, Err: err}
	}
	r.sum.Problems = append(r.sum.Problems, p)
	return nil
}

// fatal gives the error that ends a read, for errors that are about more than
// one blob.
func fatal(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, storage.ErrUnauthorized) {
		return err
	}
	return nil
}

// failed reports a block that did not come. One GET that fails is one problem,
// however many blocks it was for.
func (r *run) failed(s *source, f *future) error {
	off, n := f.off, f.len
	if g := f.group; g != nil && g.err != nil {
		if g.told {
			return fatal(r.ctx, f.err)
		}
		g.told = true
		off, n = g.off, g.len
	}
	return r.blame(s, s.problem(off, n, f.err))
}

// unidentified notes that copies in s cannot be told from other records.
func (r *run) unidentified(s *source, err error) {
	if !r.blamed[s] {
		r.blamed[s] = true
		r.sum.Problems = append(r.sum.Problems, s.problem(0, 0, err))
	}
}
