package buffer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"blobtail/buffer/runlog"
	"blobtail/buffer/wal"
	"blobtail/record"
)

// LiveQuery selects the records of a snapshot.
type LiveQuery struct {
	// Match selects the services; nil: all. It must be quick.
	Match func(service string) bool
	// From and To bound the time, half open, in Unix nanoseconds; a To of
	// math.MaxInt64 bounds nothing.
	From, To int64
	// Keep selects the records; nil: all. A line is valid during the call.
	Keep func(line []byte) bool
	// Newest limits the snapshot to that many of the newest records; 0: all.
	Newest int
	// Follow asks for the records behind After, stored or not, instead of the
	// unflushed ones.
	Follow bool
	// After is a Position; 0: everything remembered.
	After uint64
}

// Live is a snapshot of the records that the log has and blobs may lack. A batch that is
// stored later stays in it. So a reader that takes the snapshot first and lists blobs
// then misses nothing. The snapshot keeps its part of the log until it is closed.
type Live struct {
	b        *Buffer
	q        LiveQuery
	units    []runlog.Unit
	twice    []runlog.Unit // of a follower: the batches that may have runs of twice
	position uint64
	behind   bool

	pin    uint32 // the first segment that is needed, if there are units; it keeps the later ones
	closed atomic.Bool
}

var (
	errEnded  = errors.New("the buffer ended before the log was replayed")
	errClosed = errors.New("the snapshot is closed")
)

// Live takes a snapshot. It waits until the log found by the start is replayed, and until
// all records of the snapshot are durable. The caller must close it.
func (b *Buffer) Live(ctx context.Context, q LiveQuery) (*Live, error) {
	l, upto, err := b.snapshot(ctx, q)
	if err != nil {
		return nil, err
	}
	if upto != 0 {
		if err := b.log.Sync(upto); err != nil {
			l.Close()
			return nil, fmt.Errorf("sync the records of a snapshot: %w", err)
		}
	}
	return l, nil
}

// snapshot also returns the position up to which the log must be synced before the
// first record is returned, or 0.
func (b *Buffer) snapshot(ctx context.Context, q LiveQuery) (*Live, wal.Pos, error) {
	if err := b.awaitReplay(ctx); err != nil {
		return nil, 0, err
	}
	if q.Follow {
		// Stored runs hold no segment, so no segment may be deleted before it is pinned.
		b.releasing.Lock()
		defer b.releasing.Unlock()
	}
	match := q.Match
	if match == nil {
		match = func(string) bool { return true }
	}
	found, upto := b.matching(match)
	b.mu.Lock()
	defer b.mu.Unlock()
	defer endIfPanicking()
	for _, e := range b.index.since(upto) { // they came while the others were matched
		if match(e.name) {
			found = append(found, e.service)
		}
	}
	l := &Live{b: b, q: q, pin: math.MaxUint32}
	end := max(b.recent.last, wal.Pos(b.log.Active())<<32)
	l.position = uint64(end)
	if !q.Follow {
		l.units = l.unstored(found)
	} else if l.follow(end, askOnce(match)); len(b.repeats.twice) > 0 {
		l.twice = l.unstored(found)
	}
	if len(l.units) > 0 {
		b.pinned[l.pin]++
	}
	return l, b.appended, nil
}

// matching returns the services with unstored batches that match, and the number of the last one
// that was asked. Services may be many, so match is called without the lock.
func (b *Buffer) matching(match func(string) bool) (found []*service, upto uint64) {
	b.mu.Lock()
	entries := b.index.entries
	b.mu.Unlock()
	for _, e := range entries {
		if match(e.name) {
			found = append(found, e.service)
		}
		upto = e.number
	}
	return found, upto
}

// unstored gathers the batches of services, open and cut. b.mu is held.
func (l *Live) unstored(of []*service) (units []runlog.Unit) {
	n := 0
	for _, s := range of {
		n += len(s.open) + len(s.cut)
	}
	units = make([]runlog.Unit, 0, n)
	for _, s := range of {
		for _, batches := range [2][]*Batch{s.open, s.cut} {
			for _, batch := range batches {
				if batch.span.Touches(l.q.From, l.q.To) {
					units = append(units, l.unit(batch))
				}
			}
		}
	}
	return units
}

// unit is a batch as it is now. b.mu is held.
func (l *Live) unit(batch *Batch) runlog.Unit {
	l.pin = min(l.pin, batch.named.First.Segment())
	u := runlog.Unit{Bin: batch.bin, Span: batch.span, Runs: batch.runs.Fixed()}
	if !batch.isOpen() {
		named := batch.named
		u.Batch = &named
	}
	return u
}

// follow gathers the runs behind After that are remembered. b.mu is held.
func (l *Live) follow(end wal.Pos, match func(string) bool) {
	r := l.b.recent
	after := wal.Pos(l.q.After)
	if after > end {
		l.behind, after = true, 0 // it is of another log
	}
	if after < r.forgotten {
		l.behind = true
	}
	front := l.b.log.Front()
	u := runlog.Unit{Span: runlog.Span{First: math.MinInt64, Last: math.MaxInt64}}
	for i := r.since(after); i < len(r.ring); i++ {
		switch run := r.at(i); {
		case !match(run.service.Value()):
		case run.Pos.Segment() < front:
			l.behind = true
		default:
			l.pin = min(l.pin, run.Pos.Segment())
			u.Runs.Add(run.Extent)
		}
	}
	if u.Runs.Len() > 0 {
		l.units = append(l.units, u)
	}
}

// askOnce calls match once for each service.
func askOnce(match func(string) bool) func(string) bool {
	known := map[string]bool{}
	return func(service string) bool {
		is, ok := known[service]
		if !ok {
			is = match(service)
			known[service] = is
		}
		return is
	}
}

// Position is the end of the log: all later records lie behind it, and none of the
// snapshot. Positions outlive restarts.
func (l *Live) Position() uint64 { return l.position }

// Behind reports, for a follower, that some of the runs behind After are no longer
// remembered or no longer in the log.
func (l *Live) Behind() bool { return l.behind }

// Close releases the log. It must not be called while Each runs; a second call does
// nothing.
func (l *Live) Close() {
	if l.closed.Swap(true) || len(l.units) == 0 {
		return
	}
	b := l.b
	b.mu.Lock()
	if b.pinned[l.pin]--; b.pinned[l.pin] == 0 {
		delete(b.pinned, l.pin)
	}
	b.mu.Unlock()
	b.releaseLogged()
}

// Each calls emit for the records in the order of time, origin and index, each once.
// An entry is valid during the call. If the log lacks a part, Each emits the rest and
// then returns a [*MissingError]. Any other error comes from emit or ctx, or the log
// has ended.
func (l *Live) Each(ctx context.Context, emit func(e *record.Entry) error) error {
	if l.closed.Load() {
		return errClosed
	}
	q := runlog.Query{From: l.q.From, To: l.q.To, Keep: l.q.Keep, Newest: l.q.Newest}
	if l.q.Follow {
		q.Follow = l.b.lots(ctx, runlog.NewReading(l.b.log, &l.b.room, q), slices.Clone(l.twice))
	}
	return runlog.NewReading(l.b.log, &l.b.room, q).Each(ctx, l.units, emit)
}

// MissingError counts the parts of a snapshot that the log lacks.
type MissingError = runlog.MissingError
