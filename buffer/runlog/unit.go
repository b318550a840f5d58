package runlog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"blobtail/buffer/wal"
	"blobtail/record"
)

// Query selects the records of some units for a reader.
type Query struct {
	// From and To bound the time, half open, in Unix nanoseconds; a To of
	// math.MaxInt64 bounds nothing.
	From, To int64
	// Keep selects records; nil: all. A line is valid during the call.
	Keep func(line []byte) bool
	// Newest limits the query to that many of the newest records; 0: all.
	Newest int
	// Follow is set for a follower. Its runs are of any bin and may be stored. Follow returns the
	// decisions on a run of its batch; copies must stand.
	Follow func(*Run) (Lots, error)
}

// Named is a batch that a record of the log names.
type Named struct {
	ID      [16]byte
	Records int
	Bytes   int64 // of its lines
	Place
}

// Unit is runs that are read together: those of one batch, or those that a follower
// has not seen.
type Unit struct {
	Bin        // of all runs; zero for a follower
	Span  Span // of all lines
	Runs  Extents
	Batch *Named // has the runs instead; nil for an open batch

	// The first reading learns:
	read   bool
	lots   map[wal.Pos]Lots // of the runs that have decisions
	chunks []*chunk         // the runs that are neither copies nor unreadable
}

// Reading reads units for one reader. Only one goroutine may use it.
type Reading struct {
	log     *wal.Log
	reader  Reader
	room    *Room
	q       Query
	ctx     context.Context
	missing MissingError
	counted map[wal.Pos]bool // runs in missing
	chunks  int              // that were made
	entry   record.Entry     // for emit
}

// NewReading returns a reading of a log that takes its memory from room.
func NewReading(log *wal.Log, room *Room, q Query) *Reading {
	return &Reading{log: log, reader: Reader{log: log}, room: room, q: q, counted: map[wal.Pos]bool{}}
}

// Each calls emit for the records of the units in order, each once. An entry is
// valid during the call. If the log lacks a part, Each emits the rest and then
// returns a [*MissingError]. Any other error comes from emit or ctx, or the log has
// ended.
func (r *Reading) Each(ctx context.Context, units []Unit, emit func(*record.Entry) error) error {
	r.ctx = ctx
	units = slices.Clone(units) // this reading's own
	from, most := record.Key{Time: r.q.From}, math.MaxInt
	if r.q.Newest > 0 {
		var err error
		if from, most, err = r.newest(units); err != nil {
			return err
		}
	}
	if err := r.all(units, from, most, emit); err != nil {
		return err
	}
	if r.missing.First != nil {
		return &r.missing
	}
	return nil
}

// Lots returns the decisions on a run of a unit, which it reads the first time.
func (r *Reading) Lots(ctx context.Context, u *Unit, run *Run) (Lots, error) {
	r.ctx = ctx
	if !u.read {
		if err := r.scan(u, nil); err != nil {
			return nil, err
		}
	}
	return u.lots[run.Pos], nil
}

// scan reads the runs of a unit for the first time, decides on them and puts them in
// chunks. If f is not nil, it is called for the kept lines of each run, as [Run.split] does.
func (r *Reading) scan(u *Unit, f func(*Run) error) error {
	u.read, u.lots = true, map[wal.Pos]Lots{}
	runs, rec := u.Runs, BatchRecord{}
	if u.Batch != nil {
		var err error
		if rec, err = u.Batch.ReadRecord(r.log, u.Batch.ID); err != nil {
			if fatal := r.fatal(err); fatal != nil {
				return fatal
			}
			r.missing.add(&r.missing.Batches, fmt.Errorf("%d records of %s: %w", u.Batch.Records, u.Service, err))
			return nil
		}
		runs = rec.Runs
	}
	var families families
	families.begin(r.reader.one)
	records, size := 0, int64(0)
	err := r.reader.Read(r.ctx, &runs, u.Bin, func(run *Run) (err error) {
		records += run.Records
		size += int64(len(run.lines))
		lots, keep := Lots(nil), true
		if r.q.Follow != nil {
			lots, err = r.q.Follow(run)
		} else {
			lots, keep = families.join(run)
		}
		if err != nil || !keep {
			return err
		}
		if lots != nil {
			u.lots[run.Pos] = lots
		}
		r.add(u, run)
		if f == nil {
			return nil
		}
		return run.split(lots, f)
	}, r.bad)
	// The record of a copy has the copy's number of records. That is fewer than in its
	// batch, which counted repeated ones twice.
	if err == nil && u.Batch != nil && (records != rec.Records || size != rec.Bytes) {
		r.missing.add(&r.missing.Batches, fmt.Errorf("batch %x of %s has %d records in %d bytes, there are %d in %d",
			u.Batch.ID, u.Service, rec.Records, rec.Bytes, records, size))
	}
	return err
}

// add puts a run in the last chunk, in a new one, or in pieces in chunks of their own.
func (r *Reading) add(u *Unit, run *Run) {
	least := firstChunks << min(r.chunks/doubling, 6)
	if u.lots[run.Pos] == nil && run.last-run.time0 > wide && len(run.lines) > 2*least {
		for p := range run.pieces(least) {
			r.chunks++
			u.chunks = append(u.chunks, &chunk{unit: u, span: p.Span(), piece: p, size: p.size()})
		}
		return
	}
	n := len(u.chunks)
	if n == 0 || u.chunks[n-1].piece != nil || u.chunks[n-1].size >= least {
		r.chunks++
		u.chunks = append(u.chunks, &chunk{unit: u, span: NoSpan()})
		n++
	}
	c := u.chunks[n-1]
	c.runs.Add(run.Extent)
	c.size += int(run.Len)
	c.span.Extend(run.Span())
}

// read reads a chunk again.
func (r *Reading) read(c *chunk, f func(*Run) error) error {
	if c.piece != nil {
		run, err := r.reader.piece(c.piece)
		if err != nil {
			return r.bad(c.piece.Extent, err)
		}
		return f(run)
	}
	return r.reader.Read(r.ctx, &c.runs, c.unit.Bin, func(run *Run) error {
		return run.split(c.unit.lots[run.Pos], f)
	}, r.bad)
}

// bad counts a run that cannot be read, once.
func (r *Reading) bad(e Extent, err error) error {
	if fatal := r.fatal(err); fatal != nil || r.counted[e.Pos] {
		return fatal
	}
	r.counted[e.Pos] = true
	r.missing.add(&r.missing.Runs, fmt.Errorf("the run at %d in segment %d: %w", e.Pos.Offset(), e.Pos.Segment(), err))
	return nil
}

// fatal is the error that ends the whole reading, or nil.
func (r *Reading) fatal(err error) error {
	if errors.Is(err, wal.ErrClosed) {
		return err
	}
	return r.ctx.Err()
}

// MissingError counts the parts of a snapshot that the log lacks.
type MissingError struct {
	Batches int // that cannot be read at all, or lack runs
	Runs    int // that cannot be read
	First   error
}

// Error counts the missing parts, with the first error.
func (e *MissingError) Error() string {
	return fmt.Sprintf("%d batches and %d runs of the log cannot be read: %v", e.Batches, e.Runs, e.First)
}

// Unwrap returns the first reason.
func (e *MissingError) Unwrap() error { return e.First }

// add counts a part in n, which is Batches or Runs.
func (e *MissingError) add(n *int, err error) {
	*n++
	if e.First == nil {
		e.First = err
	}
}
