package query

import (
	"bytes"
	"context"
	"slices"

	"blobtail/record"
)

// Entries is Read with the identity of each record. A record from a blob without
// readable identities has the zero ID. The entry is valid during the call.
func (p *Plan) Entries(ctx context.Context, visit func(*record.Entry) error) (Summary, error) {
	return p.read(ctx, &sink{visit: visit})
}

// NewestEntries is Newest with the identity of each record.
func (r *Reader) NewestEntries(ctx context.Context, q Query, visit func(*record.Entry) error) (Summary, error) {
	return r.newest(ctx, q, &sink{visit: visit})
}

// A piece is lines that are adjacent in the result, in ascending order, in the memory
// of a cursor; or a copy of them, with the entries if the sink needs them.
type piece struct {
	lines   []byte
	c       *cursor
	entries []record.Entry
}

// sink receives the result of a read: lines, or entries.
type sink struct {
	emit  func(lines []byte) error
	visit func(*record.Entry) error
}

// keep copies a piece for later.
func (s *sink) keep(p piece) piece {
	kept := piece{lines: bytes.Clone(p.lines)}
	if s.visit != nil {
		kept.entries = p.identify(kept.lines)
	}
	return kept
}

// give emits a piece, with its last line first if backwards.
func (s *sink) give(p piece, backwards bool) error {
	switch {
	case s.visit == nil && backwards:
		return emitBackwards(p.lines, s.emit)
	case s.visit == nil:
		return s.emit(p.lines)
	}
	if p.entries == nil {
		p.entries = p.identify(p.lines)
	}
	if backwards {
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
	// Both slices end where their memory does.
	line := p.c.lineAt(cap(p.c.cur.raw) - cap(p.lines))
	entries := make([]record.Entry, 0, bytes.Count(text, newline))
	for ; len(text) > 0; line++ {
		n := bytes.IndexByte(text, '\n') + 1
		e := record.Entry{Line: text[:n:n]}
		e.Time, _ = record.LineTime(e.Line)
		if at := p.c.placeOf(line); at.known {
			e.ID = record.ID{Origin: at.Origin, Index: at.Index}
		}
		entries = append(entries, e)
		text = text[n:]
	}
	return entries
}
