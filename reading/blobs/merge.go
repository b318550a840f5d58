package blobs

import (
	"bytes"
	"cmp"
	"errors"
)

// merge is the part of a pass that puts the lines of all cursors in the order of records,
// or backwards. It is a binary heap of cursors by key. Of equal keys, a cursor that is not
// ready comes first, so that its key is exact before another cursor moves past it. Ready
// ones come in the order of their records' places. Places are looked up for no other
// purpose.
type merge struct {
	heap []*cursor
	// used holds the last chunk, because its receiver may still ask for the records' identities.
	// The block of the chunk is released at the next step.
	used *cursor
	// blind says that a blob without an index is read, so that its records have no known
	// identity. Of equal times the bytes then decide first, so that possible copies come
	// next to each other.
	blind bool

	// The line returned last, while others of its time may follow.
	tie       bool
	last      []byte
	lastPlace place
	lastSrc   *source
}

// next returns the next lines, adjacent in their blob and in ascending order in either
// direction. They are valid until the next call; nil is the end.
func (p *pass) next() ([]byte, error) {
	for {
		if p.used != nil && !p.used.ready {
			p.used.release()
		}
		p.used = nil
		if len(p.heap) == 0 {
			return nil, nil
		}
		c := p.heap[0]
		if !c.ready {
			if err := p.advance(c); err != nil {
				return nil, err
			}
			continue
		}
		limit, alone := p.second()
		p.tie = p.tie && p.lastPlace.Time == c.key
		if p.tie || !alone && limit == c.key {
			line, err := p.nextTied(c)
			if line != nil || err != nil {
				return line, err
			}
			continue
		}
		chunk, err := c.take(limit, alone)
		if err != nil {
			c.spoil(err)
		}
		p.moved(c)
		if len(chunk) > 0 {
			return chunk, nil
		}
	}
}

// nextTied returns the current line of the top cursor if another cursor has one of the
// same time; nil for a copy of the line returned last. Copies follow each other
// directly, because their bytes decide if all else is equal.
func (p *pass) nextTied(c *cursor) ([]byte, error) {
	at := *c.where()
	if !at.known && p.asked.view.Hides(c.src.Name.Service, c.src.Day()) {
		c.left, c.ready = nil, false // these may be copies, and need not be shown
		p.moved(c)
		return nil, nil
	}
	line := c.line
	err := c.step()
	same := p.again(c.src, &at, line)
	if same {
		p.sum.Copies++
	} else {
		p.tie, p.lastPlace, p.lastSrc = true, at, c.src
		p.last = append(p.last[:0], line...)
	}
	if err != nil {
		c.spoil(err)
	}
	p.moved(c)
	if same {
		return nil, nil
	}
	return line, nil
}

// again reports whether a line is a copy of the one returned last.
func (p *pass) again(src *source, at *place, line []byte) bool {
	if !p.tie || p.lastSrc == src || !bytes.Equal(p.last, line) {
		return false
	}
	if at.known && p.lastPlace.known {
		return at.Key == p.lastPlace.Key
	}
	if at.known {
		src = p.lastSrc
	}
	p.unidentified(src, errors.New("a record may be shown twice: where it came from is not known"))
	return false
}

func (p *pass) advance(c *cursor) error {
	more, err := c.advance()
	if err != nil {
		return err
	}
	if more {
		p.down(0)
	} else {
		p.pop()
	}
	if c.opened && c.src.body != nil && !c.src.unflushed && !p.blind {
		p.blind = true
		p.build() // in another order
	}
	return nil
}

// moved puts the top cursor in its new place after it returned lines.
func (p *pass) moved(c *cursor) {
	p.used = c
	if c.ready || c.expect() {
		p.down(0)
		return
	}
	p.pop()
}

func (p *pass) pop() {
	c := p.heap[0]
	last := len(p.heap) - 1
	p.heap[0] = p.heap[last]
	p.heap[last] = nil
	p.heap = p.heap[:last]
	p.down(0)
	if c.opened {
		p.ahead.open--
	}
	p.ahead.done++
	p.objects.release(c.src)
	p.asked.reader.opt.Progress.Finish(1, c.src.Size)
}

// second returns the least key of all cursors but the top one.
func (p *pass) second() (key int64, alone bool) {
	c := p.following()
	if c == nil {
		return 0, true
	}
	return c.key, false
}

// following returns the cursor with the least key of all but the top one; nil: there is none.
func (p *pass) following() *cursor {
	switch {
	case len(p.heap) < 2:
		return nil
	case len(p.heap) > 2 && (p.heap[2].key < p.heap[1].key) != p.desc:
		return p.heap[2]
	}
	return p.heap[1]
}

func (p *pass) build() {
	for i := len(p.heap)/2 - 1; i >= 0; i-- {
		p.down(i)
	}
}

func (p *pass) down(i int) {
	h := p.heap
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && p.less(h[child+1], h[child]) {
			child++
		}
		if !p.less(h[child], h[i]) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}

func (p *pass) less(a, b *cursor) bool {
	if a.key != b.key {
		return (a.key < b.key) != p.desc
	}
	if a.ready != b.ready {
		return !a.ready
	}
	if !a.ready {
		return false
	}
	n := 0
	if p.blind {
		n = bytes.Compare(a.line, b.line)
	}
	if n == 0 {
		n = a.where().Compare(&b.where().Key)
	}
	if n == 0 {
		n = bytes.Compare(a.line, b.line)
	}
	if n == 0 && a.src.unflushed != b.src.unflushed {
		return b.src.unflushed // so that a record counts as unflushed only if it is in no blob
	}
	return (cmp.Or(n, cmp.Compare(a.src.Key, b.src.Key)) < 0) != p.desc
}
