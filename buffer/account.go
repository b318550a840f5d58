package buffer

import (
	"errors"

	"blobtail/buffer/runlog"
	"blobtail/buffer/wal"
)

// account records which segments of the log are needed. Buffer.mu guards it.
//
// Its invariant: unstored counts by segment the runs of the open batches and of the
// queued batches, a copy as one, and held is the length of these runs. A segment without
// such runs and without pins may be deleted, once the log is durable up to settled.
// Without the commit a replay would look for deleted runs.
type account struct {
	unstored map[uint32]int
	held     int64
	pinned   map[uint32]int // snapshots that need a segment and all behind it
	settled  wal.Pos        // the last commit or copy
}

// add counts runs of a segment. Negative numbers subtract.
func (a *account) add(segment uint32, runs int, bytes int64) {
	a.held += bytes
	if a.unstored[segment] += runs; a.unstored[segment] == 0 {
		delete(a.unstored, segment)
	}
}

// keep counts the runs of a batch.
func (a *account) keep(p runlog.Place) { a.addBatch(p, 1) }

// drop counts the runs of a batch no longer.
func (a *account) drop(p runlog.Place) { a.addBatch(p, -1) }

func (a *account) addBatch(p runlog.Place, times int) {
	a.held += p.Held * int64(times)
	for _, s := range p.Runs {
		a.add(s.Segment, s.Runs*times, 0)
	}
}

// unused reports whether nothing needs a segment.
func (a *account) unused(segment uint32) bool {
	return a.unstored[segment] == 0 && a.pinned[segment] == 0
}

// idleRoll is the size at which a log with all records stored starts a new segment. That
// frees the disk, and the next start has little to read.
const idleRoll = 4 << 20

// release deletes segments from the front of the log while nothing needs them. The
// commits are made durable first.
func (b *Buffer) release() error {
	b.releasing.Lock()
	defer b.releasing.Unlock()
	for {
		b.mu.Lock()
		front := b.log.Front()
		active := front == b.log.Active()
		free := b.replayed && b.account.unused(front)
		end := b.account.settled
		b.mu.Unlock()
		if free && active && (b.log.Size() > idleRoll || b.full.Load()) {
			if err := b.log.Roll(); err != nil {
				return err
			}
			active = front == b.log.Active()
		}
		if !free || active {
			return nil
		}
		if end != 0 {
			if err := b.log.Sync(end); err != nil {
				return err
			}
		}
		if b.stillUnused(front) {
			if err := b.log.RemoveFront(); err != nil {
				return err
			}
		}
	}
}

// stillUnused checks again a segment that has been rolled since: an append may have come
// before.
func (b *Buffer) stillUnused(segment uint32) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.account.unused(segment)
}

// releaseLogged releases as much of the log as possible.
func (b *Buffer) releaseLogged() {
	if err := b.release(); err != nil && !errors.Is(err, wal.ErrClosed) {
		b.o.Log.Error().Err(err).Msg("cannot release the log")
	}
}
