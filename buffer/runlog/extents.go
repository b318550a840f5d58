package runlog

import (
	"cmp"
	"encoding/binary"
	"iter"
	"math"
	"slices"

	"blobtail/buffer/wal"
)

// Extent is the place of one run in the log.
type Extent struct {
	Pos wal.Pos
	Len uint32
}

// End is the position behind the run.
func (e Extent) End() wal.Pos { return e.Pos + wal.Pos(e.Len) }

// Extents is a list of runs in rising order of position. It is kept as the varints
// that a batch record holds, about five bytes a run: a backlog costs disk and not
// memory. The zero value is empty.
type Extents struct {
	enc  []byte
	last wal.Pos
	n    int
}

// Len is the number of runs.
func (x *Extents) Len() int { return x.n }

// Add appends a run behind all others.
func (x *Extents) Add(e Extent) {
	x.enc = binary.AppendUvarint(x.enc, uint64(e.Pos-x.last))
	x.enc = binary.AppendUvarint(x.enc, uint64(e.Len))
	x.last = e.Pos
	x.n++
}

// Fixed returns the current list. It shares memory with x, and stays the same when x
// grows.
func (x *Extents) Fixed() Extents {
	return Extents{x.enc[:len(x.enc):len(x.enc)], x.last, x.n}
}

// All yields the runs in order.
func (x *Extents) All() iter.Seq[Extent] {
	return func(yield func(Extent) bool) {
		pos := wal.Pos(0)
		for d := (decoder{x.enc, true}); len(d.rest) > 0; {
			pos += wal.Pos(d.uvarint())
			if !yield(Extent{pos, uint32(d.uvarint())}) {
				return
			}
		}
	}
}

// parseExtents reads a list of n runs that came from the log; ok is false for an
// invalid one.
func parseExtents(enc []byte, n uint64) (x Extents, ok bool) {
	d := decoder{enc, true}
	for x.enc = enc; d.ok && uint64(x.n) < n; x.n++ {
		gap, l := d.uvarint(), d.uvarint()
		if (gap == 0 && x.n > 0) || l > math.MaxUint32 {
			return Extents{}, false
		}
		x.last += wal.Pos(gap)
	}
	return x, d.ok && len(d.rest) == 0
}

// moved is the list with every position raised by base.
func (x *Extents) moved(base wal.Pos) (y Extents) {
	for e := range x.All() {
		y.Add(Extent{e.Pos + base, e.Len})
	}
	return y
}

// Merged returns one list of the runs of two.
func Merged(x, y *Extents) (z Extents) {
	all := slices.AppendSeq(make([]Extent, 0, x.n+y.n), x.All())
	all = slices.AppendSeq(all, y.All())
	slices.SortFunc(all, func(a, b Extent) int { return cmp.Compare(a.Pos, b.Pos) })
	for _, e := range all {
		z.Add(e)
	}
	return z
}
