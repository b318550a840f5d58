package buffer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"blobtail/record"
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
	at      extent     // of the batch record's payload, which holds the list of runs
	runs    perSegment // how many runs hold which segment
	fate    *fate
	since   time.Time // arrival of its oldest record, or the start that found it

	// The rest belongs to the queue; b.mu guards it.
	taken     bool
	aside     bool // cannot be rebuilt; never given out again
	attempts  int
	notBefore time.Time
	lastErr   string
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
	var l *loader
	select {
	case l = <-b.b.loaders:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { b.b.loaders <- l }()
	payload := make([]byte, b.at.len)
	if err := readLog(b.b.log, payload, b.at.pos, b.id); err != nil {
		return err
	}
	rec, err := parseBatch(payload)
	if err != nil || rec.id != b.id {
		return &RotError{b.id, fmt.Sprintf("its record reads as %x: %v", rec.id, err)}
	}
	if err := l.load(b.b.log, &rec); err != nil {
		return err
	}
	for i := range l.entries {
		e := &l.entries[i]
		if err := f(l.raw[e.off:e.off+e.len], e.time, l.origins[e.rank], e.index); err != nil {
			return err
		}
	}
	return nil
}
