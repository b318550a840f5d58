package query

import (
	"bytes"
	"errors"

	"blobtail/blobfmt"
	"blobtail/record"
)

var (
	newline = []byte{'\n'}
	errLine = errors.New("a line does not begin with its time")
	// errOrder is looked for only where no index vouches for the lines.
	errOrder = errors.New("a line is older than the one before it")
)

// A cursor walks the wanted lines of one blob in one direction. It belongs to
// the goroutine that merges; what it fetches ahead comes to it by futures.
//
// It is lazy twice over: until the merge reaches the blob's first time (from
// the metadata) no request is made, and until it reaches a block's first time
// (from the index) that block is not waited for. In both cases key is a bound:
// no line of the cursor comes before it. Once ready, key is the time of the
// current line.
type cursor struct {
	run *run
	src *source

	key   int64
	ready bool

	opening *opening // being opened, perhaps ahead of its turn
	opened  bool
	blocks  []int // into the index, in the order of reading
	next    int   // the first of blocks that is not yet asked for
	group   *group
	size    int64 // of the next group
	loaded  bool  // a block before
	ahead   []*future

	cur      kept
	buf      []byte // what cur lies in
	block    int    // of the index
	pos, end int    // what is left of cur.raw
	lastAt   int    // where the last line of that begins; kept backwards only

	// The number in cur of the line that begins at offset at; and the identity
	// of the current line, if anyone asked.
	at      int
	line    uint32
	ident   identity
	identOK bool
}

// bound gives the earliest key that anything from first to last may have.
func (r *run) bound(first, last int64) int64 {
	if !r.desc {
		return max(first, r.rng.From)
	}
	if r.rng.To != Newest {
		last = min(last, r.rng.To-1)
	}
	return last
}

// advance takes the cursor, which is not ready, one step towards being so.
// It reports false when nothing is left.
func (c *cursor) advance() (more bool, err error) {
	if c.src.stream == nil && c.run.asked.view.Hides(c.src.service, c.src.day) {
		return false, c.drop()
	}
	if !c.opened {
		if err := c.finishOpen(); err != nil {
			return false, err
		}
	} else if err := c.load(); err != nil {
		return false, err
	}
	if c.ready {
		return true, nil
	}
	return c.expect(), nil
}

// drop leaves out the rest of a blob whose day expired while it was read.
func (c *cursor) drop() error {
	if !c.opened {
		c.opened = true
		c.run.live++
		if c.opening != nil {
			select { // or it would write what is let go
			case <-c.opening.done:
			case <-c.run.ctx.Done():
				return c.run.ctx.Err()
			}
		}
	}
	for _, f := range c.ahead {
		c.run.giveBack(f)
	}
	c.ahead, c.next = nil, len(c.blocks)
	return nil
}

// expect sets key to the bound of the next block.
func (c *cursor) expect() bool {
	if len(c.ahead) > 0 {
		f := c.ahead[0]
		c.key = c.run.bound(f.first, f.last)
		return true
	}
	if c.next == len(c.blocks) {
		return false
	}
	b := &c.src.index.Blocks[c.blocks[c.next]]
	c.key = c.run.bound(b.First, b.Last)
	return true
}

// load waits for the next block and makes it current, unless nothing of it is
// wanted or it cannot be read.
func (c *cursor) load() error {
	if len(c.ahead) == 0 {
		c.schedule()
	}
	f := c.ahead[0]
	c.ahead = c.ahead[1:]
	select {
	case <-f.done:
	case <-c.run.ctx.Done():
		return c.run.ctx.Err()
	}
	c.run.giveBack(f)
	if f.err != nil {
		return c.run.failed(c.src, f)
	}
	if !c.run.lazy || c.loaded {
		c.lookAhead()
	}
	c.loaded = true
	if len(f.kept.raw) == 0 {
		c.run.recycle(f.buf)
		return nil
	}
	c.cur, c.buf, c.block = f.kept, f.buf, f.block
	c.pos, c.end = 0, len(c.cur.raw)
	c.at, c.line, c.identOK = 0, 0, false
	c.key = c.cur.first
	if c.run.desc {
		c.key = c.cur.last
		c.lastAt = c.end - len(lastLine(c.cur.raw))
	}
	c.ready = true
	return nil
}

// current is the line at which the cursor stands.
func (c *cursor) current() []byte {
	if c.run.desc {
		return c.cur.raw[c.lastAt:c.end]
	}
	rest := c.cur.raw[c.pos:c.end]
	return rest[:bytes.IndexByte(rest, '\n')+1]
}

