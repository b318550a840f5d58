package wal

import (
	"errors"
	"io/fs"
	"iter"
	"slices"
)

// Range yields the durable records between two positions, oldest first. Each is the End of a record, or
// one that [Log.Durable] has returned; a from of 0 is the front of the log. It omits segments that are removed. A damaged span, or one
// that cannot be read now, is yielded as a [*CorruptError] and ends it.
func (l *Log) Range(from, to Pos) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		l.mu.Lock()
		segments := slices.Clone(l.segs)
		l.mu.Unlock()
		for _, s := range segments {
			if s.Number >= from.Segment() && s.Number <= to.Segment() && !rangeIn(l, s.Number, from, to, yield) {
				return
			}
		}
	}
}

// rangeIn is the part of Range in one segment. It returns false when the iteration is over.
func rangeIn(l *Log, n uint32, from, to Pos, yield func(Record, error) bool) bool {
	info, ok := l.Segment(n)
	if !ok {
		return true
	}
	f, err := l.files.acquire(n)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) || yield(Record{}, err) && false
	}
	defer l.files.release(f)
	size := info.Size
	if n == to.Segment() {
		size = int64(to.Offset())
	}
	s := newScanner(f, info.Random, size)
	if n == from.Segment() {
		s.off = max(s.off, int64(from.Offset()))
	}
	for {
		it, ok := s.step()
		if !ok {
			return true
		}
		if it.damaged() {
			yield(Record{}, &CorruptError{
				Path: l.files.path(n, segmentSuffix), Offset: it.off, Length: it.length, Reason: it.reason,
				From: makePos(n, it.off), To: makePos(n, it.off+it.length),
			})
			return false
		}
		if !yield(s.found(it, &info), nil) {
			return false
		}
	}
}
