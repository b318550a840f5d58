package runlog

import (
	"slices"

	"github.com/zeebo/xxh3"

	"blobtail/record"
)

// A batch may have several runs of one origin: of a request that came again and was
// not recognised, of one that came with another outcome, or of a key that was used
// twice. A line of a later run that the batch has already is dropped, and a new one
// is kept under the origin. If another line has the same identity, both are kept,
// and the later one is known by the place of its run in the log. So a blob has each
// identity once, and only copies are dropped.

// lot is the decision on a line of such a run.
type lot byte

const (
	stands  lot = iota // it is known by the origin of its run
	copied             // the batch has it already
	renamed            // it is known by its run's place
)

// Lots are the decisions on the lines of a run, in their order; nil: all keep their origin.
type Lots []lot

// HasRenamed reports whether a line is known by its run's place.
func (l Lots) HasRenamed() bool { return slices.Contains(l, renamed) }

// Uncopied returns l for a reader that has not seen the lines that were kept first.
func (l Lots) Uncopied() Lots {
	l = slices.Clone(l)
	for i := range l {
		if l[i] == copied {
			l[i] = stands
		}
	}
	return l
}

// families decides on the runs of one batch, which come in the order of the log.
type families struct {
	first map[record.Origin]Extent // the first run of each origin
	lines map[record.Origin]family // only of origins with runs that are no copies
	again func(Extent) *Run        // reads a first run once more; nil if that fails
}

// begin starts a batch.
func (f *families) begin(again func(Extent) *Run) {
	if f.first == nil {
		f.first = map[record.Origin]Extent{}
	}
	clear(f.first)
	f.lines, f.again = nil, again
}

// join decides on a run; keep is false if the batch keeps none of its lines. An
// origin that is the place of a record belongs to this record alone.
func (f *families) join(r *Run) (lots Lots, keep bool) {
	if !r.own {
		return nil, true
	}
	at, ok := f.first[r.Origin]
	if !ok {
		f.first[r.Origin] = r.Extent
		return nil, true
	}
	first, all := f.again(at), f.lines[r.Origin]
	if first != nil && r.isCopyOf(first) {
		return nil, false
	}
	if all == nil {
		if f.lines == nil {
			f.lines = map[record.Origin]family{}
		}
		all = family{}
		f.lines[r.Origin] = all
		if first != nil {
			all.join(first)
		}
	}
	lots = all.join(r)
	return lots, lots == nil || slices.Contains(lots, stands) || lots.HasRenamed()
}

// family is the lines of a batch with one origin, by their indexes.
type family map[uint32]xxh3.Uint128

// join decides on the lines of a run of the family.
func (f family) join(r *Run) Lots {
	all := make(Lots, 0, r.Records)
	plain := true
	for rows := r.rows(); rows.next(); {
		h := xxh3.Hash128Seed(rows.line, uint64(rows.time))
		old, ok := f[rows.index]
		l := stands
		switch {
		case !ok:
			f[rows.index] = h
		case old == h:
			l = copied
		default:
			l = renamed
		}
		plain = plain && l == stands
		all = append(all, l)
	}
	if plain {
		return nil
	}
	return all
}

// split calls f for the run as its batch keeps it: for all of it, or for a run of the
// lines under its origin and for one of those that are known by its place.
func (r *Run) split(l Lots, f func(*Run) error) error {
	if l == nil {
		return f(r)
	}
	for _, want := range [2]lot{stands, renamed} {
		if slices.Contains(l, want) {
			part := r.only(l, want)
			if err := f(&part); err != nil {
				return err
			}
		}
	}
	return nil
}

// only is a run of the lines with one decision, under the origin that this gives.
func (r *Run) only(l Lots, want lot) Run {
	part := Run{Extent: r.Extent, Bin: r.Bin, Origin: r.Origin, Place: r.Place, own: true, places: true}
	if want == renamed {
		part.Origin = r.Place
	}
	next, i := uint32(0), -1
	for rows := r.rows(); rows.next(); {
		if i++; l[i] != want {
			continue
		}
		if part.Records == 0 {
			part.first, part.time0 = rows.index, rows.time
			next, part.last = part.first, part.time0
		}
		part.table = appendRow(part.table, rows.time-part.last, len(rows.line))
		part.table = appendPlace(part.table, rows.index, next)
		part.lines = append(part.lines, rows.line...)
		part.Records++
		next, part.last = rows.index+1, rows.time
	}
	return part
}
