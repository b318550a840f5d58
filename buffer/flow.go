package buffer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"blobtail/buffer/runlog"
)

// tick is how often ages, sizes and the disk are checked.
const tick = 250 * time.Millisecond

// Run replays the log, cuts the batches that are due and drives them through the sink,
// until ctx ends or the log fails. It does not flush at the end: call Flush before.
// Unstored batches stay in the log for the next start.
func (b *Buffer) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	context.AfterFunc(ctx, func() {
		close(b.ended)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.wake.Broadcast()
	})
	group.Go(func() error { return b.replay(ctx) })
	group.Go(func() error { return b.work(ctx, group) })
	group.Go(func() error { b.park(ctx); return nil })
	group.Go(func() error { return b.watch(ctx) })
	err := group.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ob := range b.index.open { // a start omits their messages: they should come again soon
		b.messages.drop(ob.messages)
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// watch owns the clock: each tick it cuts the batches that are due. It returns when
// ctx ends, or with the error of a log that failed.
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
				if err := b.checkDisk(); err != nil {
					return err
				}
			}
			b.mu.Lock()
			b.queue.noteSlow(now)
			b.cutAged(now)
			if b.queue.ready(now) { // batches that waited may be due
				b.wake.Signal()
			}
			b.mu.Unlock()
		}
	}
}

// checkDisk checks that the log's disk is still there, and whether it is full. A full
// disk releases everything possible, even a segment that is not full.
func (b *Buffer) checkDisk() error {
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
		b.releaseLogged()
	}
	return nil
}

// work drives batches through the sink, each in a goroutine, until ctx ends.
func (b *Buffer) work(ctx context.Context, group *errgroup.Group) error {
	for batch := b.take(ctx); batch != nil; batch = b.take(ctx) {
		group.Go(func() error { b.drive(ctx, batch); return nil })
	}
	return nil
}

// drive makes one try of a batch.
func (b *Buffer) drive(ctx context.Context, batch *Batch) {
	expired, err := b.store(ctx, batch)
	rescued := hopeless(err)
	if rescued {
		err = b.rescue(ctx, batch, err)
	}
	b.mu.Lock()
	b.queue.giveBack(batch)
	switch {
	case err != nil:
		b.putBack(ctx, batch, err)
	case !rescued:
		b.settle(batch, expired)
	}
	b.queue.place(batch.service, time.Now()) // it may have another batch in the sink
	b.index.forget(batch.service)
	b.wake.Signal() // a worker is free
	b.mu.Unlock()
	if err == nil {
		b.releaseLogged()
	}
}

// take waits for a batch that is due. It returns nil when ctx has ended.
func (b *Buffer) take(ctx context.Context) *Batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	for ctx.Err() == nil {
		if batch := b.queue.take(time.Now()); batch != nil {
			return batch
		}
		b.wake.Wait()
	}
	return nil
}

