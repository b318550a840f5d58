package buffer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"time"

	"blobtail/record"
	"blobtail/wal"
)

// replay is what a start learns from the log, oldest record first. It touches
// nothing of the Buffer before it is done, so requests are taken meanwhile.
type replay struct {
	b       *Buffer
	start   time.Time
	segment wal.Segment // the last one that was asked for
	open    map[key][]foundRun
	batches map[[16]byte]*Batch
	order   []*Batch
	broken  map[*Batch][]foundRun // batches that lack runs, with those that are there
	passed  map[wal.Pos]bool      // records that cannot be used
	pending map[uint32]int
	held    int64
	origins []rememberedOrigin
	recent  *recent
	leftOut map[wal.Pos]bool // runs of messages that come again
	rotten  bool             // there was damage since the last record
	commits int
	damaged int
	damages damages
}

// foundRun is a run that no batch record names so far.
type foundRun struct {
	extent
	records uint32
	bytes   uint32
	m       *message // that brought it, or nil
	seconds seconds
	came    uint32 // Unix seconds
}

// replay reads the log as it was found on opening and takes up what is not
// stored: batches that have a record go on under the same id and name, runs that
// no record names become part of the open batches. Messages that no record names
// are left out: their server has them.
func (b *Buffer) replay(ctx context.Context) error {
	p, err := b.scan(ctx)
	if err != nil || p == nil {
		return err
	}
	b.adopt(p, p.start)
	if _, lost := b.Lost(); lost {
		b.o.LossFound() // before what shows it can go
	}
	return b.release()
}

// scan reads the log as it was found on opening; nil when ctx ends first. A record
// that cannot be used may have changed the replay half. So the scan begins anew
// without that record.
func (b *Buffer) scan(ctx context.Context) (*replay, error) {
	passed := map[wal.Pos]bool{}
	for {
		p, err := b.scanWithout(ctx, passed)
		if !errors.Is(err, errAgain) {
			return p, err
		}
	}
}

func (b *Buffer) scanWithout(ctx context.Context, passed map[wal.Pos]bool) (*replay, error) {
	p := &replay{
		b:       b,
		start:   time.Now(),
		open:    map[key][]foundRun{},
		batches: map[[16]byte]*Batch{},
		broken:  map[*Batch][]foundRun{},
		passed:  passed,
		pending: map[uint32]int{},
		recent:  newRecent(unknownBefore(b.log)),
		leftOut: map[wal.Pos]bool{},
	}
	for rec, err := range b.log.Replay(ctx) {
		var damage *wal.CorruptError
		if errors.As(err, &damage) {
			p.damaged++
			p.rotten = true
			p.damages.note(damage)
			b.o.Log.Error().Err(err).Msg("part of the log is damaged; the rest is used, the segment is in quarantine")
			continue
		}
		if err == nil {
			p.missing(rec.Pos)
			err = p.guarded(rec)
		}
		if err != nil {
			if ctx.Err() != nil {
				return nil, nil
			}
			return nil, fmt.Errorf("replay the log: %w", err)
		}
	}
	if ctx.Err() != nil {
		return nil, nil
	}
	p.missing(wal.Pos(b.log.Active()) << 32)
	p.salvage()
	return p, nil
}

// missing notes that what stood before pos may be damaged: what came after an
// earlier position is not all there then.
func (p *replay) missing(pos wal.Pos) {
	if p.rotten {
		p.recent.forgotten = max(p.recent.forgotten, pos-1)
	}
	p.rotten = false
}

// errAgain says that a record was added to those which cannot be used.
var errAgain = errors.New("a record cannot be used")

// guarded uses a record. One that cannot be read, or over which reading panics, is
// left out: the rest of the log is worth more.
func (p *replay) guarded(rec wal.Record) error {
	if p.passed[rec.Pos] {
		p.pass(rec)
		return nil
	}
	err := p.recovered(rec)
	if err == nil || errors.Is(err, errNewer) {
		return err
	}
	p.passed[rec.Pos] = true
	p.b.o.Log.Error().Err(err).Uint8("type", rec.Type).Uint32("segment", rec.Pos.Segment()).Uint32("offset", rec.Pos.Offset()).
		Msg("a record of the log cannot be used; the log is replayed without it, and its segment is kept in quarantine")
	return errAgain
}

