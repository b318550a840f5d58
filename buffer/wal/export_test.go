package wal

import "bytes"

// Span is a part of a segment that a scan passed over.
type Span struct{ Off, Len int64 }

// HeaderSize and RecordHeader let tests find the parts of a file.
const (
	HeaderSize   = headerSize
	RecordHeader = recordHeader
	ScanWindow   = scanWindow
)

// Scanner scans segments in memory, for tests that scan many.
type Scanner struct{ room []byte }

// Scan calls each for every record of a segment and returns the damaged spans.
func (s *Scanner) Scan(segment []byte, each func(off int64, typ byte, payload []byte)) (bad []Span, err error) {
	h, err := decodeHeader(segment[:min(len(segment), headerSize)])
	if err != nil {
		return nil, err
	}
	if h.badCopy >= 0 {
		bad = append(bad, Span{h.badCopy, headerCopy})
	}
	sc := newScanner(bytes.NewReader(segment), h.Random, int64(len(segment)))
	sc.room = s.room
	for {
		it, ok := sc.step()
		if !ok {
			s.room = sc.room
			return bad, nil
		}
		if it.damaged() {
			bad = append(bad, Span{it.off, it.length})
		} else {
			each(it.off, it.typ, it.payload)
		}
	}
}

// Room is the memory that the scanner used for the segments.
func (s *Scanner) Room() int { return cap(s.room) }
