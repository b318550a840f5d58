package runlog

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"blobtail/record"
)

const (
	// mostCursors bounds the runs that a merge knows of and has not begun.
	mostCursors = 1 << 17
	// leastCursors is the number of these that one unit may have unconditionally.
	leastCursors = 1 << 12
	// mergeRoom bounds the bytes of runs that a merge keeps in memory, and allRoom those
	// of all merges together. Many readers may come at once, just when a backlog is
	// large.
	mergeRoom = 32 << 20
	allRoom   = 4 * mergeRoom
)

// Room is the memory that all merges of a log share, in bytes. The zero value is ready. A
// merge gets a quarter of the rest, so none waits for another: with many readers, a later
// one is slower.
type Room struct {
	mu   sync.Mutex
	lent int
}

func (r *Room) lend() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := (allRoom - r.lent) / 4
	r.lent += n
	return n
}

func (r *Room) takeBack(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lent -= n
}

// merge returns the lines of many units in order. It reads a unit when it reaches the
// start of its span, and begins a run when it reaches its first line. So only runs that
// overlap are in memory, and only windows of them.
type merge struct {
	*Reading
	heap    heap
	waiting int // cursors in units
	most    int // the most of them that are allowed
	room    int

	last  record.Key // of the line that was emitted last
	twins [][]byte   // the lines that were emitted with this key
}

// all emits every line of the units in order.
func (r *Reading) all(units []*Unit, emit func(*record.Entry) error) error {
	room := r.room.lend()
	defer r.room.takeBack(room)
	m := &merge{Reading: r, room: room, most: room / (mergeRoom / mostCursors)}
	for _, u := range units {
		u.rest = true
		u.last = cursor{Key: record.Key{Time: max(u.Span.First, r.q.From)}}
		m.heap.push(head{&u.last, u})
	}
	for n := 0; len(m.heap) > 0; n++ {
		if n%1024 == 0 {
			if err := r.ctx.Err(); err != nil {
				return err
			}
		}
		var err error
		if m.heap[0].unit != nil {
			err = m.unfold()
		} else {
			err = m.give(emit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unfold begins the next run of the first unit, or finds its next runs.
func (m *merge) unfold() error {
	u := m.heap[0].unit
	var begun *cursor
	if len(u.next) > 0 {
		begun = &u.next[0]
		u.last = *begun
		u.next = u.next[1:]
		m.waiting--
	} else if err := m.readRuns(u); err != nil {
		return err
	}
	switch {
	case len(u.next) > 0:
		m.heap[0].cursor = &u.next[0]
		m.heap.fix()
	case u.rest:
		m.heap[0].cursor = &u.last
		m.heap.fix()
	default:
		m.heap.pop()
		u.skip, u.lots = nil, nil
	}
	if begun != nil {
		m.heap.push(head{begun, nil})
	}
	return nil
}

// readRuns finds the next runs of a unit, as many as there is room for. A unit with more
// is read again when the merge gets there.
func (m *merge) readRuns(u *Unit) error {
	n := max(leastCursors, m.most-m.waiting)
	u.next, u.rest = nil, false
	again := u.read
	err := m.scan(u, func(p *part) error {
		c, ok := cursorAt(p, m.q.From, m.q.To)
		if !ok || again && c.compare(&u.last) <= 0 {
			return nil
		}
		u.next = append(u.next, c)
		if len(u.next) >= 2*n {
			u.next, u.rest = firstOf(u.next, n), true
		}
		return nil
	})
	if len(u.next) > n {
		u.next, u.rest = slices.Clone(firstOf(u.next, n)), true
	}
	slices.SortFunc(u.next, func(a, b cursor) int { return a.compare(&b) })
	m.waiting += len(u.next)
	return err
}

func firstOf(all []cursor, n int) []cursor {
	slices.SortFunc(all, func(a, b cursor) int { return a.compare(&b) })
	return all[:n]
}

// give emits the line at the first cursor, unless the same line was emitted, and advances
// the cursor.
func (m *merge) give(emit func(*record.Entry) error) error {
	c := m.heap[0].cursor
	line, err := m.bytes(c, &m.room)
	if err != nil {
		return m.broken(c, err)
	}
	if m.last.Compare(&c.Key) != 0 {
		m.twins = m.twins[:0]
	}
	m.last = c.Key
	wanted := m.q.Keep == nil || m.q.Keep(line)
	if wanted && !slices.ContainsFunc(m.twins, func(t []byte) bool { return bytes.Equal(t, line) }) {
		if err := m.emit(&c.Key, line, emit); err != nil {
			return err
		}
	}
	more, err := m.advance(c, &m.room)
	if err != nil {
		return m.broken(c, err)
	}
	if more {
		m.heap.fix()
	} else {
		m.heap.pop()
		c.release(&m.room)
	}
	// The next line may have the same key. A unit that is not read yet gives no answer.
	if len(m.heap) > 0 && m.last.Compare(&m.heap[0].Key) == 0 {
		m.twins = append(m.twins, bytes.Clone(line))
	}
	return nil
}

// broken omits the rest of a run that could be read before.
func (m *merge) broken(c *cursor, err error) error {
	m.heap.pop()
	c.release(&m.room)
	if fatal := m.fatal(err); fatal != nil {
		return fatal
	}
	m.missing.add(&m.missing.Runs, fmt.Errorf("%d lines of the run at %d in segment %d: %w", c.left, c.run.Offset(), c.run.Segment(), err))
	return nil
}

// head is a run that the merge has begun, at its next line. Or it is a unit, at a line
// that is not behind its first one.
type head struct {
	*cursor
	unit *Unit // nil for a run
}

// less puts a unit before a run with the same line.
func (h head) less(other head) bool {
	n := h.compare(other.cursor)
	return n < 0 || n == 0 && h.unit != nil && other.unit == nil
}

// heap is a binary heap; its least element is the first.
type heap []head

func (h *heap) push(x head) {
	*h = append(*h, x)
	all := *h
	for i := len(all) - 1; i > 0; {
		up := (i - 1) / 2
		if !all[i].less(all[up]) {
			return
		}
		all[i], all[up] = all[up], all[i]
		i = up
	}
}

func (h *heap) pop() {
	n := len(*h) - 1
	(*h)[0], (*h)[n] = (*h)[n], head{}
	*h = (*h)[:n]
	h.fix()
}

// fix restores the order after the first element has changed.
func (h *heap) fix() {
	all := *h
	for i := 0; ; {
		least := i
		for _, down := range [2]int{2*i + 1, 2*i + 2} {
			if down < len(all) && all[down].less(all[least]) {
				least = down
			}
		}
		if least == i {
			return
		}
		all[i], all[least] = all[least], all[i]
		i = least
	}
}