func (p *replay) recovered(rec wal.Record) (err error) {
	defer recovered(&err, errAgain)
	return p.record(rec)
}

// recovered makes the panic of its caller an error that wraps as. It is to be
// deferred, and only where nothing shared is left half done.
func recovered(err *error, as error) {
	if cause := recover(); cause != nil {
		*err = fmt.Errorf("%w: panic: %v, in\n%s", as, cause, debug.Stack())
	}
}

// pass leaves out a record that cannot be used, and keeps its segment.
func (p *replay) pass(rec wal.Record) {
	p.damaged++
	p.rotten = true
	if rec.Type != typeBatch && rec.Type != typeCommit {
		p.damages.note(&wal.CorruptError{Length: int64(len(rec.Payload)), From: rec.Pos, To: rec.Pos + wal.Pos(len(rec.Payload))})
	}
	if err := p.b.log.Quarantine(rec.Pos.Segment()); err != nil {
		p.b.o.Log.Error().Err(err).Msg("the segment of a record that cannot be used is not kept")
	}
}

func (p *replay) record(rec wal.Record) error {
	switch rec.Type {
	case typeRuns:
		return p.runs(rec)
	case typeBatch:
		return p.batch(rec)
	case typeParked:
		return p.parked(rec)
	case typeCommit:
		id, _, err := parseCommit(rec.Payload)
		if batch := p.batches[id]; batch != nil {
			p.settled(batch)
		}
		return err
	}
	return fmt.Errorf("record of type %d in segment %d: %w", rec.Type, rec.Pos.Segment(), errNewer)
}

func (p *replay) runs(rec wal.Record) error {
	var m *message
	var came uint32
	var records record.Outcome // as far as the runs tell
	head, err := parseRuns(rec.Payload, func(h *runsHead, off int, r run, n int) {
		if came == 0 {
			came = p.arrival(h.arrived, rec.Pos)
		}
		if h.reply != "" {
			if m == nil {
				m = &message{reply: h.reply, rememberedOrigin: h.remembered(rec.Pos)}
			}
			m.left++
			m.open++
		}
		if r.key.service == record.RejectedService {
			records.Rejected += uint32(r.records)
		} else {
			records.Accepted += uint32(r.records)
		}
		e := extent{rec.Pos + wal.Pos(off), uint32(n)}
		p.recent.add(e, r.key.service)
		p.open[r.key] = append(p.open[r.key], foundRun{e, uint32(r.records), uint32(len(r.lines)), m, secondsOf(&r), came})
		p.pending[rec.Pos.Segment()]++
		p.held += int64(n)
	})
	if err != nil {
		return err
	}
	if !head.origin.IsZero() && head.reply == "" {
		o := head.remembered(rec.Pos)
		if o.outcome == (record.Outcome{}) {
			o.outcome = records
		}
		o.expired = max(o.outcome.Accepted, records.Accepted) - records.Accepted
		p.origins = append(p.origins, o)
		if len(p.origins) >= 2*remembered {
			p.origins = slices.Clone(p.origins[len(p.origins)-remembered:])
		}
	}
	return nil
}

// remembered is the request whose record stands at pos.
func (h *runsHead) remembered(pos wal.Pos) rememberedOrigin {
	return rememberedOrigin{origin: h.origin, pos: pos, sum: h.sum, outcome: h.outcome, defaultTime: h.defaultTime}
}

// arrival is when what stands at pos came, in Unix seconds: as its record says (in
// milliseconds), else when its segment was made.
func (p *replay) arrival(ms int64, pos wal.Pos) uint32 {
	if ms == 0 {
		if p.segment.Number != pos.Segment() {
			p.segment, _ = p.b.log.Segment(pos.Segment())
		}
		ms = p.segment.Created.UnixMilli()
	}
	return uint32(min(max(ms/1000, 1), math.MaxUint32))
}

