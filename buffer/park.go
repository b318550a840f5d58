package buffer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"blobtail/buffer/runlog"
)

// park handles batches that cannot be stored, for example because the store refuses one
// service. Without it, a few of them would hold the log. If they hold the front of a log
// that needs room, it copies them to the end, and the segments in between can be deleted.
// It returns when ctx ends.
func (b *Buffer) park(ctx context.Context) {
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		for _, batch := range b.holders() {
			if err := b.parkOne(ctx, batch); err != nil && ctx.Err() == nil {
				b.o.Log.Warn().Err(err).Str("service", batch.Service()).Msg("a batch that holds the log cannot be copied to its end")
			}
		}
	}
}

// holdsTooLong is how long one attempt to store a batch may hold the front of a log over
// its soft limit. With a store that hangs, it would hold the front for minutes.
const holdsTooLong = 10 * time.Second

var errHolds = errors.New("broken off, because it holds up the log")

// holders takes the batches that hold the front of the log, if all of them are in trouble
// and copying pays. A batch with a try in progress comes next time.
func (b *Buffer) holders() []*Batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.Replayed() || !b.copyingPays() {
		return nil
	}
	front := b.log.Front()
	if front == b.log.Active() {
		return nil // a copy would be in it too
	}
	var found []*Batch
	now := time.Now()
	for batch := range b.index.segments[front] {
		if batch.isOpen() {
			return nil // cutAged cuts it
		}
		if batch.try.aside {
			continue
		}
		late := batch.try.taken && batch.try.breakOff != nil && now.Sub(batch.try.begun) > holdsTooLong
		if late {
			batch.try.breakOff(errHolds)
		}
		switch troubled := batch.try.failed > 0 || batch.service.trouble.failures > 0; {
		case !troubled && !late, now.Before(batch.try.parkAfter):
			return nil // it is being stored, or cannot be copied
		case !batch.try.taken:
			found = append(found, batch)
		}
	}
	for _, batch := range found {
		batch.try.taken = true // no worker may store it meanwhile
		b.queue.place(batch.service, now)
	}
	slices.SortFunc(found, byOrder)
	return found
}

// copyingPays reports whether the log needs room and copying makes it. In an outage of
// the whole store most of the log is unstored runs, and copying would only wear the disk.
// While requests are refused it may cost more.
func (b *Buffer) copyingPays() bool {
	size, most := b.log.Size(), int64(0)
	switch {
	case b.short(time.Now()) || (b.o.Max > 0 && size >= b.o.Max):
		most = size / 4 * 3
	case size > b.o.Soft:
		most = size / 2
	default:
		return false
	}
	return b.index.held <= most
}

// parkPause is how long a batch that could not be copied is left alone.
const parkPause = 30 * time.Second

// parkOne makes the copy and releases the batch's runs. The copy has the identities that
// the batch's blob will have, and its current name: a batch that returned to an earlier
// name could be stored under two.
func (b *Buffer) parkOne(ctx context.Context, batch *Batch) error {
	copied, err := b.parkedCopy(ctx, batch)
	if err == nil {
		err = b.replaceBy(batch, copied)
	} else if hopeless(err) {
		if err = b.rescue(ctx, batch, err); err == nil {
			return b.release()
		}
	}
	b.mu.Lock()
	batch.try.taken = false
	if err != nil {
		batch.try.parkAfter = time.Now().Add(parkPause)
	}
	if hopeless(err) {
		b.setAside(batch, err)
	}
	b.queue.place(batch.service, time.Now())
	b.wake.Signal()
	b.mu.Unlock()
	if err != nil {
		return err
	}
	return b.release()
}

// replaceBy appends the copy and makes it the batch. The batch's record must be durable
// first. If the batch was never tried, it may not be. If a power cut left the copy
// without it, the next start would cut the runs anew.
func (b *Buffer) replaceBy(batch *Batch, copied *runlog.Parked) error {
	if err := b.log.Sync(batch.named.Record); err != nil {
		return fmt.Errorf("sync the batch record: %w", err)
	}
	place, err := b.appendCopy(copied)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.index.takeFrom(batch)
	batch.named.Place = place
	b.index.putAt(batch)
	// The copy must be durable before the segments of its first place are deleted.
	b.settled = max(b.settled, batch.named.Record)
	b.m.parked.Inc()
	return nil
}

// appendCopy appends the parked record of a batch.
func (b *Buffer) appendCopy(copied *runlog.Parked) (runlog.Place, error) {
	payload, head := copied.Payload()
	pos, err := b.log.Append(runlog.TypeParked, payload)
	if err != nil {
		return runlog.Place{}, fmt.Errorf("park a batch: %w", err)
	}
	return runlog.PlaceOfCopy(pos, head, len(payload)), nil
}

// parkedCopy is the parked record of a batch.
func (b *Buffer) parkedCopy(ctx context.Context, batch *Batch) (copied *runlog.Parked, err error) {
	defer recovered(&err, ErrAside)
	err = batch.loaded(ctx, func(l *runlog.Loader, rec *runlog.BatchRecord) error {
		copied = &runlog.Parked{BatchRecord: runlog.BatchRecord{ID: rec.ID, Bin: rec.Bin, Pin: batch.pin, Since: batch.since.UnixMilli()}}
		err := l.Copy(ctx, rec, copied)
		if err == nil {
			b.note(l.Renamed())
		}
		return err
	})
	return copied, err
}
