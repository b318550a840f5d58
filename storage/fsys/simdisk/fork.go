package simdisk

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
)

// Crash is a way in which a machine or a process ends. It decides how much of the
// unsynced changes survives. Synced changes always survive, and changes dropped by a
// failed sync never do, except with [Killed].
type Crash int

// The ways to crash. Time counts the operations over all files and directories.
const (
	None    Crash = iota // nothing unsynced survives: the strictest disk
	All                  // all of it survives: power went just after the cache was written
	Prefix               // all up to a random moment, and nothing after it
	Torn                 // Prefix, but only random sectors and names of the last 4 operations
	Any                  // any part of it, file by file, as with PowerCut: writes are reordered
	Killed               // all of it, and no more durable than before: only the process died
	Crashes              // number of ways
)

// String returns the name.
func (c Crash) String() string {
	names := []string{"none", "all", "prefix", "torn", "any", "killed"}
	if c < 0 || int(c) >= len(names) {
		return fmt.Sprintf("crash %d", int(c))
	}
	return names[c]
}

// Fork returns the disk after a crash at this moment, while d lives on and is not
// changed. The new disk shares nothing with d and has no fault hook. The same seed and
// history give the same disk; None, All and Killed leave nothing to chance. A fault hook
// must not call it: see [Op.Fork].
func (d *Disk) Fork(c Crash, seed uint64) *Disk {
	d.tree.mu.Lock()
	defer d.tree.mu.Unlock()
	return d.tree.fork(c, seed)
}

// Fork is [Disk.Fork] for a fault hook: the crash comes just before op. It works
// only while the hook runs.
//
//	disk.SetFault(func(op simdisk.Op) error {
//		for crash := range simdisk.Crashes {
//			found = append(found, op.Fork(crash, seed))
//		}
//		return nil
//	})
func (op Op) Fork(c Crash, seed uint64) *Disk { return op.disk.tree.fork(c, seed) }

// Unsynced returns the number of operations with changes that are not durable.
func (d *Disk) Unsynced() int {
	d.tree.mu.Lock()
	defer d.tree.mu.Unlock()
	return len(d.tree.unsynced())
}

func (t *tree) fork(c Crash, seed uint64) *Disk {
	rng := rand.New(rand.NewPCG(seed, 0x666f726b))
	var keep fate
	switch c {
	case None:
		keep = none
	case All:
		keep = all
	case Prefix:
		end, _ := t.moments(rng, 0)
		keep = func(_, _ int, at uint64) bool { return at < end }
	case Torn:
		end, tear := t.moments(rng, 4)
		keep = func(_, _ int, at uint64) bool { return at < tear || at < end && rng.IntN(2) == 0 }
	case Killed:
		return &Disk{tree: &tree{rng: rng, now: t.now, room: t.room, root: t.root.copy(map[*node]*node{}), locks: map[string]*lock{}}}
	default:
		return t.found(rng, func() fate { return choose(rng) })
	}
	return t.found(rng, func() fate { return keep })
}

// found is the disk after power is back.
func (t *tree) found(rng *rand.Rand, fates func() fate) *Disk {
	return &Disk{tree: &tree{rng: rng, now: t.now, room: t.room, root: t.root.survivor(fates, map[*node]*node{}), locks: map[string]*lock{}}}
}

// moments returns a random moment between unsynced operations, or before the first or
// after the last one. It also returns the moment that lies some operations earlier.
func (t *tree) moments(rng *rand.Rand, before int) (end, earlier uint64) {
	times := append(t.unsynced(), t.now+1)
	i := rng.IntN(len(times))
	return times[i], times[max(i-before, 0)]
}

// unsynced lists the times of changes that are not durable, ascending.
func (t *tree) unsynced() []uint64 {
	times := map[uint64]bool{}
	seen := map[*node]bool{}
	var walk func(n *node)
	walk = func(n *node) {
		if n == nil || seen[n] {
			return
		}
		seen[n] = true
		for _, c := range n.changes {
			times[c.at] = true
		}
		for _, c := range n.nameChanges {
			times[c.at] = true
		}
		n.children(walk)
	}
	walk(t.root)
	return slices.Sorted(maps.Keys(times))
}

// children calls each for every node that had a name in n since it was synced.
// Nil nodes are among them.
func (n *node) children(each func(*node)) {
	for _, names := range n.allNames() {
		for _, name := range slices.Sorted(maps.Keys(names)) {
			each(names[name])
		}
	}
}

func (n *node) allNames() []map[string]*node {
	names := []map[string]*node{n.names, n.stableNames}
	for _, c := range n.nameChanges {
		names = append(names, c.set)
	}
	return names
}

// copy is the node with all its changes on their way to the platter.
func (n *node) copy(seen map[*node]*node) *node {
	if n == nil {
		return nil
	}
	if s := seen[n]; s != nil {
		return s
	}
	s := &node{mode: n.mode, data: slices.Clone(n.data), stable: slices.Clone(n.stable), changes: slices.Clone(n.changes)}
	seen[n] = s
	names := func(from map[string]*node) map[string]*node {
		to := maps.Clone(from)
		for name, child := range to {
			to[name] = child.copy(seen)
		}
		return to
	}
	s.names, s.stableNames = names(n.names), names(n.stableNames)
	for _, c := range n.nameChanges {
		s.nameChanges = append(s.nameChanges, namesChange{at: c.at, set: names(c.set)})
	}
	return s
}
