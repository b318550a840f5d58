package buffer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"blobtail/wal"
)

// replay is what a start learns from the log, oldest record first. It touches
// nothing of the Buffer before it is done, so requests are taken meanwhile.
type replay struct {
	b       *Buffer
	open    map[key][]foundRun
	batches map[[16]byte]*Batch
	order   []*Batch
	pending map[uint32]int
	origins []rememberedOrigin
	commits int
	damaged int
}

// foundRun is a run that no batch record names so far.
type foundRun struct {
	extent
	records uint32
	bytes   uint32
}

// replay reads the log as it was found on opening and takes up what is not
// stored: batches that have a record go on under the same id and name, runs that
// no record names become part of the open batches.
func (b *Buffer) replay(ctx context.Context) error {
	start := time.Now()
	p := &replay{
		b:       b,
		open:    map[key][]foundRun{},
		batches: map[[16]byte]*Batch{},
		pending: map[uint32]int{},
	}
	for rec, err := range b.log.Replay(ctx) {
		var damage *wal.CorruptError
		if errors.As(err, &damage) {
			p.damaged++
			b.m.damaged.Inc()
			b.o.Log.Error().Err(err).Msg("part of the log is damaged; the rest is used, the segment is in quarantine")
			continue
		}
		if err == nil {
			err = p.record(rec)
		}
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("replay the log: %w", err)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	b.adopt(p, start)
	return b.release()
}

func (p *replay) record(rec wal.Record) error {
	switch rec.Type {
	case typeRuns:
		return p.runs(rec)
	case typeBatch:
		return p.batch(rec)
	case typeClaim:
		id, pin, err := parseClaim(rec.Payload)
		if batch := p.batches[id]; batch != nil {
			batch.pin = slices.Clone(pin)
		}
		return err
	case typeCommit:
		id, _, err := parseCommit(rec.Payload)
		if batch := p.batches[id]; batch != nil {
			p.settled(batch)
		}
		return err
	}
	return fmt.Errorf("record of type %d in segment %d: the log was written by a newer version; use that one", rec.Type, rec.Pos.Segment())
}

func (p *replay) runs(rec wal.Record) error {
	head, err := parseRuns(rec.Payload, func(off int, r run, n int) {
		e := extent{rec.Pos + wal.Pos(off), uint32(n)}
		p.open[r.key] = append(p.open[r.key], foundRun{e, uint32(r.records), uint32(len(r.lines))})
		p.pending[rec.Pos.Segment()]++
	})
	if err != nil {
		return fmt.Errorf("runs record at %d in segment %d: %w", rec.Pos.Offset(), rec.Pos.Segment(), err)
	}
	if !head.origin.IsZero() {
		p.origins = append(p.origins, rememberedOrigin{head.origin, rec.Pos, head.sum})
		if len(p.origins) >= 2*remembered {
			p.origins = slices.Clone(p.origins[len(p.origins)-remembered:])
		}
	}
	return nil
}

// batch takes the runs that a batch record names out of the open ones. Runs that
// it names and that are not there were in segments that are deleted already:
// then its commit follows.
func (p *replay) batch(rec wal.Record) error {
	r, err := parseBatch(rec.Payload)
	if err != nil {
		return err
	}
	batch := &Batch{
		b: p.b, id: r.id, key: r.key, records: r.records, bytes: r.bytes, pin: slices.Clone(r.pin),
		at: extent{rec.Pos, uint32(len(rec.Payload))}, fate: newFate(), since: time.Now(),
	}
	next, stop := iter.Pull(r.runs.all())
	defer stop()
	named, ok := next()
	open := p.open[r.key]
	left := open[:0]
	for _, f := range open { // both rise
		for ok && named.pos < f.pos {
			named, ok = next()
		}
		if ok && named.pos == f.pos {
			batch.runs.add(f.pos.Segment())
		} else {
			left = append(left, f)
		}
	}
	if p.open[r.key] = left; len(left) == 0 {
		delete(p.open, r.key)
	}
	p.batches[r.id] = batch
	p.order = append(p.order, batch)
	return nil
}

// settled lets go of the runs of a committed batch.
func (p *replay) settled(batch *Batch) {
	for _, s := range batch.runs {
		if p.pending[s.segment] -= s.runs; p.pending[s.segment] == 0 {
			delete(p.pending, s.segment)
		}
	}
	delete(p.batches, batch.id)
	p.commits++
}

// adopt hands what the replay found to the Buffer, whose own runs, batches and
// origins are all younger.
func (b *Buffer) adopt(p *replay, start time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var queue []*Batch
	for _, batch := range p.order {
		if p.batches[batch.id] == batch {
			queue = append(queue, batch)
		}
	}
	b.o.Log.Info().Int("batches", len(queue)).Int("open", len(p.open)).Int("committed", p.commits).
		Int("damaged", p.damaged).Dur("took", time.Since(start)).Msg("the log is replayed")
	b.queue = append(queue, b.queue...)
	for seg, n := range p.pending {
		b.pending[seg] += n
	}
	for k, found := range p.open {
		b.reopen(k, found)
	}
	young := b.origins
	b.origins = newOriginMemory()
	for _, o := range p.origins {
		b.origins.add(o)
	}
	for i := range young.ring {
		b.origins.add(young.ring[(young.next+i)%len(young.ring)])
	}
	b.replayed = true
	b.wake.Broadcast()
}

// reopen puts runs of before the start in front of an open batch. b.mu is held.
func (b *Buffer) reopen(k key, found []foundRun) {
	ob := b.open[k]
	if ob == nil {
		ob = newOpenBatch(k)
		b.open[k] = ob
	}
	young := ob.runs
	ob.runs = extents{}
	for _, f := range found {
		ob.runs.add(f.extent)
		ob.records += int(f.records)
		ob.bytes += int64(f.bytes)
	}
	ob.runs.join(&young)
	if ob.bytes >= b.o.Size {
		b.cut(ob)
	}
}
