package buffer

import (
	"cmp"
	"slices"

	"blobtail/record"
	"blobtail/wal"
)

// remembered is how many origins of HTTP requests are kept to recognise
// repeats: at a thousand requests a second, four minutes' worth. What is
// repeated later is dropped by the reader.
const remembered = 262144

// originMemory holds the origins of the last requests, oldest out first.
type originMemory struct {
	at   map[record.Origin]int32
	ring []rememberedOrigin
	next int
}

type rememberedOrigin struct {
	origin record.Origin
	pos    wal.Pos
	sum    uint64
}

func newOriginMemory() *originMemory {
	return &originMemory{at: map[record.Origin]int32{}}
}

// get says where a request with this origin stands in the log.
func (m *originMemory) get(o record.Origin) (rememberedOrigin, bool) {
	i, ok := m.at[o]
	if !ok {
		return rememberedOrigin{}, false
	}
	return m.ring[i], true
}

// add returns false where a request with this origin is known.
func (m *originMemory) add(r rememberedOrigin) bool {
	if _, ok := m.at[r.origin]; ok {
		return false
	}
	if len(m.ring) < remembered {
		m.at[r.origin] = int32(len(m.ring))
		m.ring = append(m.ring, r)
		return true
	}
	if old := m.ring[m.next].origin; m.at[old] == int32(m.next) {
		delete(m.at, old)
	}
	m.at[r.origin] = int32(m.next)
	m.ring[m.next] = r
	m.next = (m.next + 1) % remembered
	return true
}

// forget makes unknown the requests in whose records these positions lie: what
// was lost must be taken when it is sent again. Where a position is that of a
// request without an origin, the one before is forgotten, which does no harm.
func (m *originMemory) forget(lost []wal.Pos) {
	if len(lost) == 0 {
		return
	}
	known := slices.Clone(m.ring)
	slices.SortFunc(known, func(a, b rememberedOrigin) int { return cmp.Compare(a.pos, b.pos) })
	for _, pos := range lost {
		i, _ := slices.BinarySearchFunc(known, pos+1, func(o rememberedOrigin, p wal.Pos) int { return cmp.Compare(o.pos, p) })
		if i > 0 && known[i-1].pos.Segment() == pos.Segment() {
			delete(m.at, known[i-1].origin)
		}
	}
}
