package buffer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"blobtail/buffer/runlog"
)

// tick is how often ages, sizes and the disk are looked at.
const tick = 250 * time.Millisecond

// Run replays the log, cuts batches as they come of age and drives them through
// the sink, until ctx ends or the log fails. Nothing is flushed at the end: call
// Flush before. What is not stored stays in the log for the next start.
func (b *Buffer) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := b.replay(ctx); err != nil {
			cancel(err)
		}
	})
	for range b.o.Workers {
		wg.Go(func() { b.work(ctx) })
	}
	wg.Go(func() { b.park(ctx) })
	wg.Go(func() {
		<-ctx.Done()
		b.mu.Lock()
		b.closing = true
		b.wake.Broadcast()
		b.mu.Unlock()
	})
	err := b.watch(ctx)
	cancel(err)
	wg.Wait()
	b.dropOpen()
	if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return err
}

// watch owns the clock: it looks every tick at what has come of age. It returns
// when ctx ends, or with the error that the log failed with.
func (b *Buffer) watch(ctx context.Context) error {
	t := time.NewTicker(tick)
	defer t.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-b.log.Failed():
			return b.log.Err()
		case now := <-t.C:
			if n%4 == 0 {
				if err := b.look(); err != nil {
					return err
				}
			}
			b.mu.Lock()
			b.cutAged(now)
			b.wake.Broadcast() // what backs off may be due
			b.mu.Unlock()
		}
	}
}

// look sees to the log's disk: whether it is still there, and whether it is too
// full to take more. Of a full one all that can go must go, also what a segment
// that is not full holds.
func (b *Buffer) look() error {
	if err := b.log.Check(); err != nil {
		return err
	}
	if b.o.Full == nil {
		return nil
	}
	full := b.o.Full()
	switch was := b.full.Swap(full); {
	case full && !was:
		b.o.Log.Warn().Bool("full", full).Msg("the log, or its disk, is full: requests are refused, flushing goes on")
	case was && !full:
		b.o.Log.Info().Bool("full", full).Msg("the log has room again: requests are taken")
	}
	if full {
		b.letGo()
	}
	return nil
}

// cutAged cuts what the rules of age, pressure and demand ask for. b.mu is held.
func (b *Buffer) cutAged(now time.Time) {
	demand := now.Sub(b.demanded) >= time.Second
	front := uint32(0)
	if b.log.Size() > b.o.Soft {
		front = b.log.Front()
	}
	full := b.full.Load()
	for _, ob := range b.open {
		age := now.Sub(ob.since)
		wanted := demand && ob.wanted
		if wanted {
			b.demanded = now
		}
		holds := front != 0 && ob.runs.First().Segment() == front
		if wanted || holds || full || age >= b.o.MaxAge || (age >= b.o.Age && ob.bytes >= b.o.Min) {
			b.cut(ob)
		}
	}
}

// work takes batches from the queue, one after another, until ctx ends.
func (b *Buffer) work(ctx context.Context) {
	for {
		batch := b.take(ctx)
		if batch == nil {
			return
		}
		err := b.store(ctx, batch)
		if hopeless(err) {
			if err = b.rescue(ctx, batch, err); err == nil {
				b.rescued(batch)
				continue
			}
		}
		b.settle(ctx, batch, err)
	}
}

// rescued is settle for a batch that is no more.
func (b *Buffer) rescued(batch *Batch) {
	b.mu.Lock()
	b.services.giveBack(batch.bin.Service)
	b.wake.Broadcast()
	b.mu.Unlock()
	b.letGo()
}

// letGo releases what it can of the log.
func (b *Buffer) letGo() {
	if err := b.release(); err != nil {
		b.o.Log.Error().Err(err).Msg("cannot let go of the log")
	}
}

// take waits for a batch that is due. It returns nil when ctx has ended.
func (b *Buffer) take(ctx context.Context) *Batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		if ctx.Err() != nil || b.closing {
			return nil
		}
		if batch := b.due(time.Now()); batch != nil {
			batch.taken = true
			return batch
		}
		b.wake.Wait()
	}
}

