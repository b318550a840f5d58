package buffer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"blobtail/wal"
)

// park keeps the log from being held by a few batches that will not go through,
// as when the store refuses one service: when they hold the front of a log over
// its soft limit, they are copied to its end, and what lies between can go. It
// returns when ctx ends.
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

// holdsTooLong is how long one attempt to store a batch may hold the front of a
// log over its soft limit. A store that hangs would hold it for minutes.
const holdsTooLong = 10 * time.Second

var errHolds = errors.New("broken off, because it holds up the log")

// holders takes the batches that hold the front of the log, if all of them are
// in trouble and copying pays: while more than half of the log is runs that are
// not stored, as in an outage of the whole store, it would only wear the disk.
func (b *Buffer) holders() []*Batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	size := b.log.Size()
	if !b.replayed || size <= b.o.Soft || b.held > size/2 {
		return nil
	}
	front := b.log.Front()
	for _, ob := range b.open {
		if ob.runs.first().Segment() == front {
			return nil // cutAged cuts it
		}
	}
	var found []*Batch
	for _, batch := range b.queue {
		if len(batch.runs) == 0 || batch.runs[0].segment != front || batch.aside {
			continue
		}
		if batch.taken && batch.breakOff != nil && time.Since(batch.begun) > holdsTooLong {
			batch.breakOff(errHolds)
		}
		if batch.taken || (batch.attempts == 0 && b.services.trouble[batch.key.service] == nil) {
			return nil // it is on its way
		}
		found = append(found, batch)
	}
	for _, batch := range found {
		batch.taken = true // a parked copy is made of a batch that nobody moves
	}
	return found
}

// parkOne makes the copy and lets go of the runs it was made of. The copy has
// the identities that the batch's blob will have, and the name it stands at: a
// batch that went back to an earlier name could be stored under two.
func (b *Buffer) parkOne(ctx context.Context, batch *Batch) error {
	payload, head, err := b.parkedCopy(ctx, batch)
	if err == nil {
		err = b.replaceBy(batch, payload, head)
	}
	b.mu.Lock()
	batch.taken = false
	if errors.Is(err, ErrAside) {
		b.setAside(batch, err)
	}
	b.wake.Broadcast()
	b.mu.Unlock()
	if err != nil {
		return err
	}
	return b.release()
}

// replaceBy appends the copy and makes it the batch.
func (b *Buffer) replaceBy(batch *Batch, payload []byte, head int) error {
	pos, err := b.log.Append(typeParked, payload)
	if err != nil {
		return fmt.Errorf("park a batch: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget(batch.place)
	batch.place = placeOfCopy(pos, head, len(payload))
	b.keep(batch.place)
	b.needed = max(b.needed, pos)
	b.m.parked.Inc()
	return nil
}

// parkedCopy is the payload of the parked record of a batch; head is how long the
// part before its runs is.
//
//	uint32 length | batch record, its positions counted from the runs | runs
func (b *Buffer) parkedCopy(ctx context.Context, batch *Batch) (payload []byte, head int, err error) {
	err = batch.loaded(ctx, func(l *loader, rec *batchRecord) error {
		runs, err := l.read(b.log, rec)
		if err != nil {
			return err
		}
		copied := batchRecord{id: batch.id, key: batch.key, pin: batch.pin}
		var body []byte
		for _, r := range l.onePerOrigin(runs) {
			from := len(body)
			body = r.appendCopy(body)
			copied.runs.add(extent{wal.Pos(from), uint32(len(body) - from)})
			copied.records += r.records
			copied.bytes += int64(len(r.lines))
		}
		payload = copied.append(make([]byte, 4, 4+64+len(copied.runs.enc)+len(body)))
		binary.LittleEndian.PutUint32(payload, uint32(len(payload)-4))
		head = len(payload)
		payload = append(payload, body...)
		return nil
	})
	return payload, head, err
}

// appendCopy appends the run with its origin spelled out: its place, which may
// have been its origin, is another one now.
func (r *loadedRun) appendCopy(p []byte) []byte {
	off := len(p)
	p = append(p, make([]byte, runHead)...)
	p = appendRunOrigin(p, r.origin, 0)
	p = appendRunKey(p, r.key, r.first, r.records, r.time0)
	p = append(append(p, r.table...), r.lines...)
	return sealRun(p, off)
}

// parseParked reads the part of a parked record before its runs, and says how
// long that is.
func parseParked(p []byte) (r batchRecord, head int, err error) {
	if len(p) < 4 {
		return r, 0, fmt.Errorf("parked record of %d bytes is cut short", len(p))
	}
	head = 4 + int(binary.LittleEndian.Uint32(p))
	if head > len(p) {
		return r, 0, fmt.Errorf("parked record of %d bytes says that its runs begin at %d", len(p), head)
	}
	r, err = parseBatch(p[4:head])
	return r, head, err
}
