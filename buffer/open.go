package buffer

import (
	"context"
	"crypto/rand"
	"time"

	"blobtail/buffer/runlog"
	"blobtail/buffer/wal"
)

// openBatch gathers the runs of one bin until it is cut. Buffer.mu guards it.
type openBatch struct {
	bin      runlog.Bin
	runs     runlog.Extents
	span     runlog.Span // of the times of its lines
	messages []*message  // one for each run of a message
	records  int
	bytes    int64
	since    time.Time // arrival of its oldest record
	fate     *fate     // of the batch that it becomes
	wanted   bool      // a request waits for that
	pin      []byte    // the plan of the sink, after its first call
}

func newOpenBatch(bin runlog.Bin) *openBatch {
	return &openBatch{bin: bin, span: runlog.NoSpan(), since: time.Now(), fate: newFate()}
}

// fate is the end of a batch: done is closed when the batch is stored, or with err when
// it never will be.
type fate struct {
	done chan struct{}
	err  error
}

func newFate() *fate { return &fate{done: make(chan struct{})} }

// wait returns nil when the batch is stored.
func (f *fate) wait(ctx context.Context) error {
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

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
	byDisk     reason = "disk"     // the disk is full
	byFlush    reason = "flush"    // Flush was called
)

// allReasons are the reasons for which a batch is cut.
func allReasons() []reason {
	return []reason{bySize, byAge, byMaxAge, byRequest, byMessages, byLog, byDisk, byFlush}
}

// pressure is every influence outside of a batch that can get it cut. The zero value is
// none.
type pressure struct {
	now      time.Time
	flush    bool
	messages bool   // too many wait
	requests bool   // batches that requests wait for may be cut
	front    uint32 // of a log over its soft limit
	full     bool   // the disk
}

// why returns the reason to cut an open batch now. These are all the rules; without
// pressure only the batch's size counts.
func (o *Options) why(ob *openBatch, p pressure) reason {
	age := p.now.Sub(ob.since)
	switch {
	case ob.bytes >= o.Size:
		return bySize
	case p.flush:
		return byFlush
	case p.messages && len(ob.messages) > 0:
		return byMessages
	case p.requests && ob.wanted:
		return byRequest
	case p.front != 0 && p.front == ob.runs.First().Segment():
		return byLog
	case p.full:
		return byDisk
	case age >= o.MaxAge:
		return byMaxAge
	case age >= o.Age && ob.bytes >= o.Min:
		return byAge
	}
	return notYet
}

// requestPause is the least time between cuts for waiting requests.
const requestPause = time.Second

// cutAged cuts the batches that are due at a tick. b.mu is held.
func (b *Buffer) cutAged(now time.Time) {
	p := pressure{now: now, requests: now.Sub(b.demanded) >= requestPause, full: b.full.Load()}
	if b.log.Size() > b.o.Soft {
		p.front = b.log.Front()
	}
	b.cutAll(p)
}

// cutAll cuts every open batch that is due. b.mu is held.
func (b *Buffer) cutAll(p pressure) {
	for _, ob := range b.open {
		why := b.o.why(ob, p)
		if why == byRequest {
			b.demanded = p.now
		}
		b.cut(ob, why)
	}
}

// gather adds the runs of the record at pos to their open batches, and cuts those
// that are full. m is the message that brought them, or nil. b.mu is held.
func (b *Buffer) gather(pos wal.Pos, runs []runlog.Written, m *message) []*openBatch {
	batches, held := make([]*openBatch, len(runs)), int64(0)
	for i := range runs {
		held += int64(runs[i].Len)
	}
	b.account.add(pos.Segment(), len(runs), held)
	for i := range runs {
		r := &runs[i]
		ob := b.open[r.Bin]
		if ob == nil {
			ob = newOpenBatch(r.Bin)
			b.open[r.Bin] = ob
		}
		at := runlog.Extent{Pos: pos + wal.Pos(r.Off), Len: uint32(r.Len)}
		ob.runs.Add(at)
		b.recent.add(at, ob.bin.Service)
		ob.span.Extend(r.Span)
		ob.records += r.Records
		ob.bytes += r.Bytes
		if m != nil {
			ob.messages = append(ob.messages, m)
		}
		batches[i] = ob
		b.cut(ob, b.o.why(ob, pressure{}))
	}
	if b.messages.open >= maxOpenMessages {
		b.cutAll(pressure{messages: true})
	}
	return batches
}

// cut pins an open batch with a batch record and queues it, unless why is notYet.
// The record is not durable yet: the worker that takes the batch syncs it first.
// b.mu is held.
func (b *Buffer) cut(ob *openBatch, why reason) {
	if why == notYet {
		return
	}
	rec := runlog.BatchRecord{Bin: ob.bin, Records: ob.records, Bytes: ob.bytes, Runs: ob.runs}
	rand.Read(rec.ID[:])
	if ob.pin == nil { // a new plan for each try would use up names
		ob.pin = b.sink.Plan(ob.bin.Service, ob.bin.Start())
	}
	rec.Pin = ob.pin
	payload := rec.Append(nil)
	pos, err := b.log.AppendReserved(runlog.TypeBatch, payload)
	if err != nil {
		// Storing batches makes room on a full disk, so it must continue: the batch stays
		// open and is tried again at the next tick.
		if b.cutErr != err.Error() {
			b.cutErr = err.Error()
			b.o.Log.Error().Err(err).Msg("cannot cut a batch; it stays open")
		}
		return
	}
	b.cutErr = ""
	delete(b.open, ob.bin)
	batch := newBatch(b, &rec, runlog.PlaceOfBatch(pos, len(payload), &ob.runs), ob.since)
	batch.span, batch.messages, batch.fate = ob.span, ob.messages, ob.fate
	b.queue.batches = append(b.queue.batches, batch)
	b.messages.named(ob.messages)
	b.m.cut.WithLabelValues(string(why)).Inc()
	b.wake.Broadcast()
}

// reopen adds runs that no batch holds to the open batch, or to several if they are too
// many for one. since converts an arrival to a time. b.mu is held.
func (b *Buffer) reopen(bin runlog.Bin, found []foundRun, since func(came uint32) time.Time) {
	young := b.open[bin] // a request may wait for it, so it stays the open one
	delete(b.open, bin)
	var old *openBatch
	for _, f := range found {
		if old = b.open[bin]; old == nil {
			old = newOpenBatch(bin)
			b.open[bin] = old
		}
		if t := since(f.came); t.Before(old.since) {
			old.since = t
		}
		old.runs.Add(f.Extent)
		old.span.Extend(f.seconds.Of(bin))
		old.records += int(f.records)
		old.bytes += int64(f.bytes)
		b.cut(old, b.o.why(old, pressure{}))
	}
	if young == nil {
		return
	}
	if old = b.open[bin]; old != nil {
		young.runs = runlog.Merged(&old.runs, &young.runs)
		young.records += old.records
		young.bytes += old.bytes
		young.span.Extend(old.span)
		if old.since.Before(young.since) {
			young.since = old.since
		}
	}
	b.open[bin] = young
	b.cut(young, b.o.why(young, pressure{}))
}
