package buffer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	broken  map[*Batch][]foundRun // batches that lack runs, with those that are there
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
		broken:  map[*Batch][]foundRun{},
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
	p.salvage()
	b.adopt(p, start)
	return b.release()
}

func (p *replay) record(rec wal.Record) error {
	switch rec.Type {
	case typeRuns:
		return p.runs(rec)
	case typeBatch:
		return p.batch(rec)
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

// batch takes the runs that a batch record names out of the open ones.
func (p *replay) batch(rec wal.Record) error {
	r, err := parseBatch(rec.Payload)
	if err != nil {
		return err
	}
	batch := &Batch{
		b: p.b, id: r.id, key: r.key, records: r.records, bytes: r.bytes, pin: slices.Clone(r.pin),
		at: extent{rec.Pos, uint32(len(rec.Payload))}, fate: newFate(), since: time.Now(),
	}
	found := p.takeNamed(r.key, &r.runs)
	for _, f := range found {
		batch.runs.add(f.pos.Segment())
	}
	if len(found) < r.runs.n {
		p.broken[batch] = found
	}
	p.batches[r.id] = batch
	p.order = append(p.order, batch)
	return nil
}

// takeNamed takes the named runs from the open ones, and from broken batches,
// whose runs an earlier start cut anew. Runs that are nowhere were in segments
// that are deleted, and then the commit follows; or they were never durable, and
// only the batch record survived; or they rotted.
func (p *replay) takeNamed(k key, named *extents) (found []foundRun) {
	want := make(map[wal.Pos]bool, named.n)
	for e := range named.all() {
		want[e.pos] = true
	}
	take := func(from []foundRun) (left []foundRun) {
		left = from[:0]
		for _, f := range from {
			if want[f.pos] {
				found = append(found, f)
			} else {
				left = append(left, f)
			}
		}
		return left
	}
	if p.open[k] = take(p.open[k]); len(p.open[k]) == 0 {
		delete(p.open, k)
	}
	if len(found) == named.n {
		return found
	}
	for batch, runs := range p.broken {
		if batch.key == k {
			p.broken[batch] = take(runs)
			batch.runs = nil
			for _, f := range p.broken[batch] {
				batch.runs.add(f.pos.Segment())
			}
		}
	}
	slices.SortFunc(found, byPosition)
	return found
}

func byPosition(a, b foundRun) int { return cmp.Compare(a.pos, b.pos) }

// salvage opens the runs of batches that lack some and are not committed, so
// that they become part of new ones. Where the batch record itself was not
// durable nothing was ever put under its id; where runs rotted it may have been,
// and readers drop what then stands twice.
func (p *replay) salvage() {
	for batch, found := range p.broken {
		if p.batches[batch.id] != batch {
			continue
		}
		delete(p.batches, batch.id)
		if len(found) == 0 {
			continue
		}
		p.open[batch.key] = append(p.open[batch.key], found...)
		slices.SortFunc(p.open[batch.key], byPosition)
		records := 0
		for _, f := range found {
			records += int(f.records)
		}
		p.b.m.salvaged.Inc()
		p.b.o.Log.Warn().Str("service", batch.Service()).Time("period", batch.Period()).
			Int("records", records).Int("missing", batch.records-records).
			Msg("a batch lacks runs that never were durable, or are damaged; the others are cut anew")
	}
}

// settled lets go of the runs of a committed batch.
func (p *replay) settled(batch *Batch) {
	for _, s := range batch.runs {
		if p.pending[s.segment] -= s.runs; p.pending[s.segment] == 0 {
			delete(p.pending, s.segment)
		}
	}
	delete(p.batches, batch.id)
	delete(p.broken, batch)
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
