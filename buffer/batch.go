package buffer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"blobtail/record"
	"blobtail/wal"
)

// Batch is what a [Sink] stores: the lines of one service and period that one
// batch record names. Its identity and content never change from the moment it
// is cut, over any number of attempts and restarts.
type Batch struct {
	b       *Buffer
	id      [16]byte
	key     key
	records int
	bytes   int64
	pin     []byte
	span    span // all times of its lines are in it; b.mu guards it
	place
	messages []*message // one for each run that a message brought
	fate     *fate
	since    time.Time // arrival of its oldest record

	// The rest belongs to the queue; b.mu guards it.
	taken     bool
	aside     bool // cannot be rebuilt; never given out again
	expired   bool // as the sink said last; the worker that has it sets it
	attempts  int
	notBefore time.Time
	lastErr   string
	parkAfter time.Time               // no copy before, because the last try failed
	begun     time.Time               // of the attempt under way
	breakOff  context.CancelCauseFunc // ends it
}

// place is where the log has a batch: its runs where they came in, or a copy.
type place struct {
	record wal.Pos    // the batch or parked record
	at     extent     // the bytes that parseBatch takes
	base   wal.Pos    // what the positions in these count from; 0 but for a copy
	runs   perSegment // how many runs hold which segment
	held   int64      // bytes of the runs
}

// placeOfBatch is where a batch record just cut has its runs.
func placeOfBatch(pos wal.Pos, payload int, runs *extents) place {
	return place{record: pos, at: extent{pos, uint32(payload)}, runs: runs.perSegment(), held: runs.bytes()}
}

// placeOfCopy is the place of a parked record, whose runs begin at head and which
// is one thing to the segment that it lies in.
func placeOfCopy(pos wal.Pos, head, payload int) place {
	return place{
		record: pos, at: extent{pos + 4, uint32(head - 4)}, base: pos + wal.Pos(head),
		runs: perSegment{{pos.Segment(), 1}}, held: int64(payload - head),
	}
}

// mayHold reports whether a run of the request at pos may be in the batch. Of a
// copy nobody remembers where its runs came in.
func (p *place) mayHold(pos wal.Pos) bool {
	return p.base != 0 || slices.ContainsFunc(p.runs, func(s segCount) bool { return s.segment == pos.Segment() })
}

// ID is the random identity of the batch.
func (b *Batch) ID() [16]byte { return b.id }

// Service is the service of all its lines.
func (b *Batch) Service() string { return b.key.service }

// Period is the start of the slice of event time that all its lines lie in.
func (b *Batch) Period() time.Time { return periodTime(b.key.period) }

// Pin is what the sink's Plan returned, or what it moved on to since.
func (b *Batch) Pin() []byte { return b.pin }

// Attempts is how many times Write has failed for this batch since the start.
func (b *Batch) Attempts() int { return b.attempts }

// Walk moves the pin on. Nothing is recorded: after a restart the sink starts at
// the first name again, so it must be able to walk the same way and find itself.
func (b *Batch) Walk(pin []byte) { b.pin = slices.Clone(pin) }

// Each reads the batch from the log and calls f for its lines in the order of
// (time, origin, index), each with its newline. A line is valid during the call.
// The error is a [*RotError] when the log no longer holds the batch as it was
// cut, else what f or reading returned.
func (b *Batch) Each(ctx context.Context, f func(line []byte, t int64, origin record.Origin, index uint32) error) error {
	return b.loaded(ctx, func(l *loader, rec *batchRecord) error {
		if err := l.load(b.b.log, rec); err != nil {
			return err
		}
		b.b.note(l.renamed)
		for i := range l.entries {
			e := &l.entries[i]
			if err := f(l.raw[e.off:e.off+e.len], e.time, l.origins[e.rank], e.index); err != nil {
				return err
			}
		}
		return nil
	})
}

// loaded calls f with a loader and with the batch's record as the log has it.
func (b *Batch) loaded(ctx context.Context, f func(*loader, *batchRecord) error) error {
	var l *loader
	select {
	case l = <-b.b.loaders:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { b.b.loaders <- l }()
	rec, err := b.readRecord()
	if err != nil {
		return err
	}
	return f(l, &rec)
}

// readRecord reads the batch's record from the log.
func (b *Batch) readRecord() (rec batchRecord, err error) {
	payload := make([]byte, b.at.len)
	if err := readLog(b.b.log, payload, b.at.pos, b.id); err != nil {
		return rec, err
	}
	rec, err = parseBatch(payload)
	if err != nil || rec.id != b.id {
		return rec, &RotError{b.id, fmt.Sprintf("its record reads as %x: %v", rec.id, err)}
	}
	if b.base != 0 {
		rec.runs = rec.runs.moved(b.base)
	}
	return rec, nil
}
