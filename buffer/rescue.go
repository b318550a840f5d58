package buffer

import (
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"blobtail/wal"
)

// rescue takes apart a batch that the log does not hold any more as it was cut.
// Runs that are whole become part of another batch; the others are lost: that is
// told and counted, and their segments are kept in quarantine. Should the batch
// have been stored before, readers drop what stands twice. It returns nil when
// the batch is done with, else the error to go on with.
func (b *Buffer) rescue(batch *Batch, cause error) error {
	var rot *RotError
	if !errors.As(cause, &rot) {
		return cause
	}
	w, err := b.wreck(batch)
	if err != nil {
		return err
	}
	for n := range w.segments {
		if err := b.log.Quarantine(n); err != nil {
			b.o.Log.Error().Err(err).Msg("a damaged segment of the log is not kept")
		}
	}
	var again *Batch
	if batch.base != 0 && len(w.whole) > 0 {
		if again, err = b.copyAgain(batch, w); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case again != nil:
		b.keep(again.place)
		b.queue = append(b.queue, again)
		b.needed = max(b.needed, again.record)
	case len(w.whole) > 0:
		for _, f := range w.whole {
			b.pending[f.pos.Segment()]++
			b.held += int64(f.len)
		}
		b.reopen(batch.key, w.whole, func(uint32) time.Time { return batch.since })
	}
	b.remove(batch)
	b.forget(batch.place)
	b.dropMessages(batch.messages)
	b.origins.forget(w.lost)
	batch.aside, batch.fate.err = true, cause
	close(batch.fate.done)
	lost := max(0, batch.records-w.copies.rec.records)
	b.m.salvaged.Inc()
	b.lose(lost, batch.since)
	b.o.Log.Error().Err(cause).Str("service", batch.Service()).Time("period", batch.Period()).
		Int("records", w.copies.rec.records).Int("lost", lost).
		Msg("part of a batch is damaged in the log; the rest is cut anew, the segment is in quarantine")
	b.wake.Broadcast()
	return nil
}

// wreck is what the log holds of a batch that rotted.
type wreck struct {
	whole    []foundRun
	copies   parkedRuns      // these, for a batch that was parked
	lost     []wal.Pos       // of the other runs
	segments map[uint32]bool // where these are
}

// wreck reads the runs of a batch one by one. An error means that it has to be
// tried again, or that not even the batch's record can be read.
func (b *Buffer) wreck(batch *Batch) (*wreck, error) {
	rec, err := batch.readRecord()
	if err != nil {
		return nil, err
	}
	w := &wreck{segments: map[uint32]bool{}}
	var buf []byte
	for e := range rec.runs.all() {
		buf = sized(buf, int(e.len))[:e.len]
		err := readLog(b.log, buf, e.pos, batch.id)
		if err != nil && !errors.Is(err, ErrAside) {
			return nil, err // the disk may think better of it
		}
		r, n := run{}, 0
		if err == nil {
			r, n, err = parseRun(buf)
		}
		if err != nil || n != len(buf) || r.key != batch.key {
			w.segments[e.pos.Segment()] = true
			w.lost = append(w.lost, e.pos)
			continue
		}
		w.whole = append(w.whole, foundRun{extent: e, records: uint32(r.records), bytes: uint32(len(r.lines)), seconds: secondsOf(&r)})
		if batch.base == 0 {
			w.copies.rec.records += r.records
		} else {
			w.copies.add(buf, r.records, len(r.lines))
		}
	}
	return w, nil
}

// copyAgain makes a batch of what is left of one that was parked: a start looks
// for runs in runs records only, so they cannot be cut anew where they are.
func (b *Buffer) copyAgain(batch *Batch, w *wreck) (*Batch, error) {
	rec := &w.copies.rec
	rand.Read(rec.id[:])
	rec.key, rec.since = batch.key, batch.since.UnixMilli()
	b.mu.Lock()
	rec.pin = b.sink.Plan(batch.key.service, batch.Period())
	b.mu.Unlock()
	payload, head := w.copies.payload()
	pos, err := b.log.Append(typeParked, payload)
	if err != nil {
		return nil, fmt.Errorf("park what is left of a batch: %w", err)
	}
	return &Batch{
		b: b, id: rec.id, key: rec.key, records: rec.records, bytes: rec.bytes, pin: rec.pin, span: periodSpan(rec.key),
		place: placeOfCopy(pos, head, len(payload)), fate: newFate(), since: batch.since,
	}, nil
}
