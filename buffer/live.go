package buffer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"blobtail/buffer/runlog"
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
	units    []*runlog.Unit
	batches  []*runlog.Unit // of who follows: where runs are that came twice
	twice    bool           // there are such
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
	b.awaitReplay(ctx)
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
	} else if l.follow(end); len(b.repeats.twice) > 0 {
		l.twice, l.batches = true, l.unstored()
	}
	if len(l.units) > 0 { // then all that is needed is
		l.pinned = true
		b.account.pinned[l.pin]++
	}
	return l, b.recent.synced
}

// unstored gathers the batches, open and cut. b.mu is held.
func (l *Live) unstored() (units []*runlog.Unit) {
	match := askOnce(l.q.Match)
	want := func(service string, s runlog.Span) bool { return s.Touches(l.q.From, l.q.To) && match(service) }
	for bin, ob := range l.b.open {
		if want(bin.Service, ob.span) {
			l.needs(ob.runs.First())
			units = append(units, &runlog.Unit{Bin: bin, Span: ob.span, Runs: ob.runs.Fixed()})
		}
	}
	for _, batch := range l.b.queue.batches {
		if want(batch.bin.Service, batch.span) {
			if len(batch.named.Runs) > 0 {
				l.needs(wal.Pos(batch.named.Runs[0].Segment) << 32)
			}
			l.needs(batch.named.Record)
			named := batch.named
			units = append(units, &runlog.Unit{Bin: batch.bin, Span: batch.span, Batch: &named, Measure: batch.measured})
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
	match := askOnce(l.q.Match)
	front := l.b.log.Front()
	u := &runlog.Unit{Span: runlog.Span{First: math.MinInt64, Last: math.MaxInt64}}
	for i := r.since(after); i < r.len(); i++ {
		e, service := r.at(i)
		if !match(service) {
			continue
		}
		if e.Pos.Segment() < front {
			l.behind = true
			continue
		}
		u.Runs.Add(e)
	}
	if u.Runs.Len() > 0 {
		l.needs(u.Runs.First())
		l.units = append(l.units, u)
	}
}

// needs notes that the log is read at pos: since segments go from the front, what
// keeps the first one keeps all.
func (l *Live) needs(pos wal.Pos) { l.pin = min(l.pin, pos.Segment()) }

// askOnce asks once for each service.
func askOnce(match func(string) bool) func(string) bool {
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
	if b.account.pinned[segment]--; b.account.pinned[segment] == 0 {
		delete(b.account.pinned, segment)
	}
	b.mu.Unlock()
	b.releaseLogged()
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
	q := runlog.Query{From: l.q.From, To: l.q.To, Keep: l.q.Keep, Newest: l.q.Newest}
	units := anew(l.units)
	if l.q.Follow {
		follow := func(*runlog.Run) (runlog.Lots, error) { return nil, nil }
		if l.twice {
			t := &twiceReader{ctx, l.b, runlog.NewReading(l.b.log, &l.b.room, q), anew(l.batches)}
			follow = t.lots
		}
		for _, u := range units {
			u.Follow = follow
		}
	}
	return runlog.NewReading(l.b.log, &l.b.room, q).Each(ctx, units, emit)
}

// anew is units that no reading has.
func anew(units []*runlog.Unit) []*runlog.Unit {
	fresh := make([]*runlog.Unit, len(units))
	for i, u := range units {
		again := *u
		fresh[i] = &again
	}
	return fresh
}

// MissingError says what a snapshot should hold and the log does not.
type MissingError = runlog.MissingError
