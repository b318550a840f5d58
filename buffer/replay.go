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
	"unique"

	"blobtail/buffer/runlog"
	"blobtail/buffer/wal"
	"blobtail/record"
	"blobtail/storage"
)

// replay is the state that a start learns from the log, oldest record first. It does not
// change the Buffer's state before it is done, so requests are accepted meanwhile.
type replay struct {
	b       *Buffer
	start   time.Time
	open    map[runlog.Bin][]foundRun
	batches map[[16]byte]*Batch
	order   []*Batch
	broken  map[*Batch][]foundRun // batches with missing runs, and the runs that were found
	passed  map[wal.Pos]bool      // records that cannot be used
	repeats repeats
	recent  *recent
	leftOut map[wal.Pos]bool // runs of messages that come again
	rotten  bool             // there was damage since the last record
	commits int
	damaged int
	damages damages
}

// foundRun is a run that no batch record names so far.
type foundRun struct {
	runlog.Extent
	records uint32
	bytes   uint32
	m       *message // that brought it, or nil
	span    runlog.Span
	came    uint32 // Unix seconds
}

func found(r *runlog.Run) foundRun {
	return foundRun{Extent: r.Extent, records: uint32(r.Records), bytes: uint32(r.Size()), span: r.Span()}
}

// replay reads the log found by Open and adopts everything that is not stored. Batches
// with a record continue under the same id and name. Runs that no record names become
// part of the open batches, except for runs of messages: their server has them.
func (b *Buffer) replay(ctx context.Context) error {
	p, err := b.readLog(ctx)
	if err != nil {
		return err
	}
	b.adopt(p, p.start)
	if _, lost := b.Lost(); lost && b.o.LossFound != nil {
		b.o.LossFound() // before the segments that show it are deleted
	}
	return b.release()
}

// readLog reads the log found by Open. A record that cannot be used may have changed the
// replay half. So the scan begins anew without that record.
func (b *Buffer) readLog(ctx context.Context) (*replay, error) {
	passed := map[wal.Pos]bool{}
	for {
		p, err := b.readWithout(ctx, passed)
		if !errors.Is(err, errAgain) {
			return p, err
		}
	}
}

