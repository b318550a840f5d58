package wal

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
)

// scanWindow is the number of bytes of a segment that one read gets.
const scanWindow = 1 << 20

// pageSize is the unit in which an unreadable window is read again.
const pageSize = 4096

// item is one step of a scan: a record, or a span without a valid record.
type item struct {
	off, length int64  // extent of the whole record, or of the damaged span
	payload     []byte // in the window: valid until the next step
	typ         byte   // 0 for a damaged span
	reason      string // the reason why the span is damaged
}

func (i item) damaged() bool { return i.typ == 0 }

// scanner walks the records of one segment and everything between them. Each byte of the
// file belongs to exactly one item, in order, except for the header and the zeros between
// records. The scanner holds one window, or one record if that is longer.
type scanner struct {
	src  *pageReader
	seal *seal
	size int64
	off  int64  // offset of the next item
	buf  []byte // the file's bytes from start on
	base int64
	room []byte // backs buf
	next *item  // found by the search for the end of damage
}

func newScanner(r io.ReaderAt, id [16]byte, size int64) *scanner {
	return &scanner{src: &pageReader{r: r}, seal: newSeal(id), size: size, off: headerSize}
}

// step returns the next item, or false at the end.
func (s *scanner) step() (item, bool) {
	if s.next != nil {
		it := *s.next
		s.next = nil
		return it, true
	}
	if s.off >= s.size {
		return item{}, false
	}
	if it, ok := s.record(); ok {
		return it, true
	}
	return s.damage(), true
}

// damage collects the invalid bytes from s.off up to the next valid record or the end. It
// keeps that record for the next step.
func (s *scanner) damage() item {
	d := item{off: s.off, length: s.size - s.off}
	var why []string // the first two different reasons
	for s.off < s.size {
		n, reason := s.invalid()
		if len(why) < 2 && !slices.Contains(why, reason) {
			why = append(why, reason)
		}
		s.off += n
		end := s.off
		if it, ok := s.record(); ok {
			s.next = &it
			d.length = end - d.off
			break
		}
	}
	d.reason = strings.Join(why, "; ")
	if err := s.src.err; err != nil {
		d.reason += "; reading: " + err.Error()
		s.src.err = nil
	}
	return d
}

// record reads the valid record at s.off and moves behind it, and behind the zeros that
// align the next one. If there is none, s.off does not change.
func (s *scanner) record() (item, bool) {
	head := s.peek(recordHeader)
	if len(head) < recordHeader || s.off%recordAlign != 0 {
		return item{}, false
	}
	n, ok := s.seal.length(head, s.off, s.size)
	if !ok {
		return item{}, false
	}
	whole := s.peek(align(recordHeader + n))
	payload, padding := whole[recordHeader:recordHeader+n:recordHeader+n], whole[recordHeader+n:]
	if !s.seal.matches(whole, payload) {
		return item{}, false
	}
	it := item{off: s.off, length: recordHeader + n, typ: whole[0], payload: payload}
	s.off += it.length
	if allZero(padding) {
		s.off += int64(len(padding))
	}
	return it, true
}

// invalid returns how many bytes to skip at s.off, where no valid record is, and the
// reason.
func (s *scanner) invalid() (int64, string) {
	if r := s.off % recordAlign; r != 0 {
		return min(recordAlign-r, s.size-s.off), "bytes between records are not zero"
	}
	head := s.peek(recordHeader)
	if len(head) < recordHeader {
		return int64(len(head)), "no whole record"
	}
	if n, ok := s.seal.length(head, s.off, s.size); ok {
		return min(align(recordHeader+n), s.size-s.off), "a payload does not match its checksum"
	}
	return recordAlign, "no valid record header"
}

// peek returns the n bytes at s.off, or fewer at the end of the file.
func (s *scanner) peek(n int64) []byte {
	n = min(n, s.size-s.off)
	at := s.off - s.base
	if at >= 0 && at+n <= int64(len(s.buf)) {
		return s.buf[at : at+n]
	}
	want := min(max(n, scanWindow), s.size-s.off)
	if int64(cap(s.room)) < want {
		s.room = make([]byte, want)
	}
	fresh := s.room[:want]
	kept := 0
	if at >= 0 && at < int64(len(s.buf)) {
		kept = copy(fresh, s.buf[at:])
	}
	s.src.readAt(fresh[kept:], s.off+int64(kept))
	s.buf, s.base = fresh, s.off
	return s.buf[:n]
}

func allZero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

// pageReader reads all readable pages. An unreadable page, or one behind the end, reads
// as zeros, and zeros are never a record. So one bad sector costs only the records that
// it touches.
type pageReader struct {
	r      io.ReaderAt
	err    error // the last skipped error that is not reported yet
	failed bool  // there was an error
}

func (p *pageReader) readAt(b []byte, off int64) {
	n, err := p.r.ReadAt(b, off)
	if n == len(b) {
		return
	}
	clear(b[n:])
	if err == nil || errors.Is(err, io.EOF) {
		return
	}
	for at := n; at < len(b); {
		end := min(at+pageSize-int((off+int64(at))%pageSize), len(b))
		m, err := p.r.ReadAt(b[at:end], off+int64(at))
		if m < end-at {
			clear(b[at+m : end])
			if err != nil && !errors.Is(err, io.EOF) {
				p.err, p.failed = err, true
			}
		}
		at = end
	}
}
