package blobs

// Limits on fetching ahead.
const (
	openAhead  = 3         // blobs
	siftAhead  = 128       // blobs, if filters rule out most: a few small reads each
	groupsLive = 32 << 20  // bytes of stored blocks, over all cursors
	groupLeast = 1 << 20   // bytes of a group; less would take more requests than it saves memory
	firstGroup = 256 << 10 // bytes of the first group when the read may need no more: a block
	// fewBytes is the size of the wanted blocks of a blob up to which a distant store gets the
	// requests for all of them at once, though they are not adjacent. A sifting pass opens
	// siftAhead blobs, and has room for so much of each.
	fewBytes = groupsLive / siftAhead
)

// readahead says how far a pass fetches ahead of its merge. A cursor requests its wanted
// blocks in the order of reading, ahead of their use.
type readahead struct {
	lazy     bool  // a limit may end the read early: fetch little
	sifts    bool  // filters may rule out most blocks: open many blobs, and fetch little
	probable int   // of order: the read probably comes to them
	first    int64 // bytes of the first group of a cursor
	groupMax int64
	order    []*cursor // all, in the order that the merge reaches them
	started  int       // of order: opened, or being opened
	open     int       // cursors that are open and not used up
	done     int       // cursors that are used up
	coming   int       // requested blocks that no cursor has taken
	spare    int       // blocks that may be requested, beyond one for each open cursor
	shared   *shared   // with other reads
}

// startNext starts to open the next cursors in order. A lazy pass starts only those that it
// probably comes to, until it has used one up.
func (a *readahead) startNext() {
	further := openAhead
	if a.sifts {
		further = siftAhead
	}
	if a.lazy {
		further = min(further, a.done)
	}
	for ; a.started < min(max(a.done+a.open+1+further, a.probable), len(a.order)); a.started++ {
		a.order[a.started].start()
		a.order[a.started] = nil // a used-up cursor can take much memory
	}
}

// share is the size that a group may have. Cursors share the memory, and each may hold two
// groups.
func (a *readahead) share() int64 {
	cursors := max(1, min(a.open+1+openAhead, len(a.order)-a.done))
	live, least := a.shared.room()
	return min(a.groupMax, max(least, live/2/int64(cursors)))
}

// start begins to open the source, unless it has begun.
func (c *cursor) start() {
	if p := c.pass; c.opening == nil {
		if p.loader.passes(c.src) {
			c.opening = done
			return
		}
		size, early := min(p.ahead.first, p.ahead.share()), p.ahead.started < p.ahead.probable
		if p.ahead.lazy && !early {
			size = 0 // its first block may never be reached
		}
		c.opening = p.loader.background(func() error { return p.loader.open(c.src, size, early) })
	}
}

// open waits until the source is open, and reports its problems.
func (c *cursor) open() error {
	p := c.pass
	c.start()
	p.ahead.startNext()
	err := c.opening()
	p.ahead.open++
	c.opened = true
	c.sizeFirst()
	if c.src.warn != nil {
		p.sum.Warnings = append(p.sum.Warnings, unindexed(c.src))
	}
	if c.src.unfiltered != nil {
		p.sum.Warnings = append(p.sum.Warnings, notFiltered(c.src))
	}
	p.sum.Problems = append(p.sum.Problems, c.src.lost...)
	if err != nil {
		return p.blame(c.src, c.src.problem(0, 0, err))
	}
	if !p.ahead.lazy {
		c.lookAhead()
	}
	return nil
}

// load waits for the next block, which must exist, and makes it current.
func (c *cursor) load() error {
	f, err := c.await()
	if f != nil {
		c.begin(f)
	}
	return err
}

// await waits for the next block, which must exist; nil: there is a problem with it. One failed GET
// is one problem, even if it was for several blocks.
func (c *cursor) await() (*future, error) {
	a := &c.pass.ahead
	if len(c.coming) == 0 {
		c.request()
	}
	f := c.coming[0]
	c.coming = c.coming[1:]
	a.coming--
	err := f.wait()
	if err == nil {
		if !a.lazy || c.next > 1 {
			c.lookAhead()
		}
		return f, nil
	}
	b := &c.src.index.Blocks[f.block]
	problem := c.src.problem(b.Offset, b.Stored, err)
	if f.group.wait() != nil {
		if f.group.told {
			return nil, fatal(c.pass.loader.ctx, err)
		}
		f.group.told = true
		problem = c.src.problem(f.group.off, f.group.len, err)
	}
	return nil, c.pass.blame(c.src, problem)
}

// lookAhead requests the next blocks, as far as memory allows: always one, and more
// while no other cursor needs the room.
func (c *cursor) lookAhead() {
	a := &c.pass.ahead
	for c.next < len(c.src.blocks) && (a.open <= 64 && len(c.coming) == 0 || a.hasRoom()) {
		c.request()
	}
	if c.next == len(c.src.blocks) && !a.lazy && a.hasRoom() {
		c.pass.lookBeyond()
	}
}

// hasRoom reports whether one more block may be requested.
func (a *readahead) hasRoom() bool { return a.coming < min(a.open, 64)+a.spare }

// lookBeyond requests the first blocks of the blob that the merge comes to next. All blocks of the one
// before were requested, and the last of them would be decoded alone. It waits until the blob is open.
// In a distant store that takes long, while the merge has lines to give: there it requests nothing.
func (p *pass) lookBeyond() {
	c := p.following()
	if c == nil || c.opened || c.opening == nil || p.loader.distant || c.opening() != nil {
		return
	}
	for c.sizeFirst(); c.next < len(c.src.blocks) && p.ahead.hasRoom(); {
		c.request()
	}
}

// sizeFirst sets the size of the first group of a cursor.
func (c *cursor) sizeFirst() {
	if a := &c.pass.ahead; c.size == 0 {
		c.size = min(a.first, a.share())
	}
}

// request requests the next block, and the group that it begins.
func (c *cursor) request() {
	p := c.pass
	if len(c.src.groups) > 0 && (c.group == nil || c.next >= c.group.end) {
		c.group, c.src.groups = c.src.groups[0], c.src.groups[1:]
	}
	if c.group == nil || c.next >= c.group.end {
		c.group, c.size = p.loader.group(c.src, c.next, c.size), min(2*c.size, p.ahead.share())
	}
	f := c.src.early
	if c.src.early = nil; f == nil {
		f = p.loader.block(c.src, c.src.blocks[c.next], c.group)
	}
	c.coming = append(c.coming, f)
	p.ahead.coming++
	c.next++
}
