package buffer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"blobtail/record"
	"blobtail/wal"
)

// LiveQuery says what a snapshot is to hold.
type LiveQuery struct {
	// Match says which services; nil: all. It is called with the buffer locked.
	Match func(service string) bool
	// From and To bound the time, half open, in Unix nanoseconds; a To of
	// math.MaxInt64 bounds nothing.
	From, To int64
	// Keep says which records; nil: all. A line is good during the call.
	Keep func(line []byte) bool
	// Newest is how many records, the last ones; 0: all.
	Newest int
	// Follow asks not for what blobs may lack, but for what was appended behind
	// After, whether it is stored or not.
	Follow bool
	// After is a Position; 0: all that is remembered.
	After uint64
}

// Live is a snapshot of what the log holds and no blob may have yet. What is
// stored after it was taken is still in it, so who takes it first and looks for
// blobs then misses nothing. It keeps its part of the log until it is closed.
type Live struct {
	b        *Buffer
	q        LiveQuery
	units    []*unit
	batches  []*unit // of who follows: where runs are that came twice
	twice    bool    // there are such
	position uint64
	behind   bool

	pinned bool
	pin    uint32 // the first segment that is needed
	close  sync.Once
	closed chan struct{}
}

// errEnded is what Live returns where there was no replay to wait for.
var errEnded = errors.New("the buffer ended before the log was replayed")

// Live takes a snapshot: of all that is accepted and may not be in a blob, or for
// who follows, of all that came since. It waits until the log of a start is
// replayed, and until all that it holds is durable. Close must be called.
func (b *Buffer) Live(ctx context.Context, q LiveQuery) (*Live, error) {
	if err := b.waitForReplay(ctx); err != nil {
		return nil, err
	}
	l, upto := b.snapshot(q)
	if upto != 0 {
		if err := b.log.Sync(upto); err != nil {
			l.Close()
			return nil, fmt.Errorf("sync what a snapshot holds: %w", err)
		}
	}
	return l, nil
}