// store makes the batch's record durable. That makes its runs durable too: a segment is
// synced when it is rolled. Then the sink writes the batch, and the log gets its commit,
// even if the batch has expired.
func (b *Buffer) store(ctx context.Context, batch *Batch) (expired bool, err error) {
	if err := b.log.Sync(batch.named.Record); err != nil {
		return false, fmt.Errorf("sync the batch record: %w", err)
	}
	start, flags := time.Now(), byte(0)
	err = b.write(ctx, batch, start)
	switch expired = errors.Is(err, ErrExpired); {
	case expired:
		flags = runlog.CommitExpired
	case err != nil:
		return false, err
	default:
		b.m.store.Observe(time.Since(start).Seconds())
	}
	// The batch's runs may be deleted only when the commit is durable. Without it the
	// batch is tried again, and found stored.
	pos, err := b.log.AppendReserved(runlog.TypeCommit, runlog.AppendCommit(nil, batch.named.ID, flags))
	if err != nil {
		return false, fmt.Errorf("note in the log that a batch is done with: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settled = max(b.settled, pos)
	return expired, nil
}

// write is one try, which may be interrupted. A batch that makes the sink panic is set
// aside until the next start tries it again. The other batches are stored meanwhile.
func (b *Buffer) write(ctx context.Context, batch *Batch, begun time.Time) (err error) {
	defer recovered(&err, ErrAside)
	ctx, breakOff := context.WithCancelCause(ctx)
	defer breakOff(nil)
	b.mu.Lock()
	batch.try.begun, batch.try.breakOff = begun, breakOff
	b.mu.Unlock()
	err = b.sink.Write(ctx, batch)
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, errHolds) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// settle ends a batch that is stored or has expired. b.mu is held.
func (b *Buffer) settle(batch *Batch, expired bool) {
	b.queue.remove(batch)
	b.index.leave(batch)
	b.messages.stored(batch.messages)
	if expired { // that is no evidence about the store
		b.m.batchesExpired.Inc()
		b.m.expired.Add(int64(batch.named.Records))
		b.o.Log.Info().Str("service", batch.Service()).Time("period", batch.Period()).Int("records", batch.named.Records).
			Msg("a batch has expired before it was stored; it is not kept")
	} else {
		b.m.stored.Inc()
		batch.service.trouble = trouble{}
	}
	if !expired && batch.try.failed > 0 {
		// The store works again: the other batches need not wait for their pauses to end.
		b.queue.hurry()
		b.o.Log.Info().Str("service", batch.Service()).Int("attempts", batch.try.failed).Msg("a batch that failed is stored")
	}
	close(batch.done)
}

// Left counts the batches that a Flush leaves in the log.
type Left struct {
	Batches int // including the open ones that could not be cut
	Records int
	Bytes   int64
	Aside   int // of them, batches that cannot be rebuilt; see the log and docs
}

// Flush cuts all open batches and waits until all records accepted before are stored. If
// ctx ends first, it counts the rest. It does not wait for batches that cannot be rebuilt
// from the log: they are counted in Left, with an error.
func (b *Buffer) Flush(ctx context.Context) (Left, error) {
	_ = b.awaitReplay(ctx) // without it, some are left
	b.mu.Lock()
	batches := b.index.unstored()
	b.cutDue(batches, pressure{flush: true})
	uncut := 0
	await := make([]*Batch, 0, len(batches))
	for _, batch := range batches {
		if batch.isOpen() {
			uncut++
		} else {
			await = append(await, batch)
		}
	}
	b.queue.hurry()
	b.wake.Signal()
	b.mu.Unlock()

	for _, batch := range await {
		select {
		case <-batch.done:
		case <-ctx.Done():
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var left Left
	for _, batch := range batches {
		select {
		case <-batch.done:
			if !batch.try.aside {
				continue
			}
			left.Aside++
		default:
		}
		left.Batches++
		left.Records += batch.named.Records
		left.Bytes += batch.named.Bytes
	}
	switch {
	case ctx.Err() != nil && (left.Batches > 0 || !b.Replayed()):
		return left, ctx.Err()
	case uncut > 0:
		return left, errors.New("the log takes no batch records; the disk may be full")
	case left.Aside > 0:
		return left, fmt.Errorf("%d batches cannot be rebuilt from the log and are set aside", left.Aside)
	}
	return left, nil
}

// awaitReplay waits until the log found by the start is replayed, ctx ends, or Run ends.
func (b *Buffer) awaitReplay(ctx context.Context) error {
	select {
	case <-b.replayed:
	case <-ctx.Done():
	case <-b.ended:
	}
	if b.Replayed() {
		return ctx.Err()
	}
	return cmp.Or(ctx.Err(), errEnded)
}

// Replayed reports whether the log that the start found is read.
func (b *Buffer) Replayed() bool {
	select {
	case <-b.replayed:
		return true
	default:
		return false
	}
}
