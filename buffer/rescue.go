package buffer

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"blobtail/buffer/runlog"
	"blobtail/buffer/wal"
)

// rescue takes apart a batch that the log no longer has in its original form. Whole runs
// become part of another batch. The others are lost: they are logged and counted, and
// their segments are quarantined. If the batch was stored before, readers drop the
// records that come twice. rescue returns nil when the batch is done with, and otherwise
// an error for its caller to handle.
func (b *Buffer) rescue(ctx context.Context, batch *Batch, cause error) error {
	if _, rot := errors.AsType[*runlog.RotError](cause); !rot {
		return cause
	}
	w, err := b.wreck(ctx, batch)
	if err != nil {
		return err
	}
	for n := range w.segments {
		if err := b.log.Quarantine(n); err != nil {
			b.o.Log.Error().Err(err).Msg("a damaged segment of the log is not kept")
		}
	}
	var again *Batch
	if batch.named.IsCopy() && w.records > 0 {
		if again, err = b.copyAgain(batch, w); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case again != nil:
		b.settled = max(b.settled, again.named.Record)
		b.index.enter(again)
		b.queue.add(again, b.queue.last+1)
	case len(w.whole) > 0:
		b.reopen(batch.bin, w.whole, func(uint32) time.Time { return batch.since })
	}
	b.queue.remove(batch)
	b.index.leave(batch)
	b.abandon(batch, cause)
	b.repeats.forget(w.lost)
	lost := max(0, batch.named.Records-w.records)
	b.m.salvaged.Inc()
	b.lose(lost, batch.since)
	b.o.Log.Error().Err(cause).Str("service", batch.Service()).Time("period", batch.Period()).
		Int("records", w.records).Int("lost", lost).
		Msg("part of a batch is damaged in the log; the rest is cut anew, the segment is in quarantine")
	b.wake.Signal()
	return nil
}

// wreck is the rest of a batch that rotted.
type wreck struct {
	whole    []foundRun      // of an unparked batch: its runs are in their first place
	copied   runlog.Parked   // the whole runs of one that was parked
	records  int             // in whole runs
	lost     []wal.Pos       // of the other runs
	segments map[uint32]bool // where these are
}

// wreck reads the runs of a batch. An error means that the batch must be tried again, or
// that not even its record can be read.
func (b *Buffer) wreck(ctx context.Context, batch *Batch) (*wreck, error) {
	rec, err := batch.named.ReadRecord(b.log, batch.named.ID)
	if err != nil {
		return nil, err
	}
	w := &wreck{segments: map[uint32]bool{}}
	whole := func(r *runlog.Run) error {
		w.records += r.Records
		if batch.named.IsCopy() {
			w.copied.Add(r)
		} else {
			w.whole = append(w.whole, found(r))
		}
		return nil
	}
	lost := func(e runlog.Extent, err error) error {
		if !runlog.Rotten(err) {
			return err // the disk may work again later
		}
		w.segments[e.Pos.Segment()] = true
		w.lost = append(w.lost, e.Pos)
		return nil
	}
	return w, runlog.NewReader(b.log).Read(ctx, &rec.Runs, batch.bin, whole, lost)
}

// copyAgain makes a batch of the rest of a parked one. A start finds runs in runs records
// only, so they cannot be cut anew in their place.
func (b *Buffer) copyAgain(batch *Batch, w *wreck) (*Batch, error) {
	rec := &w.copied
	rand.Read(rec.ID[:])
	rec.Bin, rec.Since = batch.bin, batch.since.UnixMilli()
	b.mu.Lock()
	rec.Pin = b.sink.Plan(batch.bin.Service, batch.Period())
	b.mu.Unlock()
	place, err := b.appendCopy(rec)
	if err != nil {
		return nil, err
	}
	again := newCut(b, &rec.BatchRecord, place, batch.since)
	again.from, again.to = batch.from, batch.to
	return again, nil
}
