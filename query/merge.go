package query

import (
	"bytes"
	"cmp"
	"errors"
)

// merge puts the lines of all cursors in the order of records, or backwards. It is a
// binary heap of cursors by key. Of equal keys, a cursor that is not ready comes
// first, so that its key is exact before another cursor moves past it. Ready ones
// come in the order of their records' places. Places are looked up for no other
// purpose.
type merge struct {
	desc   bool
	report *report
	ahead  *readahead
	heap   []*cursor
	used   *cursor // holds the last chunk; its block is released at the next step
	// spent is the source of used if nothing is left of it: the receiver of the chunk
	// may still ask for the records' identities.
	spent *source
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
func (m *merge) next() ([]byte, error) {
	if m.used != nil {
		if m.used.pos == m.used.end {
			m.used.release()
		}
		m.used = nil
	}
	if m.spent != nil {
		m.spent.forget()
		m.spent = nil
	}
	for len(m.heap) > 0 {
		c := m.heap[0]
		if !c.ready {
			if err := m.advance(c); err != nil {
				return nil, err
			}
			continue
		}
		limit, alone := m.second()
		if m.tie && m.lastPlace.Time != c.key {
			m.tie = false
		}
		if m.tie || !alone && limit == c.key {
			line, err := m.nextTied(c)
			if line != nil || err != nil {
				return line, err
			}
			continue
		}
		chunk, err := c.take(limit, alone)
		if err != nil {
			c.spoil(err)
		}
		m.moved(c)
		if len(chunk) > 0 {
			return chunk, nil
		}
	}
	return nil, nil
}

// nextTied returns the current line of the top cursor if another cursor has one of the
// same time; nil for a copy of the line returned last. Copies follow each other
// directly, because their bytes decide if all else is equal.
func (m *merge) nextTied(c *cursor) ([]byte, error) {
	at := *c.where()
	line, err := c.takeOne()
	same := m.again(c.src, &at, line)
	if same {
		m.report.sum.Copies++
	} else {
		m.tie, m.lastPlace, m.lastSrc = true, at, c.src
		m.last = append(m.last[:0], line...)
	}
	if err != nil {
		c.spoil(err)
	}
	m.moved(c)
	if same {
		m.used = nil
		if c.pos == c.end {
			c.release()
		}
		return nil, nil
	}
	return line, nil
}

// again reports whether a line is a copy of the one returned last.
func (m *merge) again(src *source, at *place, line []byte) bool {
	if !m.tie || m.lastSrc == src || !bytes.Equal(m.last, line) {
		return false
	}
	if at.known && m.lastPlace.known {
		return at.Key == m.lastPlace.Key
	}
	if at.known {
		src = m.lastSrc
	}
	m.report.unidentified(src, errors.New("a record may be shown twice: where it came from is not known"))
	return false
}

// advance takes the top cursor one step towards being ready.
func (m *merge) advance(c *cursor) error {
	more, err := c.advance()
	if err != nil {
		return err
	}
	if more {
		m.down(0)
	} else {
		m.pop()
	}
	if c.walked && !m.blind {
		m.blind = true
		m.init() // in another order
	}
	return nil
}

// moved puts the top cursor in its new place after it returned lines.
func (m *merge) moved(c *cursor) {
	m.used = c
	if c.ready || c.expect() {
		m.down(0)
		return
	}
	m.pop()
}

// pop removes the used-up top cursor from the heap.
func (m *merge) pop() {
	c := m.heap[0]
	last := len(m.heap) - 1
	m.heap[0] = m.heap[last]
	m.heap[last] = nil
	m.heap = m.heap[:last]
	m.down(0)
	m.ahead.open--
	m.ahead.done++
	if c == m.used {
		m.spent = c.src
		return
	}
	c.src.forget()
}

// second returns the least key of all cursors but the top one.
func (m *merge) second() (key int64, alone bool) {
	switch len(m.heap) {
	case 1:
		return 0, true
	case 2:
		return m.heap[1].key, false
	}
	a, b := m.heap[1].key, m.heap[2].key
	if (a < b) != m.desc {
		return a, false
	}
	return b, false
}

func (m *merge) init() {
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.down(i)
	}
}

func (m *merge) down(i int) {
	h := m.heap
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && m.less(h[child+1], h[child]) {
			child++
		}
		if !m.less(h[child], h[i]) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}

func (m *merge) less(a, b *cursor) bool {
	if a.key != b.key {
		return (a.key < b.key) != m.desc
	}
	if a.ready != b.ready {
		return !a.ready
	}
	if !a.ready {
		return false
	}
	n := 0
	if m.blind {
		n = bytes.Compare(a.current(), b.current())
	}
	if n == 0 {
		n = a.where().Compare(&b.where().Key)
	}
	if n == 0 {
		n = bytes.Compare(a.current(), b.current())
	}
	if n == 0 && a.src.unflushed != b.src.unflushed {
		return b.src.unflushed // so that a record counts as unflushed only if it is in no blob
	}
	return (cmp.Or(n, cmp.Compare(a.src.Key, b.src.Key)) < 0) != m.desc
}
