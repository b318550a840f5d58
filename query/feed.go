package query

// Limits on fetching ahead.
const (
	openAhead  = 3         // blobs
	groupsLive = 64 << 20  // bytes of stored blocks, over all feeds
	firstGroup = 256 << 10 // bytes of the first group when a limit may end the read: a block
)

// readahead says how far a pass fetches ahead of its merge. It belongs to the
// goroutine that merges.
type readahead struct {
	lazy     bool // a limit may end the read early: fetch little
	groupMax int64
	order    []*feed // all, in the order that the merge reaches them
	started  int     // of order: opened, or being opened
	open     int     // feeds that are open and not used up
	done     int     // feeds that are used up
	spare    int     // blocks that may still be fetched, beyond one for each feed
}

// advance starts to open the next feeds in order. A lazy pass starts none until it
// has used one up.
func (a *readahead) advance() {
	further := openAhead
	if a.lazy {
		further = min(further, a.done)
	}
	for ; a.started < min(a.done+a.open+1+further, len(a.order)); a.started++ {
		a.order[a.started].start()
	}
}

// firstGroup is the size of the first group of a feed, and nextGroup that of the
// group after one of a given size. Many feeds share the memory, so each has less.
func (a *readahead) firstGroup() int64 {
	if a.lazy {
		return min(firstGroup, a.groupMax)
	}
	return a.groupMax
}

func (a *readahead) nextGroup(size int64) int64 {
	return min(size*2, max(1<<20, min(a.groupMax, groupsLive/int64(max(1, a.open)))))
}

// A feed delivers the wanted blocks of one source in the order of reading, and
// requests them ahead of their use. It belongs to the goroutine that merges. It has
// requested its blocks before next; coming has those that were not taken yet.
type feed struct {
	src    *source
	loader *loader
	ahead  *readahead

	opening *opening // nil: not started
	opened  bool
	blocks  []int // into the index
	next    int
	group   *group // of blocks[next-1]
	size    int64  // of the next group
	taken   bool   // at least one block was taken
	coming  []*future
}

// start begins to open the source, unless it has begun.
func (f *feed) start() {
	if f.opening != nil {
		return
	}
	group := int64(0)
	if !f.ahead.lazy {
		group = f.ahead.groupMax
	}
	f.opening = f.loader.open(f.src, group)
}

// open waits until the source is open. The caller reports the findings.
func (f *feed) open() (*opening, error) {
	f.start()
	f.ahead.advance()
	o := f.opening
	select {
	case <-o.done:
	case <-f.loader.ctx.Done():
		return nil, f.loader.ctx.Err()
	}
	f.opened, f.blocks = true, o.blocks
	f.ahead.open++
	f.group, f.size = o.group, f.ahead.firstGroup()
	if !f.ahead.lazy {
		f.lookAhead()
	}
	return o, nil
}

// times are the first and the last time of the next block; ok is false if there is
// none.
func (f *feed) times() (first, last int64, ok bool) {
	n := f.next - len(f.coming)
	if n == len(f.blocks) {
		return 0, 0, false
	}
	b := &f.src.index.Blocks[f.blocks[n]]
	return b.First, b.Last, true
}

// take waits for the next block. There must be one.
func (f *feed) take() (*future, error) {
	if len(f.coming) == 0 {
		f.schedule()
	}
	b := f.coming[0]
	f.coming = f.coming[1:]
	select {
	case <-b.done:
	case <-f.loader.ctx.Done():
		return nil, f.loader.ctx.Err()
	}
	f.giveBack(b)
	if b.err == nil {
		if !f.ahead.lazy || f.taken {
			f.lookAhead()
		}
		f.taken = true
	}
	return b, nil
}

// drop skips the rest. The source can be forgotten then.
func (f *feed) drop() error {
	if !f.opened {
		f.opened = true
		f.ahead.open++
		if f.opening != nil {
			select { // otherwise the loader would write to a forgotten source
			case <-f.opening.done:
			case <-f.loader.ctx.Done():
				return f.loader.ctx.Err()
			}
		}
	}
	for _, b := range f.coming {
		f.giveBack(b)
	}
	f.coming, f.next = nil, len(f.blocks)
	return nil
}

// lookAhead requests the next blocks, as far as memory allows: always one, and more
// while no other feed needs the room.
func (f *feed) lookAhead() {
	a := f.ahead
	for f.next < len(f.blocks) {
		spare := len(f.coming) > 0 || a.open > 64
		if spare && a.spare == 0 {
			return
		}
		f.schedule()
		if spare {
			a.spare--
			f.coming[len(f.coming)-1].spare = true
		}
	}
}

func (f *feed) giveBack(b *future) {
	if b.spare {
		f.ahead.spare++
	}
}

// schedule requests the next block, and the group that it begins.
func (f *feed) schedule() {
	if f.group == nil || f.next >= f.group.end {
		g := newGroup(f.src.index, f.blocks, f.next, f.size)
		f.group, f.size = g, f.ahead.nextGroup(f.size)
		f.loader.work.Go(func() { f.loader.fetch(f.src, g) })
	}
	f.coming = append(f.coming, f.loader.block(f.src, f.blocks[f.next], f.group))
	f.next++
}
