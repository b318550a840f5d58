package buffer

import (
	"fmt"

	"blobtail/buffer/runlog"
	"blobtail/buffer/wal"
	"blobtail/record"
)

// Tail sees everything that is accepted, at once.
type Tail interface {
	// Accepted is called for each run of a request when the run is in the log, by the
	// goroutine that called Accept and before that returns. It is not called for repeats.
	// The run is not durable yet: [Buffer.Durable] of mark waits for that. The run and
	// its request are reused afterwards, so the tail must not keep parts of them.
	Accepted(mark uint64, run *record.Run)
}

// Durable returns nil when the runs that [Tail] saw with this mark are durable.
func (b *Buffer) Durable(mark uint64) error {
	if err := b.log.Sync(wal.Pos(mark)); err != nil {
		return fmt.Errorf("sync the log up to a mark: %w", err)
	}
	return nil
}

// originAt is the origin of a request's records, the same that a loader gives to its
// runs; pos is its record. b.mu is held: the segment cannot be deleted before the runs
// are in a batch.
func (b *Buffer) originAt(r *record.Request, pos wal.Pos) record.Origin {
	if !r.Origin.IsZero() {
		return r.Origin
	}
	segment, _ := b.log.Segment(pos.Segment())
	return runlog.PlaceOrigin(pos, segment)
}

// tell shows Tail the runs of a request that e has just encoded.
func (b *Buffer) tell(r *record.Request, e *runlog.Encoder, pos wal.Pos, origin record.Origin) {
	told := record.Run{Origin: origin, Request: r}
	for i := range e.Runs {
		run := &e.Runs[i]
		told.Service, told.Order = run.Service, e.Lines(run)
		b.o.Tail.Accepted(uint64(pos), &told)
	}
}
