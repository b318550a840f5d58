package buffer

import (
	"crypto/rand"
	"time"
	"unique"

	"blobtail/buffer/runlog"
	"blobtail/buffer/wal"
)

// reason is the reason for a cut. It is a label of blobtail_buffer_batches_cut_total.
type reason string

const (
	notYet     reason = ""
	bySize     reason = "size"     // it has Options.Size
	byAge      reason = "age"      // Options.Age and Options.Min
	byMaxAge   reason = "max_age"  // Options.MaxAge
	byRequest  reason = "request"  // a request waits until it is stored
	byMessages reason = "messages" // too many messages wait for batches to be cut
	byLog      reason = "log"      // it holds the front of a log over Options.Soft
	byDisk     reason = "disk"     // the disk, or a quota, is full
	byFlush    reason = "flush"    // Flush was called
)

// pressure is every influence outside of a batch that can get it cut. The zero value is
// none.
type pressure struct {
	now      time.Time
	flush    bool
	requests bool   // batches that requests wait for may be cut
	front    uint32 // of a log over its soft limit
	full     bool   // the log has no room
}

// why returns the reason to cut an open batch now. These are all the rules; without
// pressure only the batch's size counts.
func (o *Options) why(ob *Batch, p pressure) reason {
	age := p.now.Sub(ob.since)
	switch {
	case ob.named.Bytes >= o.Size:
		return bySize
	case p.flush:
		return byFlush
	case p.requests && ob.wanted:
		return byRequest
	case p.front != 0 && p.front == ob.named.First.Segment():
		return byLog
	case p.full:
		return byDisk
	case age >= o.MaxAge:
		return byMaxAge
	case age >= o.Age && ob.named.Bytes >= o.Min:
		return byAge
	}
	return notYet
}

// requestPause is the least time between cuts for waiting requests.
const requestPause = time.Second

// breath is how many batches a tick looks at before it lets requests in. A sender may have opened a
// hundred thousand, of as many hours, and a look at all of them takes 20 ms.
const breath = 1000

// cutAged cuts the batches that are due at a tick. b.mu is held, but for moments between batches.
func (b *Buffer) cutAged(now time.Time) {
	p := pressure{now: now, requests: now.Sub(b.demanded) >= requestPause, full: b.short(now)}
	if b.log.Size() > b.o.Soft {
		p.front = b.log.Front()
	}
	b.cutAll(p, breath)
	if b.crowded() {
		b.cutMessages()
	}
}

// cutAll cuts every open batch that is due. b.mu is held, but for a moment after so many batches; 0:
// all the time. Batches that others open in such a moment may be left out.
func (b *Buffer) cutAll(p pressure, breath int) {
	n := 0
	for _, ob := range b.open {
		if n++; n == breath {
			n = 0
			b.mu.Unlock()
			b.mu.Lock()
			if b.open[ob.bin] != ob {
				continue // another has cut it
			}
		}
		why := b.o.why(ob, p)
		if why == byRequest {
			b.demanded = p.now
		}
		b.cut(ob, why)
	}
}

// gather adds the runs of the record at pos to their open batches, and cuts those
// that are full. m is the message that brought them, or nil. b.mu is held.
func (b *Buffer) gather(pos wal.Pos, runs []runlog.Written, m *message) []*Batch {
	batches := make([]*Batch, len(runs))
	for i := range runs {
		r := &runs[i]
		ob := b.open[r.Bin]
		if ob == nil {
			ob = newBatch(b, r.Bin, time.Now())
			b.open[r.Bin] = ob
		}
		at := runlog.Extent{Pos: pos + wal.Pos(r.Off), Len: uint32(r.Len)}
		ob.add(at, r.Span, r.Records, r.Bytes)
		b.recent.add(at, unique.Make(ob.bin.Service))
		if m != nil {
			ob.messages = append(ob.messages, m)
		}
		batches[i] = ob
		b.cut(ob, b.o.why(ob, pressure{}))
	}
	if b.messages.open >= maxOpenMessages {
		b.cutMessages()
	}
	return batches
}

// cut pins an open batch with a batch record and queues it, unless why is notYet.
// The record is not durable yet: the worker that takes the batch syncs it first.
// b.mu is held.
func (b *Buffer) cut(batch *Batch, why reason) {
	if why == notYet {
		return
	}
	rec := runlog.BatchRecord{Bin: batch.bin, Records: batch.named.Records, Bytes: batch.named.Bytes, Runs: batch.runs}
	rand.Read(rec.ID[:])
	if batch.pin == nil { // a new plan for each try would use up names
		batch.pin = b.sink.Plan(batch.bin.Service, batch.bin.Start())
	}
	rec.Pin = batch.pin
	payload := rec.Append(nil)
	pos, err := b.log.AppendReserved(runlog.TypeBatch, payload)
	if err != nil {
		// Storing batches makes room on a full disk, so it must continue: the batch stays
		// open and is tried again at the next tick.
		if b.refusals.cut != err.Error() {
			b.refusals.cut = err.Error()
			b.o.Log.Error().Err(err).Msg("cannot cut a batch; it stays open")
		}
		return
	}
	b.refusals.cut = ""
	delete(b.open, batch.bin)
	batch.named.ID = rec.ID
	batch.named.CutAt(pos, len(payload))
	batch.runs = runlog.Extents{}
	b.queue.batches = append(b.queue.batches, batch)
	b.messages.named(batch.messages)
	b.m.cut.With(string(why)).Inc()
	b.wake.Broadcast()
}

// reopen adds runs that no batch holds to the open batch, or to several if they are too
// many for one. since converts an arrival to a time. b.mu is held.
func (b *Buffer) reopen(bin runlog.Bin, found []foundRun, since func(came uint32) time.Time) {
	young := b.open[bin] // a request may wait for it, so it stays the open one
	delete(b.open, bin)
	var old *Batch
	for _, f := range found {
		if old = b.open[bin]; old == nil {
			old = newBatch(b, bin, time.Now())
			b.open[bin] = old
		}
		if t := since(f.came); t.Before(old.since) {
			old.since = t
		}
		old.add(f.Extent, f.span, int(f.records), int64(f.bytes))
		b.cut(old, b.o.why(old, pressure{}))
	}
	if young == nil {
		return
	}
	if old = b.open[bin]; old != nil {
		young.runs = runlog.Merged(&old.runs, &young.runs)
		young.named.First = min(young.named.First, old.named.First)
		young.named.Last = max(young.named.Last, old.named.Last)
		young.named.Held += old.named.Held
		young.named.Records += old.named.Records
		young.named.Bytes += old.named.Bytes
		young.span.Extend(old.span)
		if old.since.Before(young.since) {
			young.since = old.since
		}
	}
	b.open[bin] = young
	b.cut(young, b.o.why(young, pressure{}))
}
