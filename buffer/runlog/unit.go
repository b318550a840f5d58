package runlog

import (
	"context"
	"errors"
	"fmt"

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
}

// Named is a batch that a record of the log names.
type Named struct {
	ID      [16]byte
	Records int
	Bytes   int64 // of its lines
	Place
}

// Unit is runs that are read together: those of one batch, or those that a follower
// has not seen. It belongs to one [Reading].
type Unit struct {
	Bin          // of all runs, except for a follower
	Span    Span // of all lines
	Runs    Extents
	Batch   *Named     // has the runs instead; nil for an open batch
	Measure func(Span) // is called with the exact span once Batch adds up
	// Follow is set for a follower, whose runs are of any bin and may be stored. It
	// returns the decisions on a run of its batch; copies must stand.
	Follow func(*Run) (Lots, error)

	// The first reading learns:
	read bool
	skip map[wal.Pos]bool // runs that are copies or cannot be read
	lots map[wal.Pos]Lots // of the other runs, if they have decisions

	// The merge has:
	next []cursor // the next runs, in order
	rest bool     // there are more behind these
	last cursor   // the run that the merge began last
}

// part is a run, or the lines of it with one decision.
type part struct {
	*Run
	origin record.Origin
	lots   Lots // nil: all lines
	want   lot
}

// has reports whether line i is in the part.
func (p *part) has(i int) bool { return p.lots == nil || p.lots[i] == p.want }

// Reading reads units for one reader. Only one goroutine may use it.
type Reading struct {
	log     *wal.Log
	reader  Reader
	room    *Room
	q       Query
	ctx     context.Context
	missing MissingError
	line    []byte
	entry   record.Entry // for emit
}

// NewReading returns a reading of a log that takes its memory from room.
func NewReading(log *wal.Log, room *Room, q Query) *Reading {
	return &Reading{log: log, reader: Reader{log: log}, room: room, q: q}
}

// Each calls emit for the records of the units in order, each once. An entry is
// valid during the call. If the log lacks a part, Each emits the rest and then
// returns a [*MissingError]. Any other error comes from emit or ctx, or the log has
// ended.
func (r *Reading) Each(ctx context.Context, units []*Unit, emit func(*record.Entry) error) error {
	r.ctx = ctx
	read := r.all
	if r.q.Newest > 0 {
		read = r.newest
	}
	if err := read(units, emit); err != nil {
		return err
	}
	if r.missing.First != nil {
		return &r.missing
	}
	return nil
}

func (r *Reading) emit(k *record.Key, line []byte, emit func(*record.Entry) error) error {
	r.entry = record.Entry{Time: k.Time, ID: record.ID{Origin: k.Origin, Index: k.Index}, Line: line}
	return emit(&r.entry)
}

// Lots returns the decisions on a run of a unit, which it reads the first time.
func (r *Reading) Lots(ctx context.Context, u *Unit, run *Run) (Lots, error) {
	r.ctx = ctx
	if !u.read {
		if err := r.scan(u, func(*part) error { return nil }); err != nil {
			return nil, err
		}
	}
	return u.lots[run.Pos], nil
}

// scan reads the runs of a unit and calls f for each part, which is valid during the
// call. A run that cannot be read is omitted and counted once.
func (r *Reading) scan(u *Unit, f func(*part) error) error {
	s := scan{Reading: r, u: u, f: f, first: !u.read, span: NoSpan()}
	u.read = true
	runs, bin := u.Runs, &u.Bin
	if u.Batch != nil {
		rec, err := u.Batch.ReadRecord(r.log, u.Batch.ID)
		if err != nil {
			if fatal := r.fatal(err); fatal != nil || !s.first {
				return fatal
			}
			r.missing.add(&r.missing.Batches, fmt.Errorf("%d records of %s: %w", u.Batch.Records, u.Service, err))
			return nil
		}
		runs, s.rec = rec.Runs, &rec
	}
	if s.first {
		u.skip, u.lots = map[wal.Pos]bool{}, map[wal.Pos]Lots{}
		s.families.begin(r.reader.one)
	}
	if u.Follow != nil {
		bin = nil
	}
	if err := r.reader.Read(r.ctx, &runs, bin, s.run, s.bad); err != nil {
		return err
	}
	s.done()
	return nil
}

// scan is one reading of a unit.
type scan struct {
	*Reading
	u        *Unit
	f        func(*part) error
	first    bool // of the unit
	families families
	rec      *BatchRecord // nil for an open batch
	records  int
	bytes    int64
	span     Span
	part     part // for f
}

func (s *scan) run(run *Run) (err error) {
	u := s.u
	s.records += run.Records
	s.bytes += int64(len(run.lines))
	if u.skip[run.Pos] {
		return nil
	}
	s.part = part{Run: run, origin: run.Origin}
	p := &s.part
	switch {
	case u.Follow != nil:
		if p.lots, err = u.Follow(run); err != nil {
			return err
		}
	case s.first:
		var keep bool
		if p.lots, keep = s.families.join(run); !keep {
			u.skip[run.Pos] = true
			return nil
		} else if p.lots != nil {
			u.lots[run.Pos] = p.lots
		}
	default:
		p.lots = u.lots[run.Pos]
	}
	s.span.Extend(run.span())
	if p.lots.HasRenamed() {
		if err := s.f(&part{run, run.Place, p.lots, renamed}); err != nil {
			return err
		}
	}
	return s.f(p)
}

// bad counts a run that cannot be read, once.
func (s *scan) bad(e Extent, err error) error {
	if fatal := s.fatal(err); fatal != nil || s.u.skip[e.Pos] {
		return fatal
	}
	s.u.skip[e.Pos] = true
	s.missing.add(&s.missing.Runs, fmt.Errorf("the run at %d in segment %d: %w", e.Pos.Offset(), e.Pos.Segment(), err))
	return nil
}

// done ends the first reading of a batch. The record of a copy has the copy's number of
// records. That is fewer than in its batch, which counted repeated ones twice.
func (s *scan) done() {
	u := s.u
	if !s.first || s.rec == nil {
		return
	}
	if s.records != s.rec.Records || s.bytes != s.rec.Bytes {
		s.missing.add(&s.missing.Batches, fmt.Errorf("batch %x of %s has %d records in %d bytes, there are %d in %d",
			u.Batch.ID, u.Service, s.rec.Records, s.rec.Bytes, s.records, s.bytes))
		return
	}
	u.Measure(s.span)
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
