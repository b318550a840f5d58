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
// as when the store refuses one service: when they hold the front of a log that
// needs room, they are copied to its end, and what lies between can go. It returns
// when ctx ends.
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
// in trouble and copying pays. Those that are just being tried come next time.
func (b *Buffer) holders() []*Batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.replayed || !b.copyingPays() {
		return nil
	}
	front := b.log.Front()
	if front == b.log.Active() {
		return nil // a copy would lie in it too
	}
	for _, ob := range b.open {
		if ob.runs.first().Segment() == front {
			return nil // cutAged cuts it
		}
	}
	var found []*Batch
	now := time.Now()
	for _, batch := range b.queue {
		if len(batch.runs) == 0 || batch.runs[0].segment != front || batch.aside {
			continue
		}
		late := batch.taken && batch.breakOff != nil && now.Sub(batch.begun) > holdsTooLong
		if late {
			batch.breakOff(errHolds)
		}
		switch troubled := batch.attempts > 0 || b.services.trouble[batch.key.service] != nil; {
		case !troubled && !late, now.Before(batch.parkAfter):
			return nil // it is on its way, or cannot be copied
		case !batch.taken:
			found = append(found, batch)
		}
	}
	for _, batch := range found {
		batch.taken = true // a parked copy is made of a batch that nobody moves
	}
	return found
}

// copyingPays reports whether the log needs room and copying makes it: while most
// of the log is runs that are not stored, as in an outage of the whole store, it
// would only wear the disk. While requests are refused it may cost more.
func (b *Buffer) copyingPays() bool {
	size := b.log.Size()
	if b.full.Load() || (b.o.Max > 0 && size >= b.o.Max) {
		return b.held <= size/4*3
	}
	return size > b.o.Soft && b.held <= size/2
}

// parkPause is how long a batch that could not be copied is left alone.
const parkPause = 30 * time.Second

// parkOne makes the copy and lets go of the runs it was made of. The copy has
// the identities that the batch's blob will have, and the name it stands at: a
// batch that went back to an earlier name could be stored under two.
func (b *Buffer) parkOne(ctx context.Context, batch *Batch) error {
	payload, head, err := b.parkedCopy(ctx, batch)
	if err == nil {
		err = b.replaceBy(batch, payload, head)
	} else if errors.Is(err, ErrAside) {
		if err = b.rescue(batch, err); err == nil {
			return b.release()
		}
	}
	b.mu.Lock()
	batch.taken = false
	if err != nil {
		batch.parkAfter = time.Now().Add(parkPause)
	}
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

// replaceBy appends the copy and makes it the batch. What it is a copy of must be
// durable first: of a batch that was never tried the record may not be yet, and a
// copy that a power cut leaves without it would not take its runs along, which
// the next start would cut anew.
func (b *Buffer) replaceBy(batch *Batch, payload []byte, head int) error {
	if err := b.log.Sync(batch.record); err != nil {
		return fmt.Errorf("sync the batch record: %w", err)
	}
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
func (b *Buffer) parkedCopy(ctx context.Context, batch *Batch) (payload []byte, head int, err error) {
	defer recovered(&err, ErrAside)
	err = batch.loaded(ctx, func(l *loader, rec *batchRecord) error {
		runs, err := l.read(b.log, rec)
		if err != nil {
			return err
		}
		runs = l.onePerOrigin(runs)
		b.note(l.renamed)
		copied := parkedRuns{rec: batchRecord{id: batch.id, key: batch.key, pin: batch.pin, since: batch.since.UnixMilli()}}
		copied.body = make([]byte, 0, batch.held+32*int64(len(runs)))
		for _, r := range runs {
			from := len(copied.body)
			copied.body = r.appendCopy(copied.body)
			copied.added(from, r.records, len(r.lines))
		}
		payload, head = copied.payload()
		return nil
	})
	return payload, head, err
}

// parkedRuns gathers the runs of a parked record.
type parkedRuns struct {
	rec  batchRecord // its positions count from the start of body
	body []byte
}

// add appends a run that has its origin spelled out.
func (p *parkedRuns) add(run []byte, records, lines int) {
	from := len(p.body)
	p.body = append(p.body, run...)
	p.added(from, records, lines)
}

func (p *parkedRuns) added(from, records, lines int) {
	p.rec.runs.add(extent{wal.Pos(from), uint32(len(p.body) - from)})
	p.rec.records += records
	p.rec.bytes += int64(lines)
}

// payload is that of the parked record; head is how long the part before the runs
// is.
//
//	uint32 length | batch record, its positions counted from the runs | runs
func (p *parkedRuns) payload() (payload []byte, head int) {
	payload = p.rec.append(make([]byte, 4, 4+128+len(p.rec.key.service)+len(p.rec.runs.enc)+len(p.body)))
	binary.LittleEndian.PutUint32(payload, uint32(len(payload)-4))
	return append(payload, p.body...), len(payload)
}

// appendCopy appends the run with its origin spelled out: its place, which may
// have been its origin, is another one now.
func (r *loadedRun) appendCopy(p []byte) []byte {
	off := len(p)
	p = append(p, make([]byte, runHead)...)
	p = appendRunOrigin(p, r.origin, 0, r.places)
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
