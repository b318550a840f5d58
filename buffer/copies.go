package buffer

import (
	"bytes"

	"github.com/zeebo/xxh3"

	"blobtail/record"
)

// A batch may have several runs of one origin: of a request that came again and was
// not recognised, that had another outcome, or of a key that was used twice. What of
// the later ones stands in the batch already is dropped, what is new stands beside
// the first. Where another record has the same identity both are kept, and the later
// one is known by the place of its run in the log: an identity stands in a blob
// once only, and nothing is dropped that is not a copy.

// lot is what becomes of a line of such a run.
type lot byte

const (
	stands  lot = iota // under the origin of its run
	copied             // it stands in the batch already
	renamed            // it is known by its run's place
)

// lots are those of the lines of a run, in their order; nil: all stand.
type lots []lot

// family is the lines of a batch that stand under one origin, by their indexes.
type family map[uint32]xxh3.Uint128

// join decides on the lines of a run of the family.
func (f family) join(r *run) lots {
	all := make(lots, 0, r.records)
	plain := true
	for rows := r.rows(); rows.next(); {
		h := rows.sum()
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

// isCopyOf reports whether two runs of one origin are the same.
func (r *run) isCopyOf(f *run) bool {
	return f.first == r.first && f.places == r.places && f.records == r.records && f.time0 == r.time0 &&
		bytes.Equal(f.table, r.table) && bytes.Equal(f.lines, r.lines)
}

// rows goes through the lines of a run.
type rows struct {
	d      decoder
	places bool
	left   int
	rest   []byte // the lines that follow

	time  int64
	index uint32
	line  []byte
}

func (r *run) rows() *rows {
	return &rows{d: decoder{r.table, true}, places: r.places, left: r.records, rest: r.lines, time: r.time0, index: r.first - 1}
}

// next goes to the next line; false when there is none.
func (w *rows) next() bool {
	if w.left == 0 {
		return false
	}
	w.left--
	w.time += int64(w.d.uvarint())
	n := int(w.d.uvarint())
	w.index++
	if w.places {
		w.index = w.d.index(w.index)
	}
	w.line, w.rest = w.rest[:n], w.rest[n:]
	return true
}

// sum is that of the line and its time.
func (w *rows) sum() xxh3.Uint128 { return xxh3.Hash128Seed(w.line, uint64(w.time)) }

// only is a run of the lines that have a lot.
func (r *run) only(l lots, want lot, origin record.Origin) run {
	part := run{origin: origin, key: r.key, places: true}
	next, last := uint32(0), int64(0)
	i := -1
	for rows := r.rows(); rows.next(); {
		if i++; l[i] != want {
			continue
		}
		if part.records == 0 {
			part.first, part.time0 = rows.index, rows.time
			next, last = part.first, part.time0
		}
		part.table = appendRow(part.table, rows.time-last, len(rows.line))
		part.table = appendPlace(part.table, rows.index, next)
		part.lines = append(part.lines, rows.line...)
		part.records++
		next, last = rows.index+1, rows.time
	}
	part.last = last
	return part
}
