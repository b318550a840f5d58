package buffer

import (
	"maps"
	"time"
)

// adopt passes the result of the replay to the Buffer. The Buffer's own runs, batches and
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
		Int("damaged", p.damaged).Float64("took_seconds", time.Since(start).Seconds()).Msg("the log is replayed")
	for i, batch := range queue {
		b.index.enter(batch)
		b.queue.add(batch, int64(i-len(queue)))
	}
	b.m.damaged.Add(int64(p.damaged))
	b.adoptOrigins(p)
	b.adoptRecent(p)
	b.loseDamaged(&p.damages)
	close(b.replayed)
	b.wake.Signal()
}

// leaveOutMessages removes the runs of messages from those that no batch record names:
// they were not acknowledged, and come again. b.mu is held.
func (p *replay) leaveOutMessages(found []foundRun) (left []foundRun) {
	left = found[:0]
	for _, f := range found {
		if f.m == nil {
			left = append(left, f)
			continue
		}
		p.leftOut[f.Pos] = true
		if !f.m.gone {
			f.m.gone = true
			p.b.o.Messages.Dropped(f.m.reply)
		}
	}
	return left
}

// adoptMessages starts the account of those messages of a batch that batch records name
// whole: this process will store them. b.mu is held.
func (p *replay) adoptMessages(batch *Batch) {
	for _, m := range batch.messages {
		if m.open > 0 || m.gone || p.b.messages.byOrigin[m.origin] == m {
			continue
		}
		p.b.messages.remember(m)
		p.b.o.Messages.Found(m.reply)
	}
}

// adoptOrigins puts the origins that the log remembers before the younger ones. b.mu is
// held.
func (b *Buffer) adoptOrigins(p *replay) {
	young := b.repeats
	b.repeats = p.repeats
	for i := range young.ring {
		b.repeats.add(young.ring[(young.next+i)%len(young.ring)])
	}
	maps.Copy(b.repeats.twice, young.twice)
}

// adoptRecent puts the runs of the log before the younger ones, except for the runs that
// are left out: these come again. b.mu is held.
func (b *Buffer) adoptRecent(p *replay) {
	young := b.recent
	b.recent = &recent{forgotten: max(p.recent.forgotten, young.forgotten)}
	for _, r := range []*recent{p.recent, young} {
		for i := range r.ring {
			if run := r.at(i); !p.leftOut[run.Pos] {
				b.recent.add(run.Extent, run.service)
			}
		}
	}
}
