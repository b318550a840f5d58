package runlog

import (
	"fmt"

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
	Record wal.Pos // position of the batch or parked record; 0: it is not written yet
	First  wal.Pos // position of the first run; 0: there is none
	Held   int64   // bytes of the runs
	base   wal.Pos // the positions in the record count from here; 0 but for a copy
	at     Extent  // the bytes that ParseBatch parses
}

// PlaceOfCopy is the place of a parked record. Its runs begin at head.
func PlaceOfCopy(pos wal.Pos, head, payload int) Place {
	return Place{
		Record: pos, at: Extent{pos + 4, uint32(head - 4)}, base: pos + wal.Pos(head),
		First: pos, Held: int64(payload - head),
	}
}

// Hold adds a run.
func (p *Place) Hold(e Extent) {
	if p.First == 0 || e.Pos < p.First {
		p.First = e.Pos
	}
	p.Held += int64(e.Len)
}

// CutAt adds the batch record: its payload is at pos, and has so many bytes.
func (p *Place) CutAt(pos wal.Pos, payload int) { p.Record, p.at = pos, Extent{pos, uint32(payload)} }

// IsCopy reports whether the place is a parked record.
func (p *Place) IsCopy() bool { return p.base != 0 }

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
