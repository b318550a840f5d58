package buffer

import (
	"sort"

	"blobtail/buffer/runlog"
	"blobtail/wal"
)

// recentRuns is how many runs are remembered for those who follow: 16 bytes each.
const recentRuns = 1 << 18

// recent remembers where the last runs lie, in the order of the log, oldest out
// first. What is stored is remembered as well.
type recent struct {
	ring  []recentRun
	next  int // the oldest, once the ring is full
	names services32

	forgotten wal.Pos // runs up to here may lack
	last      wal.Pos // nothing that was appended lies behind it
	synced    wal.Pos // the record appended last, 0 for none since the start
}

type recentRun struct {
	pos     wal.Pos
	len     uint32
	service uint32
}

// newRecent remembers nothing, and knows that there may have been runs up to
// forgotten.
func newRecent(forgotten wal.Pos) *recent {
	return &recent{forgotten: forgotten, names: services32{numbers: map[string]uint32{}}}
}

// unknownBefore is up to where runs may have been in segments that are gone.
func unknownBefore(log *wal.Log) wal.Pos {
	if front := log.Front(); front > 1 {
		return wal.Pos(front)<<32 - 1
	}
	return 0
}

func (r *recent) len() int { return len(r.ring) }

// at is run i, counted from the oldest.
func (r *recent) at(i int) (runlog.Extent, string) {
	e := r.ring[(r.next+i)%len(r.ring)]
	return runlog.Extent{Pos: e.pos, Len: e.len}, r.names.of[e.service].name
}

// appended notes that a runs record stands at pos.
func (r *recent) appended(pos wal.Pos, payload int) {
	r.synced = pos
	r.last = pos + wal.Pos(payload)
}

// add remembers a run that lies behind all others.
func (r *recent) add(e runlog.Extent, service string) {
	r.last = max(r.last, e.End())
	run := recentRun{e.Pos, e.Len, r.names.take(service)}
	if len(r.ring) < recentRuns {
		r.ring = append(r.ring, run)
		return
	}
	old := &r.ring[r.next]
	r.forgotten = max(r.forgotten, old.pos)
	r.names.giveBack(old.service)
	*old = run
	r.next = (r.next + 1) % recentRuns
}

// since is how many runs lie at or before after, of those that are remembered.
func (r *recent) since(after wal.Pos) int {
	return sort.Search(len(r.ring), func(i int) bool {
		return r.ring[(r.next+i)%len(r.ring)].pos > after
	})
}

// drop forgets runs that are not there for anyone.
func (r *recent) drop(gone map[wal.Pos]bool) {
	if len(gone) == 0 {
		return
	}
	ring := make([]recentRun, 0, len(r.ring))
	for i := range r.ring {
		e := r.ring[(r.next+i)%len(r.ring)]
		if gone[e.pos] {
			r.names.giveBack(e.service)
			continue
		}
		ring = append(ring, e)
	}
	r.ring, r.next = ring, 0
}

// services32 numbers the services of the runs that are remembered. A number is
// used again when no run has it any more.
type services32 struct {
	numbers map[string]uint32
	of      []numbered
	unused  []uint32
}

type numbered struct {
	name string
	runs int
}

func (s *services32) take(name string) uint32 {
	n, ok := s.numbers[name]
	if !ok {
		if k := len(s.unused); k > 0 {
			n, s.unused = s.unused[k-1], s.unused[:k-1]
		} else {
			n = uint32(len(s.of))
			s.of = append(s.of, numbered{})
		}
		s.numbers[name] = n
		s.of[n].name = name
	}
	s.of[n].runs++
	return n
}

func (s *services32) giveBack(n uint32) {
	if s.of[n].runs--; s.of[n].runs == 0 {
		delete(s.numbers, s.of[n].name)
		s.of[n].name = ""
		s.unused = append(s.unused, n)
	}
}
