package wal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
)

// Record is one record that Replay found.
type Record struct {
	Type    byte
	Pos     Pos      // position of the first byte of Payload
	End     Pos      // of the next record in the segment
	Payload []byte   // valid until the next step of the iteration
	Segment *Segment // segment of the record
}

// CorruptError is a span of a segment that should hold records and holds none. Length is
// 0 if the whole file is missing.
type CorruptError struct {
	Path           string
	Offset, Length int64
	Reason         string
	// From and To bound the possibly missing records: at or behind From, before To. They
	// are equal if there can have been none.
	From, To Pos
}

// Error implements error.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("wal: %s: %d bytes at %d are damaged: %s", e.Path, e.Length, e.Offset, e.Reason)
}

// Replay yields the records that Open found, oldest first, and no later ones. So the log
// may be used meanwhile. Replay reads through one window: its memory is bounded by the
// longest record. It omits segments that are removed before it reaches them.
//
// Damage is yielded as a [*CorruptError] at its place, and the iteration continues behind
// it. Any other error ends it.
func (l *Log) Replay(ctx context.Context) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		r := replay{log: l, yield: yield}
		for _, s := range l.found {
			if l.Front() <= s.Number && !r.run(ctx, s) {
				return
			}
		}
		if l.lacking != (hole{}) {
			yield(Record{}, l.lacking.missing(l))
		}
	}
}

func (h hole) missing(l *Log) error {
	reason := "the file is missing"
	if h.first != h.last {
		reason = fmt.Sprintf("the segments from %d to %d are missing", h.first, h.last)
	}
	return &CorruptError{Path: l.files.path(h.last, segmentSuffix), From: makePos(h.first, 0), To: makePos(h.last+1, 0), Reason: reason}
}

// replay yields the records of one segment after another.
type replay struct {
	log   *Log
	room  []byte // of the scanner
	yield func(Record, error) bool
}

// run returns false when the iteration is over.
func (r *replay) run(ctx context.Context, seg *segment) bool {
	if h := seg.lacking; h != (hole{}) && !r.yield(Record{}, h.missing(r.log)) {
		return false
	}
	f, err := r.log.files.acquire(seg.Number)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil {
		r.yield(Record{}, fmt.Errorf("wal: replay segment %d: %w", seg.Number, err))
		return false
	}
	defer r.log.files.release(f)
	if !seg.readable {
		return r.damage(seg, 0, seg.Size, errNoHeader.Error())
	}
	if bad := seg.badCopy; bad >= 0 && !r.damage(seg, bad, headerCopy, "one of the two headers is unreadable") {
		return false
	}
	return r.walk(ctx, seg, f)
}

func (r *replay) walk(ctx context.Context, seg *segment, f io.ReaderAt) bool {
	info := seg.Segment // a copy for the caller
	s := newScanner(f, seg.Random, seg.Size)
	s.room = r.room
	defer func() { r.room = s.room }()
	for {
		if err := ctx.Err(); err != nil {
			r.yield(Record{}, err)
			return false
		}
		it, ok := s.step()
		if !ok {
			return true
		}
		if it.damaged() {
			ok = r.damage(seg, it.off, it.length, it.reason)
		} else {
			ok = r.yield(s.found(it, &info), nil)
		}
		if !ok {
			return false
		}
	}
}

// found is a record of a segment, after its step.
func (s *scanner) found(it item, seg *Segment) Record {
	return Record{it.typ, makePos(seg.Number, it.off+recordHeader), makePos(seg.Number, s.off), it.payload, seg}
}

func (r *replay) damage(seg *segment, off, length int64, reason string) bool {
	n := seg.Number
	r.log.quarantine(n)
	from, to := makePos(n, off), makePos(n, off+length)
	switch {
	case seg.readable && off < headerSize && seg.Size >= headerSize:
		to = from // a copy of the header
	case off+length >= seg.Size:
		to = makePos(n+1, 0) // the file may have been longer
	}
	return r.yield(Record{}, &CorruptError{
		Path: r.log.files.path(n, segmentSuffix), Offset: off, Length: length, Reason: reason, From: from, To: to,
	})
}

// ReadAt fills b with payload bytes from p on. p may be any byte of a payload, and b must
// not reach beyond its end. ReadAt checks no checksum. A removed segment gives
// fs.ErrNotExist.
func (l *Log) ReadAt(b []byte, p Pos) error {
	l.mu.Lock()
	front, end, written := l.segs[0].Number, l.end, l.written
	l.mu.Unlock()
	if p+Pos(len(b)) > written {
		if err := l.settle(); err != nil {
			return err
		}
	}
	err := fs.ErrNotExist
	if n := p.Segment(); n >= front && p < end {
		err = l.readAt(b, n, int64(p.Offset()))
	}
	if err != nil {
		return fmt.Errorf("wal: read %d bytes of segment %d at %d: %w", len(b), p.Segment(), p.Offset(), err)
	}
	return nil
}

func (l *Log) readAt(b []byte, n uint32, off int64) error {
	f, err := l.files.acquire(n)
	if err != nil {
		return err
	}
	defer l.files.release(f)
	m, err := f.ReadAt(b, off)
	if m == len(b) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
