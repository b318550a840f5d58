package buffer

import (
	"cmp"
	"encoding/binary"
	"iter"
	"slices"

	"blobtail/wal"
)

// extent is where one run lies in the log.
type extent struct {
	pos wal.Pos
	len uint32
}

// extents is a list of runs in rising order of position, kept as the varints
// that a batch record holds: about five bytes a run, so that a backlog costs
// disk and not memory.
type extents struct {
	enc  []byte
	last wal.Pos
	n    int
}

func (x *extents) add(e extent) {
	x.enc = binary.AppendUvarint(x.enc, uint64(e.pos-x.last))
	x.enc = binary.AppendUvarint(x.enc, uint64(e.len))
	x.last = e.pos
	x.n++
}

func (x *extents) all() iter.Seq[extent] {
	return func(yield func(extent) bool) {
		enc, pos := x.enc, wal.Pos(0)
		for len(enc) > 0 {
			d, n := binary.Uvarint(enc)
			l, m := binary.Uvarint(enc[n:])
			enc = enc[n+m:]
			pos += wal.Pos(d)
			if !yield(extent{pos, uint32(l)}) {
				return
			}
		}
	}
}

// parseExtents reads a list of n runs that came from the log; ok is false where
// it is not one.
func parseExtents(enc []byte, n uint64) (x extents, ok bool) {
	if n > uint64(len(enc)) {
		return x, false
	}
	rest := enc
	for range n {
		d, i := binary.Uvarint(rest)
		if i <= 0 || (d == 0 && x.n > 0) {
			return extents{}, false
		}
		l, j := binary.Uvarint(rest[i:])
		if j <= 0 || l > 1<<32-1 {
			return extents{}, false
		}
		rest = rest[i+j:]
		x.last += wal.Pos(d)
		x.n++
	}
	x.enc = enc
	return x, len(rest) == 0
}

// moved is the list with every position raised by base.
func (x *extents) moved(base wal.Pos) extents {
	var y extents
	for e := range x.all() {
		y.add(extent{e.pos + base, e.len})
	}
	return y
}

// first is the position of the first run; the list must not be empty.
func (x *extents) first() wal.Pos {
	d, _ := binary.Uvarint(x.enc)
	return wal.Pos(d)
}

// bytes is the length of all runs together.
func (x *extents) bytes() (n int64) {
	for e := range x.all() {
		n += int64(e.len)
	}
	return n
}

// merged is one list of two.
func merged(x, y *extents) (z extents) {
	all := slices.AppendSeq(make([]extent, 0, x.n+y.n), x.all())
	all = slices.AppendSeq(all, y.all())
	slices.SortFunc(all, func(a, b extent) int { return cmp.Compare(a.pos, b.pos) })
	for _, e := range all {
		z.add(e)
	}
	return z
}

// segCount says how many runs of something lie in one segment.
type segCount struct {
	segment uint32
	runs    int
}

// perSegment counts runs by segment. Positions come in rising order.
type perSegment []segCount

func (c *perSegment) add(segment uint32) {
	if n := len(*c); n > 0 && (*c)[n-1].segment == segment {
		(*c)[n-1].runs++
		return
	}
	*c = append(*c, segCount{segment, 1})
}

func (x *extents) perSegment() perSegment {
	var c perSegment
	for e := range x.all() {
		c.add(e.pos.Segment())
	}
	return c
}
