package runlog

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"blobtail/record"
)

const (
	// firstChunks and lastChunks are the least sizes of a chunk but the last of its unit,
	// in bytes of the log. Each stretch reads the chunks that reach into it whole, so they
	// are short while there are few: with many services all of them overlap. The size
	// doubles with each number of doubling chunks.
	firstChunks = 4 << 10
	lastChunks  = 256 << 10
	doubling    = 1 << 13
	// wide is the span of a run that is worth cutting into pieces, in nanoseconds. A run
	// of a sender that keeps the order of time is shorter, and one stretch has most of it.
	wide = int64(time.Minute)
	// allRoom bounds the lines that all merges together have in memory, in bytes. Each
	// merge begins with firstRoom, or with leastRoom if others have most of it. Many
	// readers may come at once, just when a backlog is large.
	allRoom   = 64 << 20
	firstRoom = 4 << 20
	leastRoom = 2 << 20
	// lineRoom is the memory of a line next to its bytes: two places for it, and two each
	// for an origin of its own and for the rank of that.
	lineRoom = 2*32 + 2*16 + 2*4
)

// Room is the memory that all merges of a log share, in bytes. The zero value is ready.
// No merge waits for another: with many readers, a later one gets less and is slower.
type Room struct {
	mu   sync.Mutex
	lent int
}

func (r *Room) lend() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(firstRoom, max(leastRoom, (allRoom-r.lent)/4))
	r.lent += n
	return n
}

// grow doubles the room of a merge, if as much is left.
func (r *Room) grow(room int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if room > (allRoom-r.lent)/2 {
		return room
	}
	r.lent += room
	return 2 * room
}

func (r *Room) takeBack(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lent -= n
}

// chunk is some runs of a unit in the order of the log, a piece of a wide run, or a unit
// that is not read yet.
type chunk struct {
	unit  *Unit
	whole bool // the unit is not read yet
	span  Span
	runs  Extents
	piece *piece // instead of runs
	size  int
}

// merge emits the lines of many units in order. It gathers the lines of a stretch of
// time, from all chunks that reach into it, sorts and emits them. The stretch becomes
// shorter when its lines need too much memory. A unit is read when a stretch reaches the
// start of its span.
type merge struct {
	*Reading
	sorter
	room   int
	size   int      // of the chunks that were read for the stretch
	chunks []*chunk // in the order of their spans' starts

	from record.Key  // start of the stretch
	most int         // lines with this key that may still be emitted
	to   *record.Key // behind its end, if that is not the end of the query
}

// all emits every line of the units from a key on in order, and at most most lines with
// this key.
func (r *Reading) all(units []Unit, from record.Key, most int, emit func(*record.Entry) error) error {
	m := &merge{Reading: r, room: r.room.lend(), from: from, most: most}
	defer func() { r.room.takeBack(m.room) }()
	for i := range units {
		switch u := &units[i]; {
		case !u.Span.Touches(from.Time, r.q.To):
		case u.read:
			m.chunks = append(m.chunks, u.chunks...)
		default:
			own := *u // with its chunks it lives until the last of them is read
			m.chunks = append(m.chunks, &chunk{unit: &own, whole: true, span: u.Span})
		}
	}
	slices.SortFunc(m.chunks, compareChunks)
	for {
		if err := m.gather(); err != nil {
			return err
		}
		if err := m.give(emit); err != nil || m.to == nil {
			return err
		}
		if m.size > 3*m.room {
			m.room = r.room.grow(m.room) // most of the lines come again in later stretches
		}
		m.from, m.to, m.most = *m.to, nil, math.MaxInt
		m.chunks = slices.DeleteFunc(m.chunks, func(c *chunk) bool { return c.span.Last < m.from.Time })
	}
}

func compareChunks(a, b *chunk) int { return cmp.Compare(a.span.First, b.span.First) }

