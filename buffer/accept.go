package buffer

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"blobtail/buffer/runlog"
	"blobtail/buffer/wal"
	"blobtail/record"
	"blobtail/storage/fsys"
)

// Accept appends a request to the log and copies everything it needs. The request is safe
// when the receipt's Wait has returned nil; for a message, [Messages] is called instead.
// The error is [record.ErrFull] if the log cannot grow, [record.ErrUnheld] if its disk fails to
// write the request alone, and [record.ErrKeyReused] if the request's key came with another body. It is a [*record.EarlierError] if the key came
// with the same body and the records must get the times of the first request. Any other
// error means that the log failed.
func (b *Buffer) Accept(ctx context.Context, r *record.Request) (record.Receipt, error) {
	if err := ctx.Err(); err != nil {
		return record.Receipt{}, err
	}
	if len(r.Lines) == 0 {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.nothingLeft(r), nil
	}
	e := b.encoders.Get().(*runlog.Encoder)
	defer b.encoders.Put(e)
	came := time.Now()
	if !r.Came.IsZero() { // the clock of the other ingester may be ahead
		came = came.Add(-max(0, came.Sub(r.Came)))
	}
	e.Encode(r, came)
	receipt, pos, origin, err := b.append(r, e, came)
	if b.o.Tail != nil && err == nil && !receipt.Duplicate {
		b.tell(r, e, pos, origin)
	}
	return receipt, err
}

func (b *Buffer) isFull() bool {
	return b.full.Load() || (b.o.Max > 0 && b.log.Size() >= b.o.Max)
}

// append is Accept of an encoded request. It also returns the position of its record,
// and the origin of its records, unless it is a repeat.
func (b *Buffer) append(r *record.Request, e *runlog.Encoder, came time.Time) (
	_ record.Receipt, pos wal.Pos, origin record.Origin, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer endIfPanicking()
	if receipt, known, err := b.known(r, e); known {
		return receipt, 0, origin, err
	}
	if len(e.Runs) == 0 {
		b.m.expired.Add(int64(e.LeftOut.Records))
		receipt := b.nothingLeft(r)
		receipt.Expired = e.LeftOut.Expired
		return receipt, 0, origin, nil
	}
	if b.isFull() {
		b.m.refused.Inc()
		return record.Receipt{}, 0, origin, record.ErrFull
	}
	pos, err = b.log.Append(runlog.TypeRuns, e.Payload)
	if err != nil {
		return record.Receipt{}, 0, origin, b.notAppended(err)
	}
	if b.o.Tail != nil {
		origin = b.originAt(r, pos)
	}
	var m *message
	if r.Reply != "" {
		m = b.messages.add(remembered(r, pos, e), r.Reply, len(e.Runs))
	} else if !r.Origin.IsZero() && (r.Came.IsZero() || r.Outcome != record.Outcome{}) {
		b.repeats.add(remembered(r, pos, e))
	}
	b.appended = pos
	batches := b.gather(pos, e.Runs, m, came)
	b.m.expired.Add(int64(e.LeftOut.Records))
	b.m.records.Add(int64(len(r.Lines) - e.LeftOut.Records))
	b.m.bytes.Add(int64(len(r.Data)) - e.LeftOut.Bytes)
	receipt := b.receipt(pos, func() []*Batch { return batches })
	receipt.Expired = e.LeftOut.Expired
	return receipt, pos, origin, nil
}

// refusals remembers the log's errors.
type refusals struct {
	cut    string    // the last failure to cut, so that it is logged once
	logged time.Time // when the last failure to append a request was logged
	noRoom time.Time // when a request last found no room
}

// notAppended is the error of a request that the log did not take. Unless the log has failed for
// good, it is unchanged, and a later request may be taken. b.mu is held.
func (b *Buffer) notAppended(err error) error {
	err = fmt.Errorf("append to the log: %w", err)
	if b.log.Err() != nil || errors.Is(err, wal.ErrClosed) {
		return err
	}
	now := time.Now()
	if now.Sub(b.refusals.logged) > time.Minute {
		b.refusals.logged = now
		b.o.Log.Error().Err(err).Msg("the log does not take a request; the sender may send it again, and later requests are tried")
	}
	if fsys.IsFull(err) {
		b.m.refused.Inc()
		b.refusals.noRoom = now
		return fmt.Errorf("%w: %w", record.ErrFull, err)
	}
	return fmt.Errorf("%w: %w", record.ErrUnheld, err)
}

// short reports whether the disk of the log is full, or a request found no room in the last second,
// as with a full quota. Then all records are flushed. b.mu is held.
func (b *Buffer) short(now time.Time) bool {
	return b.full.Load() || now.Sub(b.refusals.noRoom) < time.Second
}

// endIfPanicking ends the process if its caller panics with the buffer locked. net/http
// would end one request only, but then neither the log nor the batches can be trusted. A
// start rebuilds them from the durable log.
func endIfPanicking() {
	if cause := recover(); cause != nil {
		go panic(fmt.Sprintf("%v, in\n%s", cause, debug.Stack()))
		select {}
	}
}

// nothingLeft answers a request without records, or with expired records alone. b.mu is held.
func (b *Buffer) nothingLeft(r *record.Request) record.Receipt {
	if r.Reply != "" {
		b.o.Messages.Stored(r.Reply)
	}
	return record.Receipt{Wait: func(context.Context, bool) error { return nil }}
}

// known answers a repeat with the answer of the first request. A request with another
// outcome is new. b.mu is held.
func (b *Buffer) known(r *record.Request, e *runlog.Encoder) (receipt record.Receipt, known bool, err error) {
	if r.Reply != "" {
		m, err := b.messages.repeated(r)
		if m == nil {
			return receipt, err != nil, err
		}
		b.m.redelivered.Inc()
		return b.again(&m.rememberedOrigin, e), true, nil
	}
	first, ok := b.repeats.find(r)
	if !ok || !r.Came.IsZero() {
		return receipt, false, nil
	}
	if known, err = first.repeatOf(r); !known || err != nil {
		return receipt, known, err
	}
	b.m.duplicates.Inc()
	return b.again(&first, e), true, nil
}

// receipt returns the receipt of a request with its record at pos. batches finds those that it waits for;
// b.mu is held then.
func (b *Buffer) receipt(pos wal.Pos, batches func() []*Batch) record.Receipt {
	r := record.Receipt{Wait: func(ctx context.Context, stored bool) error {
		if err := b.log.Sync(pos); err != nil || !stored {
			return err
		}
		b.mu.Lock()
		found := batches()
		b.demand.want(found)
		b.mu.Unlock()
		return await(ctx, found)
	}}
	if b.o.Shipped != nil {
		r.Shipped = func(ctx context.Context) error {
			if err := b.log.Sync(pos); err != nil {
				return err
			}
			return b.o.Shipped(ctx, pos)
		}
	}
	return r
}

// want gets batches cut soon, if they are open. b.mu is held.
func (d *demand) want(batches []*Batch) {
	for _, batch := range batches {
		if batch.isOpen() && !batch.wanted {
			batch.wanted = true
			d.batches = append(d.batches, batch)
		}
	}
}

// await waits until batches are stored.
func await(ctx context.Context, batches []*Batch) error {
	for _, batch := range batches {
		select {
		case <-batch.done:
			if batch.err != nil {
				return batch.err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
