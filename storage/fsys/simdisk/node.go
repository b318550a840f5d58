package simdisk

import (
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
)

const sector = 512

// node is a file or a directory. Programs see data and names; the platter has stable and
// stableNames; changes and nameChanges are the changes between the two, in order.
type node struct {
	mode fs.FileMode

	data    []byte
	stable  []byte
	changes []change

	names       map[string]*node // nil: a file
	stableNames map[string]*node
	nameChanges []namesChange
}

func newDir(perm fs.FileMode) *node {
	return &node{mode: perm | fs.ModeDir, names: map[string]*node{}, stableNames: map[string]*node{}}
}

// change is a write at off, or a truncation to size.
type change struct {
	at   uint64 // when: the number of the disk's operation
	off  int64
	data []byte
	size int64
	cut  bool
}

func (c change) apply(b []byte) []byte {
	if c.cut {
		return resize(b, c.size)
	}
	if end := c.off + int64(len(c.data)); end > int64(len(b)) {
		b = resize(b, end)
	}
	copy(b[c.off:], c.data)
	return b
}

func resize(b []byte, size int64) []byte {
	if size <= int64(len(b)) {
		return b[:size:size]
	}
	grown := slices.Grow(b, int(size)-len(b))[:size]
	clear(grown[len(b):])
	return grown
}

// sectors splits a write, because a disk may do only part of it.
func (c change) sectors() []change {
	if c.cut {
		return []change{c}
	}
	var out []change
	for at := int64(0); at < int64(len(c.data)); {
		end := min((c.off+at)/sector*sector+sector-c.off, int64(len(c.data)))
		out = append(out, change{at: c.at, off: c.off + at, data: c.data[at:end]})
		at = end
	}
	return out
}

func (n *node) write(c change) {
	n.data = c.apply(n.data)
	n.changes = append(n.changes, c)
}

// namesChange is the effect of one operation on the names of a directory; a nil node is a
// removal.
type namesChange struct {
	at  uint64
	set map[string]*node
}

func (c namesChange) apply(names map[string]*node) {
	for name, child := range c.set {
		setName(names, name, child)
	}
}

func (n *node) change(c namesChange) {
	c.apply(n.names)
	n.nameChanges = append(n.nameChanges, c)
}

func setName(names map[string]*node, name string, n *node) {
	if n == nil {
		delete(names, name)
	} else {
		names[name] = n
	}
}

// sync brings all changes to the platter. A failed sync brings a random part. The rest
// never gets there, since a failed page is marked clean.
func (n *node) sync(rng *rand.Rand, err error) {
	if err != nil {
		n.stable, n.stableNames = n.platter(choose(rng))
	} else {
		for _, c := range n.changes {
			n.stable = c.apply(n.stable)
		}
		for _, c := range n.nameChanges {
			c.apply(n.stableNames)
		}
	}
	n.changes, n.nameChanges = nil, nil
}

// fate decides whether the i-th of n changes of a node reaches the platter. at is the
// time of the change.
type fate func(i, n int, at uint64) bool

func all(int, int, uint64) bool { return true }

func none(int, int, uint64) bool { return false }

func choose(rng *rand.Rand) fate {
	switch rng.IntN(4) {
	case 0:
		return all
	case 1:
		return none
	case 2:
		part := rng.Float64()
		return func(i, n int, _ uint64) bool { return float64(i) < part*float64(n) }
	}
	part := rng.Float64()
	return func(int, int, uint64) bool { return rng.Float64() < part }
}

// platter is the state of the platter after a fate is applied to the changes. A sector is
// written whole, from a cache that has all earlier writes to it. So of the writes to one
// sector those up to some moment survive, never a later one alone.
func (n *node) platter(keep fate) ([]byte, map[string]*node) {
	b := slices.Clone(n.stable)
	var pieces []change
	for _, c := range n.changes {
		pieces = append(pieces, c.sectors()...)
	}
	old := map[int64]bool{} // sectors in their state of an earlier moment
	for i, c := range pieces {
		kept := keep(i, len(pieces), c.at)
		switch {
		case !kept && !c.cut:
			old[c.off/sector] = true
		case kept && (c.cut || !old[c.off/sector]):
			b = c.apply(b)
		}
	}
	names := maps.Clone(n.stableNames)
	for i, c := range n.nameChanges {
		if keep(i, len(n.nameChanges), c.at) {
			c.apply(names)
		}
	}
	return b, names
}

// survivor is the node after a power cut; fates yields the fate of each node.
func (n *node) survivor(fates func() fate, seen map[*node]*node) *node {
	if s := seen[n]; s != nil {
		return s
	}
	s := &node{mode: n.mode}
	seen[n] = s
	s.stable, s.stableNames = n.platter(fates())
	if n.names != nil {
		// In order, so that the same seed gives the same disk.
		for _, name := range slices.Sorted(maps.Keys(s.stableNames)) {
			s.stableNames[name] = s.stableNames[name].survivor(fates, seen)
		}
		s.names = maps.Clone(s.stableNames)
	}
	s.data = slices.Clone(s.stable)
	return s
}
