package buffer

import (
	"sort"

	"blobtail/buffer/runlog"
	"blobtail/buffer/wal"
)

const (
	// recentBlock is the number of runs in a block of recent, 16 bytes each.
	recentBlock = 1 << 13
	// recentBlocks is the number of blocks that are remembered.
	recentBlocks = 33
)

// recent remembers the extents of the last runs for followers, in the order of the
// log, stored or not. Buffer.mu guards it.
//
// Its invariant: every run behind forgotten is in blocks, and all blocks but the last
// are full.
type recent struct {
	blocks  []*block
	numbers map[string]uint32 // of the services of the last block

	forgotten wal.Pos
	last      wal.Pos // nothing appended lies behind it
	synced    wal.Pos // the record appended last, 0 for none since the start
}

// block is runs with the names of their services.
type block struct {
	runs     []recentRun
	services []string
}

type recentRun struct {
	pos     wal.Pos
	len     uint32
	service uint32
}

// newRecent returns an empty recent. There may have been runs up to forgotten.
func newRecent(forgotten wal.Pos) *recent {
	return &recent{forgotten: forgotten, numbers: map[string]uint32{}}
}

// unknownBefore is the end of the deleted segments.
func unknownBefore(log *wal.Log) wal.Pos {
	if front := log.Front(); front > 1 {
		return wal.Pos(front)<<32 - 1
	}
	return 0
}

func (r *recent) len() int {
	n := len(r.blocks)
	if n == 0 {
		return 0
	}
	return (n-1)*recentBlock + len(r.blocks[n-1].runs)
}

// at is run i, counted from the oldest.
func (r *recent) at(i int) (runlog.Extent, string) {
	b := r.blocks[i/recentBlock]
	e := b.runs[i%recentBlock]
	return runlog.Extent{Pos: e.pos, Len: e.len}, b.services[e.service]
}

// appended notes a runs record at pos.
func (r *recent) appended(pos wal.Pos, payload int) {
	r.synced = pos
	r.last = pos + wal.Pos(payload)
}

// add remembers a run behind all others.
func (r *recent) add(e runlog.Extent, service string) {
	r.last = max(r.last, e.End())
	if r.len()%recentBlock == 0 {
		r.begin()
	}
	b := r.blocks[len(r.blocks)-1]
	n, known := r.numbers[service]
	if !known {
		n = uint32(len(b.services))
		r.numbers[service] = n
		b.services = append(b.services, service)
	}
	b.runs = append(b.runs, recentRun{e.Pos, e.Len, n})
}

// begin begins a block, in place of the oldest if there are too many.
func (r *recent) begin() {
	clear(r.numbers)
	if len(r.blocks) == recentBlocks {
		r.forgotten = max(r.forgotten, r.blocks[0].runs[recentBlock-1].pos)
		copy(r.blocks, r.blocks[1:])
		r.blocks = r.blocks[:recentBlocks-1]
	}
	r.blocks = append(r.blocks, &block{runs: make([]recentRun, 0, recentBlock)})
}

// since returns the number of the remembered runs at or before after.
func (r *recent) since(after wal.Pos) int {
	return sort.Search(r.len(), func(i int) bool {
		e, _ := r.at(i)
		return e.Pos > after
	})
}
