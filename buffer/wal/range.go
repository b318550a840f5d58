package wal

import (
	"errors"
	"io/fs"
	"iter"
)

// Range yields the durable records between two positions, oldest first. Each is the End of a record, or
// one that [Log.Durable] has returned; a from of 0 is the front of the log. It omits segments that are
// removed. A damaged span, or one that cannot be read now, is yielded as a [*CorruptError] and ends it.
func (l *Log) Range(from, to Pos) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for n, ok := max(l.Front(), from.Segment()), true; ok && n <= to.Segment(); n++ {
			ok = rangeIn(l, n, from, to, yield)
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
	if n == to.Segment() {
		info.Size = int64(to.Offset())
	}
	s := newScanner(f, info.Random, info.Size)
	if n == from.Segment() {
		s.off = max(s.off, int64(from.Offset()))
	}
	for {
		it, ok := s.step()
		switch {
		case !ok:
			return true
		case it.damaged():
			yield(Record{}, &CorruptError{
				Path: l.files.path(n, segmentSuffix), Offset: it.off, Length: it.length, Reason: it.reason,
				From: makePos(n, it.off), To: makePos(n, it.off+it.length),
			})
			return false
		case !yield(s.found(it, &info), nil):
			return false
		}
	}
}