// due is the oldest batch that may be tried, or the youngest of a service in
// trouble: its oldest ones hold the front of the log, and what is being tried
// cannot be parked. b.mu is held.
func (b *Buffer) due(now time.Time) *Batch {
	may := func(batch *Batch, inTrouble bool) bool {
		return !batch.taken && !batch.aside && !now.Before(batch.notBefore) &&
			b.services.inTrouble(batch.bin.Service) == inTrouble && b.services.take(batch.bin.Service, now)
	}
	for _, batch := range b.queue {
		if may(batch, false) {
			return batch
		}
	}
	for _, batch := range slices.Backward(b.queue) {
		if may(batch, true) {
			return batch
		}
	}
	return nil
}

// store makes the batch's record durable, which makes its runs durable too
// (segments are synced when they are rolled), has the sink write it, and notes
// that in the log; or that it has expired, which ends it as well.
func (b *Buffer) store(ctx context.Context, batch *Batch) error {
	if err := b.log.Sync(batch.named.Record); err != nil {
		return fmt.Errorf("sync the batch record: %w", err)
	}
	start := time.Now()
	err := b.write(ctx, batch, start)
	flags := byte(0)
	switch batch.expired = errors.Is(err, ErrExpired); {
	case batch.expired:
		flags = runlog.CommitExpired
	case err != nil:
		return err
	default:
		b.m.store.Observe(time.Since(start).Seconds())
	}
	// Its runs may go only when this is durable; without it the batch is tried
	// again, and found stored.
	pos, err := b.log.AppendReserved(runlog.TypeCommit, runlog.AppendCommit(nil, batch.named.ID, flags))
	if err != nil {
		return fmt.Errorf("note in the log that a batch is done with: %w", err)
	}
	b.mu.Lock()
	b.needed = max(b.needed, pos)
	b.mu.Unlock()
	return nil
}

// write is one attempt, which may be broken off.
func (b *Buffer) write(ctx context.Context, batch *Batch, begun time.Time) error {
	ctx, breakOff := context.WithCancelCause(ctx)
	defer breakOff(nil)
	b.mu.Lock()
	batch.begun, batch.breakOff = begun, breakOff
	b.mu.Unlock()
	err := b.sinkWrite(ctx, batch)
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, errHolds) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// sinkWrite calls the sink. A batch over which that panics is set aside until the
// next start tries it again; the other batches are stored meanwhile.
func (b *Buffer) sinkWrite(ctx context.Context, batch *Batch) (err error) {
	defer recovered(&err, ErrAside)
	return b.sink.Write(ctx, batch)
}

// settle takes a batch that is stored, or has expired, out of the queue and lets
// go of the log behind it, or puts it back to be tried later.
func (b *Buffer) settle(ctx context.Context, batch *Batch, err error) {
	b.mu.Lock()
	batch.taken = false
	b.services.giveBack(batch.bin.Service)
	if err != nil {
		b.putBack(ctx, batch, err)
		b.mu.Unlock()
		return
	}
	b.remove(batch)
	b.forget(batch.named.Place)
	b.storedMessages(batch.messages)
	if batch.expired {
		b.noteExpired(batch)
	} else {
		b.noteStored(batch)
	}
	close(batch.fate.done)
	b.wake.Broadcast()
	b.mu.Unlock()
	b.letGo()
}

// noteStored counts a batch. b.mu is held.
func (b *Buffer) noteStored(batch *Batch) {
	b.m.stored.Inc()
	b.services.worked(batch.bin.Service)
	if batch.attempts > 0 {
		// The store is back: the others need not wait for their turns.
		b.hurry()
		b.o.Log.Info().Str("service", batch.Service()).Int("attempts", batch.attempts).Msg("a batch that failed is stored")
	}
}

// noteExpired counts a batch that will not be stored. That says nothing of whether
// others could be. b.mu is held.
func (b *Buffer) noteExpired(batch *Batch) {
	b.m.batchesExpired.Inc()
	b.m.expired.Add(float64(batch.named.Records))
	b.o.Log.Info().Str("service", batch.Service()).Time("period", batch.Period()).Int("records", batch.named.Records).
		Msg("a batch has expired before it was stored; it is not kept")
}

// remove takes a batch out of the queue. b.mu is held.
func (b *Buffer) remove(batch *Batch) {
	if i := slices.Index(b.queue, batch); i >= 0 {
		b.queue = slices.Delete(b.queue, i, i+1)
	}
}

