package wal

import (
	"bytes"
	"errors"
	"io"
)

// scanWindow is how much of a segment is read at a time.
const scanWindow = 1 << 20

// pageSize is the unit in which a window that cannot be read is tried again.
const pageSize = 4096

// item is one step of a scan: a record, or a span that is none.
type item struct {
	off, length int64  // of the whole record, or of the damaged span
	payload     []byte // in the window: valid until the next step
	typ         byte   // 0 for a damaged span
	reason      string // why the span is damaged
}

func (i item) damaged() bool { return i.typ == 0 }

// scanner walks the records of one segment and everything between them. It
// covers each byte of the file in exactly one item, in order, except the header
// and the zeros between records. It holds one window, or one record where that
// is longer.
type scanner struct {
	src  *pageReader
	seal *seal
	size int64
	off  int64  // of the next item
	buf  []byte // the file's bytes from start on
	base int64
	room []byte // backs buf
	next *item  // found while looking for the end of damage
}

func newScanner(r io.ReaderAt, id segmentID, size int64) *scanner {
	return &scanner{src: &pageReader{r: r}, seal: newSeal(id), size: size, off: headerSize}
}

// step returns the next item; false at the end.
func (s *scanner) step() (item, bool) {
	if s.next != nil {
		it := *s.next
		s.next = nil
		return it, true
	}
	if s.off >= s.size {
		return item{}, false
	}
	it, ok := s.record()
	if ok {
		return it, true
	}
	return s.damage(), true
}

// damage collects what is no record from s.off on, up to the next valid record
// (which it keeps for the next step) or the end.
func (s *scanner) damage() item {
	d := item{off: s.off}
	var why reasons
	for s.off < s.size {
		n, reason := s.invalid()
		why.add(reason)
		s.off += n
		if s.off >= s.size {
			break
		}
		start := s.off
		if it, ok := s.record(); ok {
			s.next = &it
			d.length = start - d.off
			d.reason = why.text(s.src)
			return d
		}
	}
	s.off = s.size
	d.length = s.size - d.off
	d.reason = why.text(s.src)
	return d
}

// record reads the valid record at s.off and moves behind it; it leaves s.off
// alone when there is none.
func (s *scanner) record() (item, bool) {
	head := s.peek(recordHeader)
	if len(head) < recordHeader || s.off%recordAlign != 0 {
		return item{}, false
	}
	n, ok := s.seal.length(head, s.off, s.size)
	if !ok {
		return item{}, false
	}
	whole := s.peek(recordHeader + n)
	payload := whole[recordHeader:]
	if !s.seal.matches(whole, payload) {
		return item{}, false
	}
	it := item{off: s.off, length: recordHeader + n, typ: whole[0], payload: payload[:n:n]}
	s.off += it.length
	s.skipPadding(&it)
	return it, true
}

// skipPadding moves to the next multiple of 8 if only zeros are before it.
func (s *scanner) skipPadding(it *item) {
	n := min(align(s.off), s.size) - s.off
	// The window may move under the payload: look at the file only when the
	// bytes are not in it.
	at := s.off - s.base
	if at+n <= int64(len(s.buf)) {
		if allZero(s.buf[at : at+n]) {
			s.off += n
		}
		return
	}
	var pad [recordAlign]byte
	s.src.readAt(pad[:n], s.off)
	if allZero(pad[:n]) {
		s.off += n
	}
}

// invalid returns how many bytes to pass over at s.off, where no valid record
// is, and why it is none.
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

// peek returns the n bytes at s.off, or as many as there are.
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

// reasons keeps the first two different reasons of one span.
type reasons struct{ first, second string }

func (r *reasons) add(s string) {
	switch {
	case r.first == "":
		r.first = s
	case r.second == "" && s != r.first:
		r.second = s
	}
}

func (r *reasons) text(src *pageReader) string {
	s := r.first
	if r.second != "" {
		s += "; " + r.second
	}
	if src.err != nil {
		s += "; reading: " + src.err.Error()
		src.err = nil
	}
	return s
}

// pageReader reads what can be read. A page that cannot, or that lies behind the
// end, reads as zeros, which are never a record: one bad sector costs the
// records that it touches.
type pageReader struct {
	r      io.ReaderAt
	err    error // the last error that was passed over and not told yet
	failed bool  // there was one
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
