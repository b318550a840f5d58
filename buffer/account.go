package buffer

import (
	"errors"
	"math"
	"time"

	"blobtail/buffer/wal"
)

// needed reports whether an unstored run is in the front segment, or a snapshot pins it.
// b.mu is held.
func (b *Buffer) needed(front uint32) bool {
	return b.pinned[front] > 0 || len(b.index.segments[front]) > 0
}

// idleRoll is the size at which a log with all records stored starts a new segment. That
// frees the disk, and the next start has little to read.
const idleRoll = 4 << 20

// Needed returns a position before which the log has no unstored run, 0 if that is not known. Batches
// that were before it may have been copied to its end, at or before copied, which is durable.
func (b *Buffer) Needed() (first, copied wal.Pos, err error) {
	b.mu.Lock()
	copied = b.settled
	if first = b.log.Durable(); !b.Replayed() {
		first = 0
	}
	front := uint32(math.MaxUint32)
	for n := range b.index.segments {
		front = min(front, n)
	}
	for batch := range b.index.segments[front] {
		first = min(first, batch.named.First)
	}
	b.mu.Unlock()
	if copied != 0 {
		err = b.log.Sync(copied)
	}
	return first, copied, err
}

// release deletes segments from the front of the log while nothing needs them. The
// commits are made durable first: without them a replay would look for deleted runs.
func (b *Buffer) release() error {
	b.releasing.Lock()
	defer b.releasing.Unlock()
	for {
		b.mu.Lock()
		front := b.log.Front()
		active := front == b.log.Active()
		free := b.Replayed() && !b.needed(front)
		end, short := b.settled, b.short(time.Now())
		b.mu.Unlock()
		if !free || active && b.log.Size() <= idleRoll && !short {
			return nil
		}
		if active {
			if err := b.log.Roll(); err != nil || front == b.log.Active() {
				return err
			}
			continue // an append may have come before
		}
		if end != 0 {
			if err := b.log.Sync(end); err != nil {
				return err
			}
		}
		if err := b.log.RemoveFront(); err != nil {
			return err
		}
	}
}

// releaseLogged releases as much of the log as possible.
func (b *Buffer) releaseLogged() {
	if err := b.release(); err != nil && !errors.Is(err, wal.ErrClosed) {
		b.o.Log.Error().Err(err).Msg("cannot release the log")
	}
}
