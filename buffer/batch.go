package buffer

import (
	"context"
	"slices"
	"time"

	"blobtail/buffer/runlog"
	"blobtail/buffer/wal"
	"blobtail/record"
)

// Batch becomes one stored object: the lines of one service and period. It is open, and
// gathers runs, until it is cut. Then one batch record names its runs, and its identity
// and content never change, over any number of attempts and restarts.
//
// Buffer.mu guards an open batch. Of a cut one it guards the place, which changes when it
// is parked. The pin belongs to the worker that has taken the batch.
type Batch struct {
	b        *Buffer
	bin      runlog.Bin
	named    runlog.Named   // while it is open, without an id and a record
	runs     runlog.Extents // while it is open
	pin      []byte         // the plan of the sink, after its first call
	span     runlog.Span    // all times of its lines are in it
	messages []*message     // one for each run of a message
	done     chan struct{}  // closed when it is stored, or with err when it never will be
	err      error
	wanted   bool      // a request waits until it is stored
	since    time.Time // arrival of its oldest record
	from, to wal.Pos   // where its runs were first written, the first and the last
	try      tries
	service  *service
	places   places
}

// newBatch makes an open batch.
func newBatch(b *Buffer, bin runlog.Bin, since time.Time) *Batch {
	return &Batch{b: b, bin: bin, span: runlog.NoSpan(), done: make(chan struct{}), since: since}
}

// add adds a run to an open batch.
func (b *Batch) add(e runlog.Extent, span runlog.Span, records int, bytes int64) {
	b.runs.Add(e)
	b.span.Extend(span)
	b.named.Hold(e)
	b.from, b.to = b.named.First, max(b.to, e.Pos)
	b.named.Records += records
	b.named.Bytes += bytes
}

// isOpen reports whether no batch record names its runs yet.
func (b *Batch) isOpen() bool { return b.named.Record == 0 }

// holds reports whether the log had a run of the batch between two positions, where a request is.
// A cut batch answers for all positions between its runs.
func (b *Batch) holds(first, end wal.Pos) bool {
	if b.from >= end || b.to < first {
		return false
	}
	if !b.isOpen() {
		return true
	}
	for e := range b.runs.All() {
		if e.Pos >= first {
			return e.Pos < end
		}
	}
	return false
}

// mayHave reports whether the lines of one of the runs may be in the batch. The first runs are of
// its service.
func (b *Batch) mayHave(runs []repeatedRun) bool {
	for _, r := range runs {
		if r.service != b.bin.Service {
			break
		}
		if b.span.Touches(r.span.First, r.span.Last+1) || r.service == record.RejectedService {
			return true
		}
	}
	return false
}

// newCut makes the batch that r, a record at a place, names.
func newCut(b *Buffer, r *runlog.BatchRecord, at runlog.Place, since time.Time) *Batch {
	batch := newBatch(b, r.Bin, since)
	batch.named = runlog.Named{ID: r.ID, Records: r.Records, Bytes: r.Bytes, Place: at}
	batch.pin, batch.span = r.Pin, r.Span()
	return batch
}

// ID is the random identity of the batch.
func (b *Batch) ID() [16]byte { return b.named.ID }

// Service is the service of all its lines.
func (b *Batch) Service() string { return b.bin.Service }

// Period is the start of the slice of event time that all its lines lie in.
func (b *Batch) Period() time.Time { return b.bin.Start() }

// Pin is the result of the sink's Plan, or of the last Walk.
func (b *Batch) Pin() []byte { return b.pin }

// Attempts is the number of failed Writes of this batch since the start.
func (b *Batch) Attempts() int { return b.try.failed }

// Walk moves the pin on. Nothing is recorded: after a restart the sink starts at the
// first name again, so it must walk the same way and find its own blob.
func (b *Batch) Walk(pin []byte) { b.pin = slices.Clone(pin) }

// Each reads the batch from the log and calls f for its lines in the order of time,
// origin and index, each with its newline. A line is valid during the call. The error
// is a [*runlog.RotError] if the log no longer has the batch as it was cut, or it
// comes from f or the disk.
func (b *Batch) Each(ctx context.Context, f func(line []byte, t int64, origin record.Origin, index uint32) error) error {
	return b.loaded(ctx, func(l *runlog.Loader, rec *runlog.BatchRecord) error {
		if err := l.Load(ctx, rec); err != nil {
			return err
		}
		b.b.note(l.Renamed())
		return l.Each(f)
	})
}

// loaded calls f with a loader and with the batch's record from the log.
func (b *Batch) loaded(ctx context.Context, f func(*runlog.Loader, *runlog.BatchRecord) error) error {
	var l *runlog.Loader
	select {
	case l = <-b.b.loaders:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { b.b.loaders <- l }()
	rec, err := b.named.ReadRecord(b.b.log, b.named.ID)
	if err != nil {
		return err
	}
	return f(l, &rec)
}
