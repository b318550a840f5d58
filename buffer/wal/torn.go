package wal

import (
	"io"
	"math"
	"os"

	"blobtail/storage/fsys"
)

const (
	// maxTorn is the most bytes of a torn tail that are kept.
	maxTorn = 1 << 20

	// sector is the smallest unit that a disk writes atomically.
	sector = 512
)

// repairLast prepares a segment that was not rolled: it copies it to a new file without
// its torn tail. empty reports that no records remain.
func (l *Log) repairLast() (empty bool, err error) {
	if len(l.segs) == 0 {
		return false, nil
	}
	last := l.segs[len(l.segs)-1]
	if !last.readable || last.Size < headerSize {
		return false, l.moveStillborn(last)
	}
	f, err := l.fs.OpenFile(l.files.path(last.Number, segmentSuffix), os.O_RDONLY, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	cut, records, damaged := survey(f, last)
	if err := l.keepTorn(f, last, cut); err != nil {
		return false, err
	}
	if damaged {
		l.quarantine(last.Number)
	}
	if err := l.replace(f, last.Number, cut); err != nil {
		return false, err
	}
	last.Size = cut
	return records == 0 && !damaged && last.lacking == hole{}, nil
}

// survey finds the start of the torn tail of the last segment, and reports whether there
// is damage before it.
func survey(f fsys.File, last *segment) (cut int64, records int, damaged bool) {
	s := newScanner(f, last.Random, last.Size)
	cut, damaged = headerSize, last.badCopy >= 0
	var end item // the invalid bytes behind the last record
	for {
		it, ok := s.step()
		if !ok {
			break
		}
		if it.damaged() {
			end = it
			continue
		}
		records++
		damaged = damaged || end.length > 0
		end = item{}
		cut = it.off + it.length
	}
	if end.length > 0 {
		if at := tornFrom(f, last, end.off); at > end.off {
			cut, damaged = at, true
		}
	}
	// A page that is unreadable now may be readable later: the original file is kept.
	return cut, records, damaged || s.src.failed
}

// tornFrom returns the start of the torn part of the invalid bytes from off to the end of
// the last segment. It returns the segment's size if none of them are torn. It goes
// record by record while their headers are valid. If a record was never synced, those
// behind it were not synced either. But those before it may have been.
func tornFrom(f io.ReaderAt, last *segment, off int64) int64 {
	s := newScanner(f, last.Random, last.Size)
	for s.off = off; s.off < s.size; {
		from, n, short := s.piece()
		if short || s.sectorOfZeros(from, n) {
			return s.off
		}
		s.off = from + n
	}
	return s.size
}

// piece returns the bytes at s.off that may be torn: the payload of a record with a valid
// header, or everything up to the next valid header. short reports that the file ends
// before the record does.
func (s *scanner) piece() (from, n int64, short bool) {
	head := s.peek(recordHeader)
	if len(head) < recordHeader {
		return s.off, int64(len(head)), true
	}
	if length, ok := s.header(s.off); ok {
		from = s.off + recordHeader
		return from, min(align(length), s.size-from), length > s.size-from
	}
	end := min(align(s.off+1), s.size)
	for end < s.size {
		if _, ok := s.header(end); ok {
			break
		}
		end = min(end+recordAlign, s.size)
	}
	return s.off, end - s.off, false
}

// header returns the length of the payload if a valid record header is at off, even if
// the file ends before the payload does.
func (s *scanner) header(off int64) (int64, bool) {
	if off%recordAlign != 0 || s.size-off < recordHeader {
		return 0, false
	}
	at := s.off
	s.off = off
	head := s.peek(recordHeader)
	s.off = at
	return s.seal.length(head, off, math.MaxInt64)
}

// sectorOfZeros reports whether a sector's share of the n bytes from off on is all zeros:
// then the disk never wrote that sector. Zeros in place of unreadable bytes do not count.
func (s *scanner) sectorOfZeros(off, n int64) bool {
	room := make([]byte, min(n, scanWindow))
	for end := off + n; off < end; {
		src := &pageReader{r: s.src.r}
		b := room[:min(end-off, scanWindow-off%sector)]
		src.readAt(b, off)
		for len(b) > 0 {
			part := b[:min(sector-off%sector, int64(len(b)))]
			if !src.failed && allZero(part) {
				return true
			}
			b, off = b[len(part):], off+int64(len(part))
		}
	}
	return false
}

// keepTorn keeps a copy of the torn tail before it is removed.
func (l *Log) keepTorn(f fsys.File, last *segment, cut int64) error {
	torn := last.Size - cut
	if torn < recordAlign {
		b := make([]byte, torn)
		if (&pageReader{r: f}).readAt(b, cut); allZero(b) {
			return nil
		}
	}
	path := l.files.path(last.Number, tornSuffix)
	l.log.Warn().Str("segment", l.files.path(last.Number, segmentSuffix)).Int64("offset", cut).Int64("bytes", torn).
		Str("kept", path).Msg("the log has a torn tail, as a kill or a power cut leaves it; it is cut off")
	return l.writeFile(path, f, cut, min(torn, maxTorn))
}

// moveStillborn quarantines a last segment with an interrupted creation: without a header
// it never had a record. If it has more bytes than a header, or is known to have been
// complete, it is damaged, and stays.
func (l *Log) moveStillborn(last *segment) error {
	if last.Size > headerSize || last.Number <= l.newest.noted {
		return nil
	}
	from, to := l.files.path(last.Number, segmentSuffix), l.files.path(last.Number, tornSuffix)
	l.log.Warn().Str("segment", from).Int64("bytes", last.Size).Str("kept", to).
		Msg("the newest segment of the log was not made whole, and is put aside")
	l.segs = l.segs[:len(l.segs)-1]
	return l.rename(from, to)
}
