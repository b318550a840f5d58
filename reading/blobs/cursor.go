package blobs

import (
	"bytes"
	"errors"

	"blobtail/record"
)

var (
	newline = []byte{'\n'}
	errLine = errors.New("a line does not begin with its time")
	// errOrder is checked only if no index vouches for the lines.
	errOrder = errors.New("a line is older than the one before it")
)

// A cursor walks the wanted lines of one source in the direction of its pass. It
// belongs to the goroutine that merges.
//
// It is lazy twice: until the merge comes to the first time of the source (from the
// metadata) no request is made, and until it comes to the first time of a block (from
// the index) the cursor does not wait for that block. In both cases key is a bound: no
// line of the cursor comes before it. Once ready, key is the time of the current line.
type cursor struct {
	pass *pass
	src  *source

	key   int64
	ready bool

	// The wanted blocks before src.blocks[next] are requested; coming has those that were
	// not taken yet.
	opening func() error // waits for the source; nil: not started
	opened  bool
	next    int
	group   *group // of src.blocks[next-1]
	size    int64  // of the next group
	coming  []*future

	cur   kept   // of the current block
	buf   []byte // the memory of cur
	block int    // of the index
	left  []byte // of the current block: the current line, and those that were not taken
	line  []byte // the current line: the first of left, or the last backwards

	// num is the number in cur of the line at offset at. place is that of the current
	// line in the order of records, if placed.
	at     int
	num    uint32
	place  place
	placed bool
}

// advance takes the cursor, which is not ready, one step towards being ready. It
// returns false when nothing is left.
func (c *cursor) advance() (more bool, err error) {
	switch {
	case c.pass.asked.view.Hides(c.src.Name.Service, c.src.Day()):
		c.pass.ahead.coming -= len(c.coming)
		return false, nil // its day expired during the read
	case !c.opened:
		err = c.open()
	default:
		err = c.load()
	}
	return err == nil && (c.ready || c.expect()), err
}

// expect sets key to the bound of the next block. It returns false if there is none.
func (c *cursor) expect() bool {
	n := c.next - len(c.coming)
	if n == len(c.src.blocks) {
		return false
	}
	b := &c.src.index.Blocks[c.src.blocks[n]]
	c.key = c.pass.bound(b.First, b.Last)
	return true
}

// begin makes a block current, unless it has no wanted lines.
func (c *cursor) begin(f *future) {
	if len(f.kept.raw) == 0 {
		c.pass.loader.recycle(f.buf)
		return
	}
	c.cur, c.buf, c.block = f.kept, f.buf, f.block
	c.left, c.at, c.num = c.cur.raw, 0, 0
	c.settle() // without an error: the times of the first and the last line are known
}

// take returns the lines from the current one up to, not including, the first one at
// or beyond limit in the direction of reading, and moves past them. If all is set, it
// returns the rest of the block. The lines are in ascending order in either
// direction.
func (c *cursor) take(limit int64, all bool) (lines []byte, err error) {
	lines, desc := c.left, c.pass.desc
	if all || desc && c.cur.first > limit || !desc && c.cur.last < limit {
		c.left = nil
		return lines, c.settle()
	}
	for err = c.step(); err == nil && c.ready && c.key != limit && (c.key < limit) != desc; {
		err = c.step()
	}
	if desc {
		return lines[len(c.left):], err
	}
	return lines[:len(lines)-len(c.left)], err
}

func (c *cursor) step() error {
	if c.pass.desc {
		c.left = c.left[:len(c.left)-len(c.line)]
	} else {
		c.left = c.left[len(c.line):]
	}
	return c.settle()
}

// settle sets line and key, if a line is left. A used-up block stays readable until
// release.
func (c *cursor) settle() error {
	c.placed, c.ready = false, len(c.left) > 0
	if !c.ready {
		return nil
	}
	if c.pass.desc {
		c.line = lastLine(c.left)
	} else {
		c.line = c.left[:bytes.IndexByte(c.left, '\n')+1]
	}
	t, ok := record.LineTime(c.line)
	if !ok {
		return errLine
	}
	c.key = t
	return nil
}

// spoil skips the rest of a block after an invalid line.
func (c *cursor) spoil(err error) {
	c.left, c.ready = nil, false
	c.pass.sum.Problems = append(c.pass.sum.Problems, c.src.problem(0, 0, err))
}

func (c *cursor) release() {
	c.pass.loader.recycle(c.buf)
	c.cur, c.buf = kept{}, nil
}

// where returns the place of the current line.
func (c *cursor) where() *place {
	if !c.placed {
		c.place, c.placed = c.placeOf(c.number(c.line)), true
		c.place.Time = c.key
	}
	return &c.place
}

// number is the number in cur of the first line of a part of cur.raw: both end where their
// memory does. It counts from the previous answer, which is never far away.
func (c *cursor) number(part []byte) uint32 {
	at := cap(c.cur.raw) - cap(part)
	if at >= c.at {
		c.num += uint32(bytes.Count(c.cur.raw[c.at:at], newline))
	} else {
		c.num -= uint32(bytes.Count(c.cur.raw[at:c.at], newline))
	}
	c.at = at
	return c.num
}

// placeOf is the place of a line of the current block, without its time.
func (c *cursor) placeOf(line uint32) place {
	p, err := c.src.place(c.block, c.cur.ord(line))
	if err != nil {
		c.pass.unidentified(c.src, err)
	}
	return p
}