// gather sorts the lines of the next stretch.
func (m *merge) gather() error {
	m.clear()
	m.size = 0
	for i := 0; i < len(m.chunks) && !m.behind(m.chunks[i].span.First); {
		c := m.chunks[i]
		if len(m.raw)+lineRoom*len(m.lines) > m.room && m.shorten(c.span.First) {
			break
		}
		if !c.whole {
			if err := m.read(c, m.take); err != nil {
				return err
			}
			m.size += c.size
			i++
			continue
		}
		if err := m.scan(c.unit, nil); err != nil {
			return err
		}
		m.chunks = slices.Delete(m.chunks, i, i+1)
		for _, c := range c.unit.chunks {
			at, _ := slices.BinarySearchFunc(m.chunks[i:], c, compareChunks)
			m.chunks = slices.Insert(m.chunks, i+at, c)
		}
		c.unit.chunks = nil
	}
	m.sort()
	return m.ctx.Err()
}

// behind reports whether a time is behind the stretch.
func (m *merge) behind(t int64) bool {
	return beyond(t, m.q.To) || m.to != nil && t > m.to.Time
}

// take gathers the lines of a run that are in the stretch.
func (m *merge) take(r *Run) error {
	if s := r.Span(); s.Last < m.from.Time || m.behind(s.First) {
		return nil
	}
	key, rank := record.Key{Origin: r.Origin}, m.rankOf(r.Origin)
	rows := r.rows()
	for rows.next() && !m.behind(rows.time) {
		text := rows.line
		key.Time, key.Index = rows.time, rows.index
		if rows.time <= m.from.Time && key.Compare(&m.from) < 0 || m.to != nil && rows.time == m.to.Time && key.Compare(m.to) >= 0 {
			continue
		}
		if m.q.Keep != nil && !m.q.Keep(text) {
			continue
		}
		m.lines = append(m.lines, line{rows.time, uint32(len(m.raw)), uint32(len(text)), rank, rows.index})
		if n := len(m.raw) + len(text); n > cap(m.raw) && n > m.room/8 {
			// At once: doubling would leave as much garbage.
			m.raw = slices.Grow(m.raw, max(len(text), m.room+lastChunks-len(m.raw)))
		}
		m.raw = append(m.raw, text...)
	}
	return nil
}

// shorten ends the stretch earlier, because its lines need too much memory. If most of
// them lie before the next chunk, it ends there, and shorten returns true: no more chunks
// have lines of it. Else it ends behind half of the lines.
func (m *merge) shorten(next int64) bool {
	before := 0
	for i := range m.lines {
		if m.lines[i].time < next {
			before++
		}
	}
	if before > len(m.lines)/2 {
		m.to = &record.Key{Time: next}
		m.lines = slices.DeleteFunc(m.lines, func(l line) bool { return l.time >= next })
		return true
	}
	m.sort()
	n := (len(m.lines) + 1) / 2
	for n < len(m.lines) && m.lines[n].sameID(&m.lines[n-1]) {
		n++ // lines of one identity are in one stretch
	}
	if n < len(m.lines) {
		to := m.key(&m.lines[n])
		m.to = &to
		m.truncate(n)
	}
	return false
}

// give emits the lines of the stretch, each once.
func (m *merge) give(emit func(*record.Entry) error) error {
	for i := range m.lines {
		if i%1024 == 0 {
			if err := m.ctx.Err(); err != nil {
				return err
			}
		}
		l := &m.lines[i]
		text, copied := m.bytes(l), false
		for j := i - 1; j >= 0 && m.lines[j].sameID(l) && !copied; j-- {
			copied = bytes.Equal(m.bytes(&m.lines[j]), text)
		}
		key := m.key(l)
		if copied {
			continue
		}
		if key == m.from {
			if m.most == 0 {
				continue
			}
			m.most--
		}
		m.entry = record.Entry{Time: key.Time, ID: record.ID{Origin: key.Origin, Index: key.Index}, Line: text}
		if err := emit(&m.entry); err != nil {
			return err
		}
	}
	return nil
}