// since is the time of an arrival as this process has it. A clock that was set back
// since makes nothing younger than now, nor older as this process goes on.
func (p *replay) since(came uint32) time.Time {
	return p.start.Add(-max(0, p.start.Sub(time.Unix(int64(came), 0))))
}

// batch takes the runs that a batch record names out of the open ones.
func (p *replay) batch(rec wal.Record) error {
	r, err := parseBatch(rec.Payload)
	if err != nil {
		return err
	}
	found := p.takeNamed(r.key, &r.runs)
	came := p.arrival(r.since, rec.Pos)
	for _, f := range found {
		came = min(came, f.came)
	}
	batch := p.add(rec, r, placeOfBatch(rec.Pos, len(rec.Payload), &r.runs), came)
	batch.hold(found)
	for _, f := range found {
		if f.m != nil {
			f.m.open--
			batch.messages = append(batch.messages, f.m)
		}
	}
	if len(found) < r.runs.n {
		p.broken[batch] = found
		p.damages.lacks(batch, &r.runs, found)
		return nil
	}
	batch.span = noSpan()
	for _, f := range found {
		batch.span.add(f.seconds.of(r.key))
	}
	return nil
}

// parked puts a copy in place of the batch that it was made of.
func (p *replay) parked(rec wal.Record) error {
	r, head, err := parseParked(rec.Payload)
	if err != nil {
		return err
	}
	old := p.batches[r.id]
	batch := p.add(rec, r, placeOfCopy(rec.Pos, head, len(rec.Payload)), p.arrival(r.since, rec.Pos))
	if old != nil {
		p.letGo(old)
		p.damages.saved(old)
		batch.messages = old.messages
		batch.span = old.span
		if old.since.Before(batch.since) {
			batch.since = old.since
		}
	}
	p.pending[rec.Pos.Segment()]++
	p.held += batch.held
	return nil
}

func (p *replay) add(rec wal.Record, r batchRecord, at place, came uint32) *Batch {
	batch := &Batch{
		b: p.b, id: r.id, key: r.key, records: r.records, bytes: r.bytes, pin: slices.Clone(r.pin), span: periodSpan(r.key),
		place: at, fate: newFate(), since: p.since(came),
	}
	p.batches[r.id] = batch
	p.order = append(p.order, batch)
	return batch
}

// hold makes the batch hold the segments of the runs that were found of it.
func (b *Batch) hold(found []foundRun) {
	b.place.runs, b.held = nil, 0
	for _, f := range found {
		b.place.runs.add(f.pos.Segment())
		b.held += int64(f.len)
	}
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
			batch.hold(p.broken[batch])
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
		for _, m := range batch.messages {
			m.open++ // nothing names it any more
		}
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

// settled lets go of the runs of a committed batch. The process that stored it
// may have ended before it could acknowledge the messages.
func (p *replay) settled(batch *Batch) {
	p.letGo(batch)
	p.damages.saved(batch)
	delete(p.batches, batch.id)
	p.commits++
	for _, m := range batch.messages {
		if m.left--; m.left == 0 && m.open == 0 {
			p.acknowledge(m.reply)
		}
	}
	batch.messages = nil // p.order keeps the batch, and a log holds many
}

func (p *replay) acknowledge(reply string) {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	defer endIfPanicking()
	p.b.o.Messages.Stored(reply)
}

// letGo says that the runs of a batch hold the log no longer.
func (p *replay) letGo(batch *Batch) {
	for _, s := range batch.place.runs {
		p.lower(s.segment, s.runs)
	}
	p.held -= batch.held
	delete(p.broken, batch)
}

func (p *replay) lower(segment uint32, runs int) {
	if p.pending[segment] -= runs; p.pending[segment] == 0 {
		delete(p.pending, segment)
	}
}