// hurry has all that is queued tried at once. b.mu is held.
func (b *Buffer) hurry() {
	for _, batch := range b.queue {
		batch.notBefore = time.Time{}
	}
	b.services.hurry()
}

// keep says that the log holds runs that are not settled. b.mu is held.
func (b *Buffer) keep(p runlog.Place) {
	for _, s := range p.Runs {
		b.pending[s.Segment] += s.Runs
	}
	b.held += p.Held
}

// forget says that runs are settled. b.mu is held.
func (b *Buffer) forget(p runlog.Place) {
	b.held -= p.Held
	for _, s := range p.Runs {
		if b.pending[s.Segment] -= s.Runs; b.pending[s.Segment] == 0 {
			delete(b.pending, s.Segment)
		}
	}
}

// idleRoll is the size from which a log whose records are all stored starts a new
// segment, so that the disk is free and the next start has little to read.
const idleRoll = 4 << 20

// release deletes segments from the front of the log while all their runs are
// settled. The commits are made durable first: without them a replay would look
// for runs that are gone.
func (b *Buffer) release() error {
	b.releasing.Lock()
	defer b.releasing.Unlock()
	for {
		b.mu.Lock()
		front := b.log.Front()
		active := front == b.log.Active()
		free := b.replayed && b.unused(front)
		end := b.needed
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
		if b.settledIn(front) {
			if err := b.log.RemoveFront(); err != nil {
				return err
			}
		}
	}
}

// settledIn reports whether a segment that is rolled holds nothing that is still
// needed: an append may have come before the roll.
func (b *Buffer) settledIn(segment uint32) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.unused(segment)
}

// unused reports whether no run of a segment is still to be stored, and no
// snapshot reads from it. b.mu is held.
func (b *Buffer) unused(segment uint32) bool {
	return b.pending[segment] == 0 && b.pinned[segment] == 0
}

// Left says what a Flush that ran out of time leaves in the log.
type Left struct {
	Batches int // also those that could not be cut
	Records int
	Bytes   int64
	Aside   int // batches that cannot be rebuilt; see the log and docs
}

// Flush cuts everything open and waits until all that was accepted before is
// stored. When ctx ends first it says what is left. Batches that cannot be
// rebuilt from the log are not waited for; they are counted in Left, with an
// error.
func (b *Buffer) Flush(ctx context.Context) (Left, error) {
	b.mu.Lock()
	stop := context.AfterFunc(ctx, func() {
		b.mu.Lock()
		b.wake.Broadcast()
		b.mu.Unlock()
	})
	defer stop()
	for !b.replayed && ctx.Err() == nil && !b.closing {
		b.wake.Wait()
	}
	for _, ob := range b.open {
		b.cut(ob)
	}
	uncut := slices.Collect(maps.Values(b.open))
	batches := append([]*Batch(nil), b.queue...)
	b.hurry()
	b.wake.Broadcast()
	b.mu.Unlock()

	for _, batch := range batches {
		select {
		case <-batch.fate.done:
		case <-ctx.Done():
		}
	}
	left := b.left(batches, uncut)
	switch {
	case ctx.Err() != nil && (left.Batches > 0 || !b.Replayed()):
		return left, ctx.Err()
	case len(uncut) > 0:
		return left, errors.New("the log takes no batch records; the disk may be full")
	case left.Aside > 0:
		return left, fmt.Errorf("%d batches cannot be rebuilt from the log and are set aside", left.Aside)
	}
	return left, nil
}

// left counts those of batches that are not stored, and those of uncut that are
// still open.
func (b *Buffer) left(batches []*Batch, uncut []*openBatch) Left {
	b.mu.Lock()
	defer b.mu.Unlock()
	var l Left
	for _, batch := range batches {
		select {
		case <-batch.fate.done:
			if !batch.aside {
				continue
			}
			l.Aside++
		default:
		}
		l.Batches++
		l.Records += batch.named.Records
		l.Bytes += batch.named.Bytes
	}
	for _, ob := range uncut {
		if b.open[ob.bin] == ob {
			l.Batches++
			l.Records += ob.records
			l.Bytes += ob.bytes
		}
	}
	return l
}

// Replayed reports whether all that a start found in the log has been taken up.
func (b *Buffer) Replayed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.replayed
}