// take gives the lines from the current one up to, not including, the first
// that is at limit or beyond it in the direction of reading, all of the block if
// there is no limit, and moves behind them. The lines stand in ascending order
// whatever the direction.
func (c *cursor) take(limit int64, all bool) ([]byte, error) {
	if c.run.desc {
		return c.takeDown(limit, all)
	}
	stop := c.end
	if !all && c.cur.last >= limit {
		stop = c.pos + len(c.current())
		for stop < c.end {
			t, ok := record.LineTime(c.cur.raw[stop:c.end])
			if !ok {
				return nil, errLine
			}
			if t >= limit {
				break
			}
			stop += bytes.IndexByte(c.cur.raw[stop:c.end], '\n') + 1
		}
	}
	chunk := c.cur.raw[c.pos:stop]
	c.pos = stop
	return chunk, c.settle()
}

func (c *cursor) takeDown(limit int64, all bool) ([]byte, error) {
	stop := c.pos
	if !all && c.cur.first <= limit {
		stop = c.lastAt
		for stop > c.pos {
			line := lastLine(c.cur.raw[c.pos:stop])
			t, ok := record.LineTime(line)
			if !ok {
				return nil, errLine
			}
			if t <= limit {
				break
			}
			stop -= len(line)
		}
	}
	chunk := c.cur.raw[stop:c.end]
	c.end = stop
	return chunk, c.settle()
}

// takeOne gives the current line and moves behind it.
func (c *cursor) takeOne() ([]byte, error) {
	line := c.current()
	if c.run.desc {
		c.end = c.lastAt
	} else {
		c.pos += len(line)
	}
	return line, c.settle()
}

// settle sets key for the line at which the cursor has arrived. The block that
// it has used up stays readable until release.
func (c *cursor) settle() error {
	c.identOK = false
	if c.pos == c.end {
		c.ready = false
		return nil
	}
	line := c.cur.raw[c.pos:c.end]
	if c.run.desc {
		line = lastLine(line)
		c.lastAt = c.end - len(line)
	}
	t, ok := record.LineTime(line)
	if !ok {
		return errLine
	}
	c.key = t
	return nil
}

// spoil gives up the rest of a block in which a line is not what it must be.
func (c *cursor) spoil(err error) {
	c.pos, c.ready = c.end, false
	c.run.sum.Problems = append(c.run.sum.Problems, c.src.problem(0, 0, err))
}

// release gives the used up block's memory back.
func (c *cursor) release() {
	c.run.recycle(c.buf)
	c.cur, c.buf = kept{}, nil
}

// identity is that of the current line.
func (c *cursor) identity() identity {
	if c.identOK {
		return c.ident
	}
	c.identOK = true
	at := c.pos
	if c.run.desc {
		at = c.lastAt
	}
	c.ident = c.identityOf(c.lineAt(at))
	return c.ident
}

// lineAt is the number of the line at an offset of the current block. It counts
// from where it was asked for last, which is never far.
func (c *cursor) lineAt(at int) uint32 {
	if at >= c.at {
		c.line += uint32(bytes.Count(c.cur.raw[c.at:at], newline))
	} else {
		c.line -= uint32(bytes.Count(c.cur.raw[at:c.at], newline))
	}
	c.at = at
	return c.line
}

// identityOf is that of a line of the current block, of those that are kept.
func (c *cursor) identityOf(line uint32) identity {
	ord := c.cur.ord(line)
	if ids := c.cur.ids; ids != nil {
		return identity{known: true, origin: ids[ord].Origin, index: ids[ord].Index}
	}
	id, err := c.src.identify(c.block, ord)
	if err != nil {
		c.run.unidentified(c.src, err)
	}
	return id
}

// choose picks the blocks of the index that may hold something wanted, in the
// order of reading.
func (r *run) choose(index *blobfmt.Index) (blocks []int, skipped int64) {
	for i := range index.Blocks {
		b := &index.Blocks[i]
		if !r.rng.touches(b.First, b.Last) {
			skipped++
			continue
		}
		if !r.match.wantsSome(&b.Levels) {
			r.noteHigher(b)
			skipped++
			continue
		}
		blocks = append(blocks, i)
	}
	if r.desc {
		for i, j := 0, len(blocks)-1; i < j; i, j = i+1, j-1 {
			blocks[i], blocks[j] = blocks[j], blocks[i]
		}
	}
	return blocks, skipped
}
