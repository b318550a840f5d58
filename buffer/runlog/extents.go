package runlog

import (
	"cmp"
	"encoding/binary"
	"iter"
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
		enc, pos := x.enc, wal.Pos(0)
		for len(enc) > 0 {
			d, n := binary.Uvarint(enc)
			l, m := binary.Uvarint(enc[n:])
			enc = enc[n+m:]
			pos += wal.Pos(d)
			if !yield(Extent{pos, uint32(l)}) {
				return
			}
		}
	}
}

// parseExtents reads a list of n runs that came from the log; ok is false for an
// invalid one.
func parseExtents(enc []byte, n uint64) (x Extents, ok bool) {
	if n > uint64(len(enc)) {
		return x, false
	}
	rest := enc
	for range n {
		d, i := binary.Uvarint(rest)
		if i <= 0 || (d == 0 && x.n > 0) {
			return Extents{}, false
		}
		l, j := binary.Uvarint(rest[i:])
		if j <= 0 || l > 1<<32-1 {
			return Extents{}, false
		}
		rest = rest[i+j:]
		x.last += wal.Pos(d)
		x.n++
	}
	x.enc = enc
	return x, len(rest) == 0
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
