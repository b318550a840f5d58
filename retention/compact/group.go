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

// worthwhile is the least bytes of lines of a blob that is rewritten alone, only to be
// compressed better. A smaller one waits for others to join.
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
func (r *run) groups(live []*blob) (groups [][]*blob, ready bool) {
	sorted := slices.SortedFunc(slices.Values(live), inOrder)
	overlapping, taken := r.overlapping(sorted)
	young := func(b *blob) bool { return b.Meta.Compacted > 0 && !r.old(b) }
	all := len(overlapping)
	groups = slices.DeleteFunc(overlapping, func(g []*blob) bool { return slices.ContainsFunc(g, young) })
	ready = len(groups) == all
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
			groups = append(groups, g)
		}
		fit = fit[n:]
	}
	return groups, ready
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
	type group struct {
		blobs         []*blob
		lines, stored int64
	}
	var all []*group
	of := make(map[blobfmt.BatchID]*group) // the last group that stands for a batch
	for _, b := range sorted {
		if b.Meta.Compacted == 0 {
			continue
		}
		var to *group
		ids := append(slices.Clip(b.replaces), b.Meta.Batch)
		for _, id := range ids {
			if g := of[id]; g != nil && len(g.blobs) < maxGroup && g.lines+b.Meta.RawBytes <= 2*r.o.Target && g.stored+b.Size <= r.o.Target {
				to = g
				break
			}
		}
		if to == nil {
			to = &group{}
			all = append(all, to)
		}
		to.blobs, to.lines, to.stored = append(to.blobs, b), to.lines+b.Meta.RawBytes, to.stored+b.Size
		for _, id := range ids {
			of[id] = to
		}
	}
	taken = make(map[*blob]bool)
	for _, g := range all {
		if len(g.blobs) == 1 {
			continue
		}
		groups = append(groups, g.blobs)
		for _, b := range g.blobs {
			taken[b] = true
		}
	}
	return groups, taken
}
