package buffer

import (
	"time"

	"blobtail/buffer/runlog"
)

// adopt hands what the replay found to the Buffer, whose own runs, batches and
// origins are all younger.
func (b *Buffer) adopt(p *replay, start time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, found := range p.open {
		if found = p.leaveOutMessages(found); len(found) > 0 {
			b.reopen(k, found, p.since)
		}
	}
	var queue []*Batch
	for _, batch := range p.order {
		if p.batches[batch.named.ID] == batch {
			queue = append(queue, batch)
			p.adoptMessages(batch)
		}
	}
	b.o.Log.Info().Int("batches", len(queue)).Int("open", len(p.open)).Int("committed", p.commits).
		Int("damaged", p.damaged).Dur("took", time.Since(start)).Msg("the log is replayed")
	b.queue = append(queue, b.queue...)
	for seg, n := range p.pending {
		b.pending[seg] += n
	}
	b.held += p.held
	b.m.damaged.Add(float64(p.damaged))
	b.adoptOrigins(p)
	b.adoptRecent(p)
	b.loseDamaged(&p.damages)
	b.replayed = true
	b.wake.Broadcast()
}

// leaveOutMessages takes the runs that messages brought out of those that no
// batch record names: no one was told that they are safe, and they come again.
// b.mu is held.
func (p *replay) leaveOutMessages(found []foundRun) (left []foundRun) {
	left = found[:0]
	for _, f := range found {
		if f.m == nil {
			left = append(left, f)
			continue
		}
		p.leftOut[f.Pos] = true
		p.lower(f.Pos.Segment(), 1)
		p.held -= int64(f.Len)
		if !f.m.gone {
			f.m.gone = true
			p.b.o.Messages.Dropped(f.m.reply)
		}
	}
	return left
}

// adoptMessages keeps account of the messages of a batch that batch records name
// whole, which this process will store. b.mu is held.
func (p *replay) adoptMessages(batch *Batch) {
	for _, m := range batch.messages {
		if m.open > 0 || m.gone || p.b.messages[m.origin] == m {
			continue
		}
		p.b.remember(m)
		p.b.o.Messages.Found(m.reply)
	}
}

// adoptOrigins puts the origins that the log remembers before those that came
// since. b.mu is held.
func (b *Buffer) adoptOrigins(p *replay) {
	young := b.origins
	b.origins = newOriginMemory()
	add := func(o rememberedOrigin) {
		if old, ok := b.origins.get(o.origin); ok && !old.surelyCopies(&o) {
			b.twice.add(o.origin)
		}
		b.origins.add(o)
	}
	for _, o := range p.origins {
		add(o)
	}
	for i := range young.ring {
		add(young.ring[(young.next+i)%len(young.ring)])
	}
}

// adoptRecent puts the runs that the log has before those that came since, but for
// those that are left out: they come again. b.mu is held.
func (b *Buffer) adoptRecent(p *replay) {
	young := b.recent
	b.recent = p.recent
	for i := range young.len() {
		at, service := young.at(i)
		b.recent.add(at, service)
	}
	b.recent.last = max(b.recent.last, young.last)
	b.recent.synced = young.synced
	b.recent.drop(p.leftOut)
}

// reopen makes runs that no batch holds part of the open batch, or of several
// where they are too many for one. since is when a run came. b.mu is held.
func (b *Buffer) reopen(k runlog.Bin, found []foundRun, since func(came uint32) time.Time) {
	young := b.open[k] // may be waited for, so it stays the open one
	delete(b.open, k)
	var old *openBatch
	for _, f := range found {
		if old = b.open[k]; old == nil {
			old = newOpenBatch(k)
			b.open[k] = old
		}
		if t := since(f.came); t.Before(old.since) {
			old.since = t
		}
		old.runs.Add(f.Extent)
		old.span.Extend(f.seconds.Of(k))
		old.records += int(f.records)
		old.bytes += int64(f.bytes)
		if old.bytes >= b.o.Size {
			b.cut(old)
		}
	}
	if young == nil {
		return
	}
	if old = b.open[k]; old != nil {
		young.runs = runlog.Merged(&old.runs, &young.runs)
		young.records += old.records
		young.bytes += old.bytes
		young.span.Extend(old.span)
		if old.since.Before(young.since) {
			young.since = old.since
		}
	}
	b.open[k] = young
	if young.bytes >= b.o.Size {
		b.cut(young)
	}
}
