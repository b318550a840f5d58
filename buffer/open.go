package buffer

import (
	"crypto/rand"
	"maps"
	"slices"
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

// breath is how many batches are looked at before requests are let in. A sender may have opened a
// hundred thousand, of as many hours, and to cut them all takes seconds.
const breath = 1000

// demand is the open batches that requests wait for.
type demand struct {
	batches []*Batch  // some may be cut since
	cut     time.Time // when batches were last cut for this
}

// due is the time at which its age cuts an open batch.
func (o *Options) due(ob *Batch) time.Time {
	if ob.named.Bytes >= o.Min {
		return ob.since.Add(min(o.Age, o.MaxAge))
	}
	return ob.since.Add(o.MaxAge)
}

// cutAged cuts the batches that are due at a tick. b.mu is held, but for moments between batches.
func (b *Buffer) cutAged(now time.Time) {
	p := pressure{now: now, requests: now.Sub(b.demand.cut) >= b.o.StoredEvery, full: b.short(now)}
	due := b.index.due.while(func(ob *Batch) bool { return !now.Before(b.o.due(ob)) })
	if b.log.Size() > b.o.Soft {
		p.front = b.log.Front()
		due = slices.AppendSeq(due, maps.Keys(b.index.segments[p.front]))
	}
	if p.requests {
		due = append(due, b.demand.batches...)
		b.demand.batches = nil
	}
	if p.full {
		due = slices.Collect(maps.Values(b.index.open))
	}
	b.cutDue(due, p)
	if b.crowded() {
		b.cutMessages()
	}
}

// cutDue cuts those of the batches that are open and due. b.mu is held, but for a moment after so
// many batches.
func (b *Buffer) cutDue(batches []*Batch, p pressure) {
	for n, ob := range batches {
		if n%breath == breath-1 {
			b.mu.Unlock()
			b.mu.Lock()
		}
		if b.index.open[ob.bin] != ob {
			continue // it is cut
		}
		why := b.o.why(ob, p)
		if why == byRequest {
			b.demand.cut = p.now
		}
		b.cut(ob, why)
		if why == byRequest && ob.isOpen() {
			b.demand.batches = append(b.demand.batches, ob)
		}
	}
}

// gather adds the runs of the record at pos to their open batches, and cuts those
// that are full. m is the message that brought them, or nil; they came at a time. b.mu is held.
func (b *Buffer) gather(pos wal.Pos, runs []runlog.Written, m *message, came time.Time) []*Batch {
	batches := make([]*Batch, len(runs))
	for i := range runs {
		r := &runs[i]
		at := runlog.Extent{Pos: pos + wal.Pos(r.Off), Len: uint32(r.Len)}
		ob := b.index.open[r.Bin]
		if ob == nil {
			ob = newBatch(b, r.Bin, came)
			ob.add(at, r.Span, r.Records, r.Bytes)
			b.index.enterOpen(ob)
		} else {
			b.index.grow(&b.o, ob, at, r.Span, r.Records, r.Bytes)
			b.index.date(ob, came)
		}
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
	b.index.close(batch)
	batch.named.ID = rec.ID
	batch.named.CutAt(pos, len(payload))
	batch.runs = runlog.Extents{}
	b.queue.add(batch, b.queue.last+1)
	b.messages.named(batch.messages)
	b.m.cut.With(string(why)).Inc()
	b.wake.Signal()
}

// reopen adds runs that no batch holds to the open batch, or to several if they are too
// many for one. since converts an arrival to a time. b.mu is held.
func (b *Buffer) reopen(bin runlog.Bin, found []foundRun, since func(came uint32) time.Time) {
	young := b.index.open[bin] // a request may wait for it, so it stays the open one
	if young != nil {
		b.index.remove(young)
	}
	var old *Batch
	for _, f := range found {
		if old == nil {
			old = newBatch(b, bin, time.Now())
		}
		if t := since(f.came); t.Before(old.since) {
			old.since = t
		}
		old.add(f.Extent, f.span, int(f.records), int64(f.bytes))
		if why := b.o.why(old, pressure{}); why != notYet {
			b.index.enterOpen(old)
			if b.cut(old, why); old.isOpen() {
				b.index.remove(old) // the log takes no batch record now
				continue
			}
			old = nil
		}
	}
	switch {
	case young == nil && old == nil:
		return
	case young == nil:
		young = old
	case old != nil:
		young.runs = runlog.Merged(&old.runs, &young.runs)
		young.named.First = min(young.named.First, old.named.First)
		young.from, young.to = young.named.First, max(young.to, old.to)
		young.named.Held += old.named.Held
		young.named.Records += old.named.Records
		young.named.Bytes += old.named.Bytes
		young.span.Extend(old.span)
		if old.since.Before(young.since) {
			young.since = old.since
		}
	}
	b.index.enterOpen(young)
	b.cut(young, b.o.why(young, pressure{}))
}
