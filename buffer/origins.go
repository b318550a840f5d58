package buffer

import (
	"cmp"
	"encoding/binary"
	"slices"

	"blobtail/record"
	"blobtail/wal"
)

// remembered is how many origins of HTTP requests are kept to recognise
// repeats: at a thousand requests a second, four minutes' worth. What is
// repeated later is dropped by the reader.
const remembered = 262144

// originMemory holds the origins of the last requests, oldest out first. A request
// with a key is found by that too, because without a time in it the key's origin
// takes in what the records bring.
type originMemory struct {
	at   map[record.Origin]int32 // by origins, and by keys as byKey has them
	ring []rememberedOrigin
	next int
}

type rememberedOrigin struct {
	origin      record.Origin
	pos         wal.Pos
	sum         uint64
	outcome     record.Outcome
	defaultTime int64
	expired     uint32 // records
}

func newOriginMemory() *originMemory {
	return &originMemory{at: map[record.Origin]int32{}}
}

// byKey is a value that depends on client, key, part, path and body alone: the end
// of the key's origin and the beginning of the sum. No origin looks like it by more
// than chance.
func byKey(origin record.Origin, sum uint64) record.Origin {
	var be [8]byte
	binary.BigEndian.PutUint64(be[:], sum)
	copy(origin[:6], be[:6])
	return origin
}

// find gives the request that r may be a repeat of: its key and body came before, or
// something came under its origin.
func (m *originMemory) find(r *record.Request) (rememberedOrigin, bool) {
	if r.Origin.IsZero() {
		return rememberedOrigin{}, false
	}
	if r.Sum != 0 {
		if first, ok := m.get(byKey(r.Origin, r.Sum)); ok && first.sum == r.Sum {
			return first, true
		}
	}
	return m.get(r.Origin)
}

// knows reports whether a request of this origin is remembered.
func (m *originMemory) knows(o record.Origin) bool {
	_, ok := m.at[o]
	return ok
}

func (m *originMemory) get(o record.Origin) (rememberedOrigin, bool) {
	i, ok := m.at[o]
	if !ok {
		return rememberedOrigin{}, false
	}
	return m.ring[i], true
}

// add remembers a request, in place of an earlier one of its origin, which it
// reports, and of the oldest one, whose origin it returns.
func (m *originMemory) add(r rememberedOrigin) (again bool, oldest record.Origin) {
	i := int32(len(m.ring))
	if len(m.ring) < remembered {
		m.ring = append(m.ring, r)
	} else {
		i = int32(m.next)
		oldest = m.ring[i].origin
		m.remove(&m.ring[i], i)
		m.ring[i] = r
		m.next = (m.next + 1) % remembered
	}
	_, again = m.at[r.origin]
	m.at[r.origin] = i
	if r.sum != 0 {
		m.at[byKey(r.origin, r.sum)] = i
	}
	return again, oldest
}

// remove makes a request unknown, unless a later one of its origin is known.
func (m *originMemory) remove(r *rememberedOrigin, i int32) {
	for _, o := range [2]record.Origin{r.origin, byKey(r.origin, r.sum)} {
		if n, ok := m.at[o]; ok && n == i {
			delete(m.at, o)
		}
	}
}

// forget makes unknown the requests in whose records these positions lie: what
// was lost must be taken when it is sent again. Where a position is that of a
// request without an origin, the one before is forgotten, which does no harm.
func (m *originMemory) forget(lost []wal.Pos) {
	if len(lost) == 0 {
		return
	}
	known := make([]int32, len(m.ring))
	for i := range known {
		known[i] = int32(i)
	}
	at := func(i int32) wal.Pos { return m.ring[i].pos }
	slices.SortFunc(known, func(a, b int32) int { return cmp.Compare(at(a), at(b)) })
	for _, pos := range lost {
		n, _ := slices.BinarySearchFunc(known, pos+1, func(i int32, p wal.Pos) int { return cmp.Compare(at(i), p) })
		if n > 0 && at(known[n-1]).Segment() == pos.Segment() {
			m.remove(&m.ring[known[n-1]], known[n-1])
		}
	}
}

// repeatOf reports whether r is a repeat of the request that was taken as o. An
// error says how to find out: with the times that its records got then.
func (o *rememberedOrigin) repeatOf(r *record.Request) (bool, error) {
	switch {
	case o.sum != r.Sum:
		return true, record.ErrKeyReused
	case o.outcome.Same(r.Outcome):
		return true, nil
	case o.defaultTime != 0 && (o.defaultTime != r.DefaultTime || o.origin != r.Origin):
		return true, &record.EarlierError{Origin: o.origin, DefaultTime: o.defaultTime}
	}
	return false, nil
}

// surelyCopies reports whether two requests of one origin have the same lines.
// Without a key an outcome that is not known is one, since lines bring their times.
func (o *rememberedOrigin) surelyCopies(p *rememberedOrigin) bool {
	return o.outcome.Same(p.outcome) && (o.sum == 0 || o.outcome.Sum != 0 && p.outcome.Sum != 0)
}
