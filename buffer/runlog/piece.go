package runlog

import (
	"fmt"
	"hash/crc32"
	"iter"
	"slices"

	"blobtail/buffer/wal"
)

// piece is some neighbouring lines of a run that is long and wide, without their bytes.
// A run is in the order of time, so its pieces are narrow.
type piece struct {
	Run
	tableAt, tableLen uint32 // of its rows, from the start of the run
	linesAt, linesLen uint32
	sum               uint32 // CRC-32C of both: the run's own covers all of it
}

func (p *piece) size() int { return int(p.tableLen + p.linesLen) }

// pieces yields the pieces of a run, with at least so many bytes of lines but the last.
func (r *Run) pieces(least int) iter.Seq[*piece] {
	return func(yield func(*piece) bool) {
		lines := r.Len - uint32(len(r.lines))
		table := lines - uint32(len(r.table))
		rows, row, at := r.rows(), 0, 0
		for rows.left > 0 {
			p := &piece{Run: *r, tableAt: table + uint32(row), linesAt: lines + uint32(at)}
			// A row has the distance from the row before.
			p.time0, p.first, p.Records = rows.time, rows.index+1, 0
			from, size := row, 0
			for size < least && rows.next() {
				p.Records++
				size += len(rows.line)
			}
			row = len(r.table) - len(rows.d.rest)
			p.last = rows.time
			p.tableLen, p.linesLen = uint32(row-from), uint32(size)
			p.sum = p.checksum(r.table[from:row], r.lines[at:at+size])
			p.table, p.lines = nil, nil
			at += size
			if !yield(p) {
				return
			}
		}
	}
}

func (p *piece) checksum(table, lines []byte) uint32 {
	return crc32.Update(crc32.Checksum(table, castagnoli), castagnoli, lines)
}

// piece reads a piece as a run.
func (r *Reader) piece(p *piece) (*Run, error) {
	run := &r.run
	*run = p.Run
	table, err := r.fill(p.Pos+wal.Pos(p.tableAt), int64(p.tableLen))
	if err != nil {
		return nil, err
	}
	run.table = slices.Clone(table)
	if run.lines, err = r.fill(p.Pos+wal.Pos(p.linesAt), int64(p.linesLen)); err != nil {
		return nil, err
	}
	if p.checksum(run.table, run.lines) != p.sum {
		return nil, fmt.Errorf("%w: checksum differs", errRun)
	}
	return run, nil
}
