package buffer

import (
	"sort"
	"unique"

	"blobtail/buffer/runlog"
	"blobtail/buffer/wal"
)

// maxRecent is the number of runs that are remembered for followers, 24 bytes each.
const maxRecent = 1 << 18

// recent remembers the last runs for followers, in the order of the log, stored or not.
// Buffer.mu guards it.
//
// Its invariant: every run behind forgotten is in ring.
type recent struct {
	ring  []recentRun
	first int // the oldest run

	forgotten wal.Pos
	last      wal.Pos // nothing appended lies behind it
}

type recentRun struct {
	runlog.Extent
	service unique.Handle[string]
}

// newRecent returns an empty recent of a log. The runs of deleted segments are forgotten.
func newRecent(log *wal.Log) *recent {
	r := &recent{}
	if front := log.Front(); front > 1 {
		r.forgotten = wal.Pos(front)<<32 - 1
	}
	return r
}

// at is run i, counted from the oldest.
func (r *recent) at(i int) *recentRun { return &r.ring[(r.first+i)%len(r.ring)] }

// add remembers a run behind all others, in place of the oldest if there are too many.
func (r *recent) add(e runlog.Extent, service unique.Handle[string]) {
	r.last = max(r.last, e.End())
	if len(r.ring) < maxRecent {
		r.ring = append(r.ring, recentRun{e, service})
		return
	}
	oldest := r.at(0)
	r.forgotten = max(r.forgotten, oldest.Pos)
	*oldest = recentRun{e, service}
	r.first = (r.first + 1) % maxRecent
}

// since returns the number of the remembered runs at or before after.
func (r *recent) since(after wal.Pos) int {
	return sort.Search(len(r.ring), func(i int) bool { return r.at(i).Pos > after })
}
