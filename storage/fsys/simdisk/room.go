package simdisk

import "math"

// SetRoom makes the disk full when its files have so many bytes in all. A write that does
// not fit is cut short and fails with ENOSPC. With 0 everything fits. Names take no room,
// nor do files that have lost their names.
func (d *Disk) SetRoom(bytes int64) {
	d.tree.mu.Lock()
	defer d.tree.mu.Unlock()
	d.tree.room = bytes
}

// Free implements [fsys.Measurer].
func (d *Disk) Free(string) (int64, error) {
	d.tree.mu.Lock()
	defer d.tree.mu.Unlock()
	if d.tree.room == 0 {
		return math.MaxInt64, nil
	}
	return max(d.tree.room-d.tree.used(), 0), nil
}

// lacks returns how much room is missing for n to grow to size.
func (t *tree) lacks(n *node, size int64) int64 {
	grown := size - int64(len(n.data))
	if t.room == 0 || grown <= 0 {
		return 0
	}
	return min(grown, grown+t.used()-t.room)
}

// used counts the bytes of the files that have a name.
func (t *tree) used() int64 {
	sum := int64(0)
	seen := map[*node]bool{}
	var walk func(n *node)
	walk = func(n *node) {
		if seen[n] {
			return
		}
		seen[n] = true
		sum += int64(len(n.data))
		for _, child := range n.names {
			walk(child)
		}
	}
	walk(t.root)
	return sum
}