func (b *Buffer) waitForReplay(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	stop := context.AfterFunc(ctx, func() {
		b.mu.Lock()
		b.wake.Broadcast()
		b.mu.Unlock()
	})
	defer stop()
	for !b.replayed && ctx.Err() == nil && !b.closing {
		b.wake.Wait()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if !b.replayed {
		return errEnded
	}
	return nil
}

// snapshot also returns what must be durable before anything of it is given out,
// 0 where all is.
func (b *Buffer) snapshot(q LiveQuery) (*Live, wal.Pos) {
	if q.Follow {
		// What is stored pins nothing, so no segment may be on its way out.
		b.releasing.Lock()
		defer b.releasing.Unlock()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	defer endIfPanicking()
	l := &Live{b: b, q: q, pin: math.MaxUint32, closed: make(chan struct{})}
	end := max(b.recent.last, wal.Pos(b.log.Active())<<32)
	l.position = uint64(end)
	if !q.Follow {
		l.units = l.unstored()
	} else if l.follow(end); len(b.twice) > 0 {
		l.twice, l.batches = true, l.unstored()
	}
	if len(l.units) > 0 { // then all that is needed is
		l.pinned = true
		b.pinned[l.pin]++
	}
	return l, b.recent.synced
}

// unstored gathers the batches, open and cut. b.mu is held.
func (l *Live) unstored() (units []*unit) {
	match := remember(l.q.Match)
	want := func(service string, s span) bool { return s.touches(l.q.From, l.q.To) && match(service) }
	for k, ob := range l.b.open {
		if want(k.service, ob.span) {
			l.needs(ob.runs.first())
			runs := ob.runs
			runs.enc = runs.enc[:len(runs.enc):len(runs.enc)] // it grows behind this only
			units = append(units, &unit{key: k, runs: runs, span: ob.span})
		}
	}
	for _, batch := range l.b.queue {
		if want(batch.key.service, batch.span) {
			if len(batch.runs) > 0 {
				l.needs(wal.Pos(batch.runs[0].segment) << 32)
			}
			l.needs(batch.record)
			units = append(units, &unit{
				key: batch.key, span: batch.span, of: batch,
				batch: &Batch{b: l.b, id: batch.id, key: batch.key, records: batch.records, bytes: batch.bytes, place: batch.place},
			})
		}
	}
	return units
}

// follow gathers the runs behind After that are remembered. b.mu is held.
func (l *Live) follow(end wal.Pos) {
	r := l.b.recent
	after := wal.Pos(l.q.After)
	if after > end {
		l.behind, after = true, 0 // it is of another log
	}
	if after < r.forgotten {
		l.behind = true
	}
	match := remember(l.q.Match)
	front := l.b.log.Front()
	u := &unit{follow: true, span: span{math.MinInt64, math.MaxInt64}}
	for i := r.since(after); i < r.len(); i++ {
		e, service := r.at(i)
		if !match(service) {
			continue
		}
		if e.pos.Segment() < front {
			l.behind = true
			continue
		}
		u.runs.add(e)
	}
	if u.runs.n > 0 {
		l.needs(u.runs.first())
		l.units = append(l.units, u)
	}
}

// needs notes that the log is read at pos: since segments go from the front, what
// keeps the first one keeps all.
func (l *Live) needs(pos wal.Pos) { l.pin = min(l.pin, pos.Segment()) }

// remember asks once for each service.
func remember(match func(string) bool) func(string) bool {
	if match == nil {
		return func(string) bool { return true }
	}
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

// Position is where the log ended: all that is appended later, and nothing of
// what this snapshot was taken of, lies behind it. Positions outlive restarts.
func (l *Live) Position() uint64 { return l.position }

// Behind reports, of a snapshot for who follows, that some of what came behind
// After is not remembered any more, or no longer in the log.
func (l *Live) Behind() bool { return l.behind }

// Close lets go of the log. It must not be called while Each runs; a second call
// does nothing.
func (l *Live) Close() {
	l.close.Do(func() {
		close(l.closed)
		if l.pinned {
			l.b.unpin(l.pin)
		}
	})
}

func (b *Buffer) unpin(segment uint32) {
	b.mu.Lock()
	if b.pinned[segment]--; b.pinned[segment] == 0 {
		delete(b.pinned, segment)
	}
	b.mu.Unlock()
	if err := b.release(); err != nil && !errors.Is(err, wal.ErrClosed) {
		b.o.Log.Error().Err(err).Msg("cannot let go of the log behind a snapshot")
	}
}

var errClosed = errors.New("the snapshot is closed")

// Each calls emit for the records in the order of (time, origin, index), copies
// left out. An entry is valid during the call. What the log cannot give does not
// keep back the rest: Each returns a [*MissingError] when all else is given out.
// Any other error is what emit or ctx returned, or the log's end.
func (l *Live) Each(ctx context.Context, emit func(e *record.Entry) error) error {
	select {
	case <-l.closed:
		return errClosed
	default:
	}
	r := &liveReader{ctx: ctx, b: l.b, q: l.q}
	units := anew(l.units)
	if l.twice {
		r.twice = &twiceReader{in: liveReader{ctx: ctx, b: l.b, q: l.q}, batches: anew(l.batches)}
	}
	var err error
	if l.q.Newest > 0 {
		err = r.newest(units, emit)
	} else {
		err = r.all(units, emit)
	}
	if err == nil && r.missing.First != nil {
		err = &r.missing
	}
	return err
}

// anew is units that nothing is known of yet.
func anew(units []*unit) []*unit {
	fresh := make([]*unit, len(units))
	for i, u := range units {
		again := *u
		fresh[i] = &again
	}
	return fresh
}

// MissingError says what a snapshot should hold and the log does not.
type MissingError struct {
	Batches int // that cannot be read at all, or lack runs
	Runs    int // that do not read
	First   error
}

// Error says how much is missing, and what was the first.
func (e *MissingError) Error() string {
	return fmt.Sprintf("%d batches and %d runs of the log cannot be read: %v", e.Batches, e.Runs, e.First)
}

// Unwrap returns the first reason.
func (e *MissingError) Unwrap() error { return e.First }

func (e *MissingError) batch(err error) {
	e.Batches++
	e.note(err)
}

func (e *MissingError) run(err error) {
	e.Runs++
	e.note(err)
}

func (e *MissingError) note(err error) {
	if e.First == nil {
		e.First = err
	}
}
