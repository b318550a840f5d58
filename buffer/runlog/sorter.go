package runlog

import (
	"cmp"
	"slices"
	"sort"

	"blobtail/record"
)

// sorter brings the lines of runs in the order of time, origin and index. It keeps its
// memory.
type sorter struct {
	raw     []byte // the lines point into it
	lines   []line
	spare   []line
	origins []record.Origin // in ascending order, each once, after sort
	unique  []record.Origin
	order   []uint32
	ranks   []uint32
	bounds  []int // start of each sorted sequence of lines
}

// line is one line of a sorter. It has the rank of its origin, so comparing needs
// integers only.
type line struct {
	time  int64
	off   uint32 // in raw
	len   uint32
	rank  uint32 // place of its origin in origins
	index uint32
}

func (a *line) less(b *line) bool {
	if a.time != b.time {
		return a.time < b.time
	}
	if a.rank != b.rank {
		return a.rank < b.rank
	}
	return a.index < b.index
}

// sameID reports whether two lines have the same identity and time.
func (a *line) sameID(b *line) bool {
	return a.time == b.time && a.rank == b.rank && a.index == b.index
}

func (s *sorter) bytes(l *line) []byte { return s.raw[l.off:][:l.len:l.len] }

func (s *sorter) key(l *line) record.Key {
	return record.Key{Time: l.time, Origin: s.origins[l.rank], Index: l.index}
}

// clear forgets all lines.
func (s *sorter) clear() { s.raw, s.lines, s.origins = s.raw[:0], s.lines[:0], s.origins[:0] }

// rankOf is the rank of the lines that are added next, until sort.
func (s *sorter) rankOf(o record.Origin) uint32 {
	if n := len(s.origins); n == 0 || s.origins[n-1] != o {
		s.origins = append(s.origins, o)
	}
	return uint32(len(s.origins) - 1)
}

// rank makes the ranks the order of the origins.
func (s *sorter) rank() {
	n := len(s.origins)
	s.order, s.ranks = sized(s.order, n), sized(s.ranks, n)[:n]
	for i := range n {
		s.order = append(s.order, uint32(i))
	}
	slices.SortFunc(s.order, func(a, b uint32) int { return s.origins[a].Compare(&s.origins[b]) })
	s.unique = sized(s.unique, n)
	for _, i := range s.order {
		if k := len(s.unique); k == 0 || s.unique[k-1] != s.origins[i] {
			s.unique = append(s.unique, s.origins[i])
		}
		s.ranks[i] = uint32(len(s.unique) - 1)
	}
	for i := range s.lines {
		s.lines[i].rank = s.ranks[s.lines[i].rank]
	}
	s.origins, s.unique = s.unique, s.origins
}

// sort is a natural merge sort: it merges neighbouring sequences until one is left.
// Requests arrive nearly in order, so most of a merge is copying.
func (s *sorter) sort() {
	s.rank()
	s.bounds = s.bounds[:0]
	for i := range s.lines {
		if i == 0 || s.lines[i].less(&s.lines[i-1]) {
			s.bounds = append(s.bounds, i)
		}
	}
	s.spare = sized(s.spare, len(s.lines))[:len(s.lines)]
	for len(s.bounds) > 1 {
		next := s.bounds[:0]
		for i := 0; i < len(s.bounds); i += 2 {
			lo, mid, hi := s.bounds[i], len(s.lines), len(s.lines)
			if i+1 < len(s.bounds) {
				mid = s.bounds[i+1]
			}
			if i+2 < len(s.bounds) {
				hi = s.bounds[i+2]
			}
			mergeInto(s.spare[lo:hi], s.lines[lo:mid], s.lines[mid:hi])
			next = append(next, lo)
		}
		s.bounds = next
		s.lines, s.spare = s.spare, s.lines
	}
}

// mergeInto merges two sorted sequences; dst is as long as both together.
func mergeInto(dst, a, b []line) {
	if len(b) > 0 {
		// Lines before all of b, or behind all of a, need no comparing.
		head := sort.Search(len(a), func(i int) bool { return !a[i].less(&b[0]) })
		dst = dst[copy(dst, a[:head]):]
		a = a[head:]
	}
	for len(a) > 0 && len(b) > 0 {
		if b[0].less(&a[0]) {
			dst[0], b = b[0], b[1:]
		} else {
			dst[0], a = a[0], a[1:]
		}
		dst = dst[1:]
	}
	copy(dst[copy(dst, a):], b)
}

// truncate leaves the first n lines, and moves their bytes to the start of raw. They are
// not sorted any more.
func (s *sorter) truncate(n int) {
	s.lines = s.lines[:n]
	slices.SortFunc(s.lines, func(a, b line) int { return cmp.Compare(a.off, b.off) })
	at := uint32(0)
	for i := range s.lines {
		l := &s.lines[i]
		copy(s.raw[at:], s.bytes(l))
		l.off = at
		at += l.len
	}
	s.raw = s.raw[:at]
}
