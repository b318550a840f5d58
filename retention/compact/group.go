package compact

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"blobtail/blobfmt"
)

// maxGroup is the most blobs in a group of any size: their ids are in the new blob's
// index.
const maxGroup = 4000

// worthwhile is the least bytes of lines of a blob that is rewritten alone, only for
// the better level. A smaller one waits for others to join.
const worthwhile = 1 << 20

// groups returns the groups of blobs to become one each: those that overlap, and
// others in order of time. A compacted blob is left alone until it is a grace old. If
// it were rewritten before that, the new blob would replace its batches in turn; with
// a late blob before each run they would never be deleted. If such a blob is one of
// those that overlap, they are not ready, and none of their replaced blobs may be
// deleted: from these the next run knows that there is work left.
//
// This ends: each group leaves fewer blobs, or makes one compacted blob of one that
// was not.
func (r *run) groups(live []*blob) (overlapping, rest [][]*blob, ready bool) {
	sorted := slices.SortedFunc(slices.Values(live), inOrder)
	overlapping, taken := r.overlapping(sorted)
	young := func(b *blob) bool { return b.Meta.Compacted > 0 && !r.old(b) }
	all := len(overlapping)
	overlapping = slices.DeleteFunc(overlapping, func(g []*blob) bool { return slices.ContainsFunc(g, young) })
	var fit []*blob
	for _, b := range sorted {
		small := b.Meta.Compacted == 0 && b.Meta.RawBytes <= r.o.Target || b.Meta.RawBytes < r.o.Target/2
		if small && !taken[b] && !young(b) {
			fit = append(fit, b)
		}
	}
	for len(fit) > 0 {
		n, sum := 0, int64(0)
		for n < len(fit) && n < maxGroup && (n == 0 || sum+fit[n].Meta.RawBytes <= r.o.Target) {
			sum += fit[n].Meta.RawBytes
			n++
		}
		if g := fit[:n:n]; worth(g) {
			rest = append(rest, g)
		}
		fit = fit[n:]
	}
	return overlapping, rest, len(overlapping) == all
}

// inOrder sorts by time, and is the same for every compactor.
func inOrder(a, b *blob) int {
	return cmp.Or(cmp.Compare(a.Meta.First, b.Meta.First), bytes.Compare(a.Meta.Batch[:], b.Meta.Batch[:]), strings.Compare(a.Key, b.Key))
}

// worth reports whether a group is to be rewritten.
func worth(group []*blob) bool {
	return len(group) > 1 || len(group) == 1 && group[0].Meta.Compacted == 0 && group[0].Meta.RawBytes >= worthwhile
}

// overlapping groups compacted blobs that stand for the same batches. Two compactors
// make such blobs when a late one arrives between them. Then all blobs of an hour may
// be linked, each with the next. So a group is limited to twice the target, since
// much of it are copies, and to one target of stored bytes, which are in memory.
// Blobs beyond the limits stay: readers drop the copies.
func (r *run) overlapping(sorted []*blob) (groups [][]*blob, taken map[*blob]bool) {
	owners := make(map[blobfmt.BatchID][]*blob)
	for _, b := range sorted {
		for _, id := range b.standsFor() {
			owners[id] = append(owners[id], b)
		}
	}
	taken = make(map[*blob]bool)
	for _, b := range sorted {
		if taken[b] || b.Meta.Compacted == 0 {
			continue
		}
		taken[b] = true
		group, lines, stored := []*blob{b}, b.Meta.RawBytes, b.Size
		for i := 0; i < len(group); i++ { // it grows
			for _, o := range group[i].neighbours(owners) {
				if taken[o] || len(group) == maxGroup || lines+o.Meta.RawBytes > 2*r.o.Target || stored+o.Size > r.o.Target {
					continue
				}
				taken[o] = true
				group, lines, stored = append(group, o), lines+o.Meta.RawBytes, stored+o.Size
			}
		}
		if len(group) > 1 {
			groups = append(groups, group)
		} else {
			delete(taken, b)
		}
	}
	return groups, taken
}

// standsFor returns the batches that a compacted blob holds, and its own id; nothing
// for other blobs.
func (d *blob) standsFor() []blobfmt.BatchID {
	if d.Meta.Compacted == 0 {
		return nil
	}
	return append(slices.Clip(d.replaces), d.Meta.Batch)
}

// neighbours returns the blobs that stand for batches that d stands for, those with
// most in common first.
func (d *blob) neighbours(owners map[blobfmt.BatchID][]*blob) []*blob {
	common := make(map[*blob]int)
	var out []*blob
	for _, id := range d.standsFor() {
		for _, o := range owners[id] {
			if common[o]++; common[o] == 1 && o != d {
				out = append(out, o)
			}
		}
	}
	slices.SortFunc(out, func(a, b *blob) int { return cmp.Or(cmp.Compare(common[b], common[a]), inOrder(a, b)) })
	return out
}
