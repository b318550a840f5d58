package unflushed

import (
	"hash/maphash"
	"math"
	"time"

	"blobtail/record"
)

// seen remembers the emitted records, so that none is emitted twice. A shipper may have
// sent one to a second ingester, and a catch-up reads records again. It forgets the
// oldest half when it is full.
type seen struct {
	seed     maphash.Seed
	now, old map[uint64]struct{}
	most     int
	nowMax   int64 // greatest time among now
	oldMax   int64 // and among old
	// Every emitted record with a greater time is remembered.
	forgotten int64
	// Records from clocks that are ahead. They have a map of their own: otherwise their
	// times would move forgotten into the future. The map is cleared when it is full.
	ahead map[uint64]struct{}
}

const (
	// seenMost is how many records one half holds: 20 s of a very busy service, in
	// about 20 MB.
	seenMost = 1 << 20
	// One part in aheadMost of seenMost is for records from the future.
	aheadMost = 16
	// future is how far ahead of the store's time such records are.
	future = time.Minute
)

func newSeen(most int) *seen {
	return &seen{seed: maphash.MakeSeed(), now: map[uint64]struct{}{}, ahead: map[uint64]struct{}{}, most: most,
		nowMax: math.MinInt64, oldMax: math.MinInt64, forgotten: math.MinInt64}
}

// add notes a record, and reports whether it is new. Two records are the same if their
// times, identities and services are. A collision of 64-bit hashes is not to be expected
// in the life of a process.
func (s *seen) add(e *record.Entry, at time.Time) bool {
	k := s.key(e)
	for _, m := range []map[uint64]struct{}{s.now, s.old, s.ahead} {
		if _, ok := m[k]; ok {
			return false
		}
	}
	if e.Time > at.Add(future).UnixNano() {
		if len(s.ahead) >= max(1, s.most/aheadMost) {
			clear(s.ahead)
		}
		s.ahead[k] = struct{}{}
		return true
	}
	if len(s.now) >= s.most {
		s.forgotten = max(s.forgotten, s.oldMax)
		s.old, s.oldMax = s.now, s.nowMax
		s.now, s.nowMax = make(map[uint64]struct{}, s.most), math.MinInt64
	}
	s.now[k] = struct{}{}
	s.nowMax = max(s.nowMax, e.Time)
	return true
}

// key is the hash of a record's identity, time and service. If the identity was lost, the
// line replaces the service.
func (s *seen) key(e *record.Entry) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	h.Write(e.ID.Origin[:])
	maphash.WriteComparable(&h, e.ID.Index)
	maphash.WriteComparable(&h, e.Time)
	service, ok := record.LineService(e.Line)
	if e.ID == (record.ID{}) || !ok {
		service = e.Line
	}
	h.Write(service)
	return h.Sum64()
}
