package buffer

import (
	"bytes"
	"fmt"
	"slices"

	"blobtail/record"
)

const (
	// mostCursors is how many runs a merge keeps account of that it has not read.
	mostCursors = 1 << 17
	// leastCursors is how many it takes of one batch whatever the others have.
	leastCursors = 1 << 12
	// mergeRoom is how much of them it keeps in memory, and allRoom how much all
	// merges do together: many may read at once, just when a backlog is large.
	mergeRoom = 32 << 20
	allRoom   = 4 * mergeRoom
)

// lend gives a merge its room, a quarter of what the others have left: none waits
// for another, and who comes when many read is slower.
func (b *Buffer) lend() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := (allRoom - b.lent) / 4
	b.lent += n
	return n
}

func (b *Buffer) takeBack(room int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lent -= room
}

// merge brings the lines of many units in order. A unit is read when the merge
// comes to where it may begin, and a run when it comes to its first line: so what
// is in memory are the runs that overlap, and of these no more than windows.
type merge struct {
	*liveReader
	units   heap[*unit]
	begun   heap[*cursor]
	waiting int // cursors in units
	most    int // how many of them there may be
	room    int

	last  cursor   // the line that was given out last
	twins [][]byte // what was given out under its identity
}

// all gives out every line of the units in order.
func (r *liveReader) all(units []*unit, emit func(*record.Entry) error) error {
	room := r.b.lend()
	defer r.b.takeBack(room)
	m := &merge{liveReader: r, room: room, most: room / (mergeRoom / mostCursors)}
	m.units.less = func(a, b *unit) bool { return a.bound().compare(b.bound()) < 0 }
	m.begun.less = func(a, b *cursor) bool { return a.compare(b) < 0 }
	for _, u := range units {
		u.rest = true
		u.last = cursor{time: max(u.span.first, r.q.From)}
		m.units.push(u)
	}
	for n := 0; ; n++ {
		if n%1024 == 0 {
			if err := r.ctx.Err(); err != nil {
				return err
			}
		}
		u, c := m.units.top(), m.begun.top()
		switch {
		case u == nil && c == nil:
			return nil
		case c == nil || u != nil && (*u).bound().compare(*c) <= 0:
			if err := m.unfold(*u); err != nil {
				return err
			}
		default:
			if err := m.give(*c, emit); err != nil {
				return err
			}
		}
	}
}

// bound is a line before which the unit has none.
func (u *unit) bound() *cursor {
	if len(u.next) > 0 {
		return &u.next[0]
	}
	return &u.last
}

// unfold begins the next run of the first unit, or reads what runs it has.
func (m *merge) unfold(u *unit) error {
	if len(u.next) > 0 {
		c := &u.next[0]
		u.last = *c
		u.next = u.next[1:]
		m.waiting--
		m.begun.push(c)
	} else if u.rest {
		if err := m.readRuns(u); err != nil {
			return err
		}
	}
	if len(u.next) == 0 && !u.rest {
		m.units.pop()
		u.skip, u.lots = nil, nil
		return nil
	}
	m.units.fix()
	return nil
}

// readRuns finds the next runs of a unit, as many as there is room for. A unit that
// has more is read again when the merge gets there.
func (m *merge) readRuns(u *unit) error {
	n := max(leastCursors, m.most-m.waiting)
	u.next, u.rest = nil, false
	first := !u.read
	err := m.scan(u, func(h *heldRun) error {
		c, ok := cursorAt(h, m.q.From, m.q.To)
		if !ok || !first && c.compare(&u.last) <= 0 {
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

// give gives out the line that the first cursor stands before, and moves that on.
func (m *merge) give(c *cursor, emit func(*record.Entry) error) error {
	line, err := m.bytes(c, &m.room)
	if err != nil {
		return m.broken(c, err)
	}
	if m.last.compareLines(c) != 0 {
		m.twins = m.twins[:0]
	}
	m.last = cursor{time: c.time, origin: c.origin, index: c.index}
	wanted := m.q.Keep == nil || m.q.Keep(line)
	if wanted && !slices.ContainsFunc(m.twins, func(t []byte) bool { return bytes.Equal(t, line) }) {
		if err := emit(&record.Entry{Time: c.time, ID: record.ID{Origin: c.origin, Index: c.index}, Line: line}); err != nil {
			return err
		}
	}
	more, err := m.advance(c, &m.room)
	if err != nil {
		return m.broken(c, err)
	}
	if more {
		m.begun.fix()
	} else {
		m.begun.pop()
		c.let(&m.room)
	}
	if m.twinFollows() {
		m.twins = append(m.twins, bytes.Clone(line))
	}
	return nil
}

// twinFollows reports whether the next line has the identity of the last. Of a
// unit that is not read yet that is not known.
func (m *merge) twinFollows() bool {
	if c := m.begun.top(); c != nil && m.last.compareLines(*c) == 0 {
		return true
	}
	u := m.units.top()
	return u != nil && m.last.compareLines((*u).bound()) == 0
}

// broken leaves out the rest of a run that could be read before.
func (m *merge) broken(c *cursor, err error) error {
	m.begun.pop()
	c.let(&m.room)
	if fatal := m.fatal(err); fatal != nil {
		return fatal
	}
	m.missing.run(fmt.Errorf("%d lines of the run at %d in segment %d: %w", c.left, c.run.Offset(), c.run.Segment(), err))
	return nil
}

// heap is a binary heap whose least element is on top.
type heap[T any] struct {
	less func(a, b T) bool
	all  []T
}

func (h *heap[T]) top() *T {
	if len(h.all) == 0 {
		return nil
	}
	return &h.all[0]
}

func (h *heap[T]) push(x T) {
	h.all = append(h.all, x)
	for i := len(h.all) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.less(h.all[i], h.all[up]) {
			return
		}
		h.all[i], h.all[up] = h.all[up], h.all[i]
		i = up
	}
}

func (h *heap[T]) pop() {
	n := len(h.all) - 1
	var none T
	h.all[0], h.all[n] = h.all[n], none
	h.all = h.all[:n]
	h.fix()
}

// fix restores the order after the top has changed.
func (h *heap[T]) fix() {
	for i := 0; ; {
		least := i
		for _, down := range [2]int{2*i + 1, 2*i + 2} {
			if down < len(h.all) && h.less(h.all[down], h.all[least]) {
				least = down
			}
		}
		if least == i {
			return
		}
		h.all[i], h.all[least] = h.all[least], h.all[i]
		i = least
	}
}
