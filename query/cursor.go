package query

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

	// The current block. The lines from pos to end are left of it.
	cur      kept
	buf      []byte // the memory of cur
	block    int    // of the index
	pos, end int
	lastAt   int // where the last line begins; kept backwards only

	// line is the number in cur of the line at offset at. place is that of the current
	// line in the order of records, if placed.
	at     int
	line   uint32
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
	c.pos, c.end = 0, len(c.cur.raw)
	c.at, c.line, c.placed = 0, 0, false
	c.key = c.cur.first
	if c.pass.desc {
		c.key = c.cur.last
		c.lastAt = c.end - len(lastLine(c.cur.raw))
	}
	c.ready = true
}

// current is the line of the cursor.
func (c *cursor) current() []byte {
	if c.pass.desc {
		return c.cur.raw[c.lastAt:c.end]
	}
	rest := c.cur.raw[c.pos:c.end]
	return rest[:bytes.IndexByte(rest, '\n')+1]
}

// take returns the lines from the current one up to, not including, the first one at
// or beyond limit in the direction of reading, and moves past them. If all is set, it
// returns the rest of the block. The lines are in ascending order in either
// direction.
func (c *cursor) take(limit int64, all bool) ([]byte, error) {
	raw, from, to := c.cur.raw, c.pos, c.end
	switch {
	case all:
	case c.pass.desc && c.cur.first <= limit:
		for from = c.lastAt; from > c.pos; {
			line := lastLine(raw[c.pos:from])
			t, ok := record.LineTime(line)
			if !ok {
				return nil, errLine
			}
			if t <= limit {
				break
			}
			from -= len(line)
		}
	case !c.pass.desc && c.cur.last >= limit:
		for to = c.pos + len(c.current()); to < c.end; {
			t, ok := record.LineTime(raw[to:c.end])
			if !ok {
				return nil, errLine
			}
			if t >= limit {
				break
			}
			to += bytes.IndexByte(raw[to:c.end], '\n') + 1
		}
	}
	if c.pass.desc {
		c.end = from
	} else {
		c.pos = to
	}
	return raw[from:to], c.settle()
}

// takeOne returns the current line and moves past it.
func (c *cursor) takeOne() ([]byte, error) {
	line := c.current()
	if c.pass.desc {
		c.end = c.lastAt
	} else {
		c.pos += len(line)
	}
	return line, c.settle()
}

// settle sets key for the new current line. A used-up block stays readable until
// release.
func (c *cursor) settle() error {
	c.placed = false
	if c.pos == c.end {
		c.ready = false
		return nil
	}
	line := c.cur.raw[c.pos:c.end]
	if c.pass.desc {
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

// spoil skips the rest of a block after an invalid line.
func (c *cursor) spoil(err error) {
	c.pos, c.ready = c.end, false
	c.pass.sum.Problems = append(c.pass.sum.Problems, c.src.problem(0, 0, err))
}

// release returns the memory of the used-up block.
func (c *cursor) release() {
	c.pass.loader.recycle(c.buf)
	c.cur, c.buf = kept{}, nil
}

// where returns the place of the current line.
func (c *cursor) where() *place {
	if !c.placed {
		at := c.pos
		if c.pass.desc {
			at = c.lastAt
		}
		c.place, c.placed = c.placeOf(c.lineAt(at)), true
		c.place.Time = c.key
	}
	return &c.place
}

// lineAt is the number of the line at an offset of the current block. It counts from
// the previous answer, which is never far away.
func (c *cursor) lineAt(at int) uint32 {
	if at >= c.at {
		c.line += uint32(bytes.Count(c.cur.raw[c.at:at], newline))
	} else {
		c.line -= uint32(bytes.Count(c.cur.raw[at:c.at], newline))
	}
	c.at = at
	return c.line
}

// placeOf is the place of a line of the current block, without its time.
func (c *cursor) placeOf(line uint32) place {
	p, err := c.src.place(c.block, c.cur.ord(line))
	if err != nil {
		c.pass.unidentified(c.src, err)
	}
	return p
}