func (b *Buffer) readWithout(ctx context.Context, passed map[wal.Pos]bool) (*replay, error) {
	p := &replay{
		b:       b,
		start:   time.Now(),
		open:    map[runlog.Bin][]foundRun{},
		batches: map[[16]byte]*Batch{},
		broken:  map[*Batch][]foundRun{},
		passed:  passed,
		repeats: newRepeats(),
		recent:  newRecent(b.log),
		leftOut: map[wal.Pos]bool{},
		damages: damages{missing: map[*Batch]missing{}},
	}
	for rec, err := range b.log.Replay(ctx) {
		if damage, ok := errors.AsType[*wal.CorruptError](err); ok {
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
			return nil, fmt.Errorf("replay the log: %w", err)
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	p.missing(wal.Pos(b.log.Active()) << 32)
	p.salvage()
	return p, nil
}

// missing notes damage before pos, if there is some: the log no longer has all runs
// behind an earlier position.
func (p *replay) missing(pos wal.Pos) {
	if p.rotten {
		p.recent.forgotten = max(p.recent.forgotten, pos-1)
	}
	p.rotten = false
}

// errAgain means that another record is known to be unusable.
var errAgain = errors.New("a record cannot be used")

// guarded uses a record. One that cannot be read, or over which reading panics, is
// left out: the rest of the log is worth more.
func (p *replay) guarded(rec wal.Record) error {
	if p.passed[rec.Pos] {
		p.pass(rec)
		return nil
	}
	err := p.record(rec)
	if err == nil || errors.Is(err, runlog.ErrNewer) || errors.Is(err, storage.ErrOlder) {
		return err
	}
	p.passed[rec.Pos] = true
	p.b.o.Log.Error().Err(err).Uint8("type", rec.Type).Uint32("segment", rec.Pos.Segment()).Uint32("offset", rec.Pos.Offset()).
		Msg("a record of the log cannot be used; the log is replayed without it, and its segment is kept in quarantine")
	return errAgain
}

// recovered turns the panic of its caller into an error that wraps as. Defer it only
// where a panic leaves nothing shared half done.
func recovered(err *error, as error) {
	if cause := recover(); cause != nil {
		*err = fmt.Errorf("%w: panic: %v, in\n%s", as, cause, debug.Stack())
	}
}

// pass leaves out a record that cannot be used, and keeps its segment.
func (p *replay) pass(rec wal.Record) {
	p.damaged++
	p.rotten = true
	if rec.Type != runlog.TypeBatch && rec.Type != runlog.TypeCommit {
		p.damages.note(&wal.CorruptError{Length: int64(len(rec.Payload)), From: rec.Pos, To: rec.Pos + wal.Pos(len(rec.Payload))})
	}
	if err := p.b.log.Quarantine(rec.Pos.Segment()); err != nil {
		p.b.o.Log.Error().Err(err).Msg("the segment of a record that cannot be used is not kept")
	}
}

func (p *replay) record(rec wal.Record) (err error) {
	defer recovered(&err, errAgain)
	switch rec.Type {
	case runlog.TypeRuns:
		return p.runs(rec)
	case runlog.TypeBatch:
		return p.batch(rec)
	case runlog.TypeParked:
		return p.parked(rec)
	case runlog.TypeCommit:
		id, _, err := runlog.ParseCommit(rec.Payload)
		if batch := p.batches[id]; batch != nil {
			p.settled(batch)
		}
		return err
	}
	return fmt.Errorf("record of type %d in segment %d: %w", rec.Type, rec.Pos.Segment(), runlog.ErrNewer)
}

func (p *replay) runs(rec wal.Record) error {
	var m *message
	var came uint32
	var records record.Outcome // of the runs
	head, err := runlog.ParseRuns(rec.Payload, rec.Pos, func(h *runlog.Head, r *runlog.Run) {
		if came == 0 {
			came = arrival(h.Arrived, rec)
		}
		if h.Reply != "" {
			if m == nil {
				m = &message{reply: h.Reply, rememberedOrigin: fromHead(h, rec)}
			}
			m.left++
			m.open++
		}
		if r.Service == record.RejectedService {
			records.Rejected += uint32(r.Records)
		} else {
			records.Accepted += uint32(r.Records)
		}
		f := found(r)
		f.m, f.came = m, came
		p.recent.add(r.Extent, unique.Make(r.Service))
		p.open[r.Bin] = append(p.open[r.Bin], f)
	})
	if err != nil {
		return err
	}
	if !head.Origin.IsZero() && head.Reply == "" {
		o := fromHead(&head, rec)
		if o.outcome == (record.Outcome{}) {
			o.outcome = records
		}
		o.expired = max(o.outcome.Accepted, records.Accepted) - records.Accepted
		p.repeats.add(o)
	}
	return nil
}

// fromHead is the request with this record.
func fromHead(h *runlog.Head, rec wal.Record) rememberedOrigin {
	return rememberedOrigin{
		origin: h.Origin, pos: rec.Pos, size: uint32(len(rec.Payload)),
		sum: h.Sum, outcome: h.Outcome, defaultTime: h.DefaultTime,
	}
}

// arrival is the time at which a record came, in Unix seconds. It is the record's own
// time (in milliseconds), or else the creation of its segment.
func arrival(ms int64, rec wal.Record) uint32 {
	if ms == 0 {
		ms = rec.Segment.Created.UnixMilli()
	}
	return uint32(min(max(ms/1000, 1), math.MaxUint32))
}

// since is the time of an arrival by the clock of this process. If the wall clock was
// set back, no batch is younger than now, and none ages faster.
func (p *replay) since(came uint32) time.Time {
	return p.start.Add(-max(0, p.start.Sub(time.Unix(int64(came), 0))))
}

// batch removes the runs that a batch record names from the open ones.
func (p *replay) batch(rec wal.Record) error {
	r, err := runlog.ParseBatch(rec.Payload)
	if err != nil {
		return err
	}
	found := p.takeNamed(r.Bin, &r.Runs)
	came := arrival(r.Since, rec)
	for _, f := range found {
		came = min(came, f.came)
	}
	batch := p.add(rec, &r, runlog.Place{}, came)
	batch.named.CutAt(rec.Pos, len(rec.Payload))
	for e := range r.Runs.All() {
		batch.from, batch.to = cmp.Or(batch.from, e.Pos), e.Pos
	}
	for _, f := range found {
		batch.named.Hold(f.Extent)
		if f.m != nil {
			f.m.open--
			batch.messages = append(batch.messages, f.m)
		}
	}
	if len(found) < r.Runs.Len() {
		p.broken[batch] = found
		p.damages.lacks(batch, &r.Runs, found)
		return nil
	}
	batch.span = runlog.NoSpan()
	for _, f := range found {
		batch.span.Extend(f.span)
	}
	return nil
}

// parked replaces a batch by its copy.
func (p *replay) parked(rec wal.Record) error {
	r, head, err := runlog.ParseParked(rec.Payload)
	if err != nil {
		return err
	}
	old := p.batches[r.ID]
	batch := p.add(rec, &r, runlog.PlaceOfCopy(rec.Pos, head, len(rec.Payload)), arrival(r.Since, rec))
	if old != nil {
		delete(p.broken, old)
		p.damages.saved(old)
		batch.messages = old.messages
		batch.span = old.span
		batch.from, batch.to = old.from, old.to
		if old.since.Before(batch.since) {
			batch.since = old.since
		}
	}
	return nil
}

func (p *replay) add(rec wal.Record, r *runlog.BatchRecord, at runlog.Place, came uint32) *Batch {
	batch := newCut(p.b, r, at, p.since(came))
	batch.pin = slices.Clone(r.Pin)
	p.batches[r.ID] = batch
	p.order = append(p.order, batch)
	return batch
}

// takeNamed takes the named runs from the open ones, and from broken batches: an earlier start cut
// their runs anew. A run may be missing because its segment is deleted: then the commit follows.
// Or it was never durable, but the batch record was. Or it rotted.
func (p *replay) takeNamed(k runlog.Bin, named *runlog.Extents) (found []foundRun) {
	want := make(map[wal.Pos]bool, named.Len())
	for e := range named.All() {
		want[e.Pos] = true
	}
	take := func(from []foundRun) (left []foundRun) {
		left = from[:0]
		for _, f := range from {
			if want[f.Pos] {
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
	if len(found) == named.Len() {
		return found
	}
	for batch, runs := range p.broken {
		if batch.bin == k {
			p.broken[batch] = take(runs)
		}
	}
	slices.SortFunc(found, byPosition)
	return found
}

func byPosition(a, b foundRun) int { return cmp.Compare(a.Pos, b.Pos) }

// salvage opens the runs of uncommitted batches that lack some, so that they become part
// of new ones. If the batch record was not durable, no blob has its id. If runs rotted,
// one may have it, and readers drop the records in both.
func (p *replay) salvage() {
	for batch, found := range p.broken {
		if p.batches[batch.named.ID] != batch {
			continue
		}
		delete(p.batches, batch.named.ID)
		for _, m := range batch.messages {
			m.open++ // nothing names it any more
		}
		if len(found) == 0 {
			continue
		}
		p.open[batch.bin] = append(p.open[batch.bin], found...)
		slices.SortFunc(p.open[batch.bin], byPosition)
		records := 0
		for _, f := range found {
			records += int(f.records)
		}
		p.b.m.salvaged.Inc()
		p.b.o.Log.Warn().Str("service", batch.Service()).Time("period", batch.Period()).
			Int("records", records).Int("missing", batch.named.Records-records).
			Msg("a batch lacks runs that never were durable, or are damaged; the others are cut anew")
	}
}

// settled releases the runs of a committed batch. The process that stored it may have
// ended before it could acknowledge the messages.
func (p *replay) settled(batch *Batch) {
	delete(p.broken, batch)
	p.damages.saved(batch)
	delete(p.batches, batch.named.ID)
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
