package blobs

import (
	"bytes"
	"context"
	"slices"

	"blobtail/internal/budget"
	"blobtail/internal/spill"
	"blobtail/record"
)

// Read emits the lines, in order, by calls of emit, each with one or more whole lines
// that are adjacent in the result. The bytes are valid during the call. An error of
// emit ends the read and is returned as it is.
//
// With an error too, the summary covers the part that was read.
func (p *Plan) Read(ctx context.Context, emit func(lines []byte) error) (Summary, error) {
	return p.read(ctx, sink{emit: emit})
}

// Entries is Read with the identity of each record. A record from a blob without
// readable identities has the zero ID. The entry is valid during the call.
func (p *Plan) Entries(ctx context.Context, visit func(*record.Entry) error) (Summary, error) {
	return p.read(ctx, sink{visit: visit})
}

func (p *Plan) read(ctx context.Context, to sink) (Summary, error) {
	sum := p.summary()
	t := p.task()
	if t.desc != p.query.Reverse {
		to.hold(ctx, &p.query)
		defer to.held.close()
	}
	to.reverse = p.query.Reverse
	err := p.confirmed(ctx, &sum, func(ctx context.Context) error { return p.lines(ctx, t, &sum, &to) })
	if err == nil {
		err = to.flush()
	}
	sum.Bytes = to.bytes
	p.tellUnjudged(&sum)
	p.tellExpired(&sum, p.has())
	return sum, err
}

// task is the task of reading all of the plan.
func (p *Plan) task() task {
	q := &p.query
	return task{p.blobs, p.rng, q.Limit > 0 || q.Reverse && q.First == 0, max(q.Limit, q.First)}
}

// A piece is lines that are adjacent in the result, in ascending order, in the memory
// of a cursor; or a copy of them, with the entries if the sink needs them.
type piece struct {
	lines   []byte
	c       *cursor
	entries []record.Entry
}

// sink receives the result of a read, and emits lines, or entries if visit is set.
type sink struct {
	emit    func(lines []byte) error
	visit   func(*record.Entry) error
	reverse bool  // the newest is emitted first
	held    *held // the pieces come in the other order, and are emitted at the end; nil: they do not
	bytes   int64
}

// hold has pieces wait, because they come in the other order.
func (s *sink) hold(ctx context.Context, q *Query) {
	s.held = &held{aside: spill.Space{Budget: budget.Of(ctx)}, most: q.MaxHeld, back: q.Reverse, ids: s.visit != nil}
}

// take accepts a piece, which is valid during the call.
func (s *sink) take(p piece) error {
	s.bytes += int64(len(p.lines))
	if s.held == nil {
		return s.give(p)
	}
	if p.entries == nil {
		kept := piece{lines: bytes.Clone(p.lines)}
		if s.visit != nil {
			kept.entries = p.identify(kept.lines)
		}
		p = kept
	}
	return s.held.add(p)
}

func (s *sink) flush() error {
	if s.held == nil {
		return nil
	}
	return s.held.give(s.give)
}

func (s *sink) give(p piece) error {
	if s.visit == nil && !s.reverse { // called for each line if many blobs are merged
		return s.emit(p.lines)
	}
	for s.visit == nil && len(p.lines) > 0 {
		line := lastLine(p.lines)
		if err := s.emit(line); err != nil {
			return err
		}
		p.lines = p.lines[:len(p.lines)-len(line)]
	}
	if p.entries == nil && s.visit != nil {
		p.entries = p.identify(p.lines)
	}
	if s.reverse {
		slices.Reverse(p.entries)
	}
	for i := range p.entries {
		if err := s.visit(&p.entries[i]); err != nil {
			return err
		}
	}
	return nil
}

// identify makes the entries of a piece. text has the same lines.
func (p *piece) identify(text []byte) []record.Entry {
	number := p.c.number(p.lines)
	entries := make([]record.Entry, 0, bytes.Count(text, newline))
	for line := range bytes.Lines(text) {
		e := record.Entry{Line: line}
		e.Time, _ = record.LineTime(line)
		if at := p.c.placeOf(number); at.known {
			e.ID = record.ID{Origin: at.Origin, Index: at.Index}
		}
		entries = append(entries, e)
		number++
	}
	return entries
}
