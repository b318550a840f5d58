package runlog

import (
	"fmt"
	"slices"

	"blobtail/buffer/wal"
)

// RotError means that a batch cannot be rebuilt from the log. A run of it is damaged or
// missing, or its runs do not match the sums in its record.
type RotError struct {
	Batch  [16]byte
	Reason string
}

// Error names the batch and the reason.
func (e *RotError) Error() string {
	return fmt.Sprintf("batch %x cannot be rebuilt from the log: %s", e.Batch, e.Reason)
}

// Place is the place of a batch in the log: its runs where they were first written, or a
// copy.
type Place struct {
	Record wal.Pos    // position of the batch or parked record
	Runs   PerSegment // number of runs in each segment
	Held   int64      // bytes of the runs
	base   wal.Pos    // the positions in the record count from here; 0 but for a copy
	at     Extent     // the bytes that ParseBatch parses
}

// PlaceOfBatch is the place of a batch with a batch record at pos.
func PlaceOfBatch(pos wal.Pos, payload int, runs *Extents) Place {
	p := Place{Record: pos, at: Extent{pos, uint32(payload)}}
	for e := range runs.All() {
		p.Hold(e)
	}
	return p
}

// PlaceOfCopy is the place of a parked record. Its runs begin at head, and it
// counts as one run of its segment.
func PlaceOfCopy(pos wal.Pos, head, payload int) Place {
	return Place{
		Record: pos, at: Extent{pos + 4, uint32(head - 4)}, base: pos + wal.Pos(head),
		Runs: PerSegment{{pos.Segment(), 1}}, Held: int64(payload - head),
	}
}

// Hold counts a run. Runs come in rising order.
func (p *Place) Hold(e Extent) {
	p.Runs.add(e.Pos.Segment())
	p.Held += int64(e.Len)
}

// IsCopy reports whether the place is a parked record.
func (p *Place) IsCopy() bool { return p.base != 0 }

// MayHold reports whether a run of the request at pos may be in the batch. A copy does
// not record the first places of its runs.
func (p *Place) MayHold(pos wal.Pos) bool {
	return p.IsCopy() || slices.ContainsFunc(p.Runs, func(s SegCount) bool { return s.Segment == pos.Segment() })
}

// ReadRecord reads the record of a batch from the log. The error is a [*RotError]
// if the log no longer has it.
func (p *Place) ReadRecord(log *wal.Log, id [16]byte) (rec BatchRecord, err error) {
	payload := make([]byte, p.at.Len)
	if err := log.ReadAt(payload, p.at.Pos); err != nil {
		return rec, rot(id, err)
	}
	rec, err = ParseBatch(payload)
	if err != nil || rec.ID != id {
		return rec, &RotError{id, fmt.Sprintf("its record reads as %x: %v", rec.ID, err)}
	}
	if p.IsCopy() {
		rec.Runs = rec.Runs.moved(p.base)
	}
	return rec, nil
}

// rot returns the error for a batch that the log cannot return.
func rot(id [16]byte, err error) error {
	if Rotten(err) {
		return &RotError{id, err.Error()}
	}
	return fmt.Errorf("read the log for batch %x: %w", id, err)
}

// SegCount is the number of runs of a batch in one segment.
type SegCount struct {
	Segment uint32
	Runs    int
}

// PerSegment counts runs by segment, in rising order.
type PerSegment []SegCount

func (c *PerSegment) add(segment uint32) {
	if n := len(*c); n > 0 && (*c)[n-1].Segment == segment {
		(*c)[n-1].Runs++
		return
	}
	*c = append(*c, SegCount{segment, 1})
}
