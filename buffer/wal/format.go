package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"strconv"
	"strings"
	"time"
)

const (
	magic         = "blobwal\n"
	formatVersion = 1

	headerCopy = 64
	headerSize = 2 * headerCopy

	recordHeader = 16
	recordAlign  = 8
)

// checksum is an unfinished CRC-32C. MakeTable is cheap for Castagnoli: the standard
// library builds that table once and returns the same pointer. The same pointer also
// selects the CPU's instruction.
type checksum uint32

func (c checksum) add(b []byte) checksum {
	return checksum(crc32.Update(uint32(c), crc32.MakeTable(crc32.Castagnoli), b))
}

// header is the beginning of a segment's file.
func (s *segment) header() []byte {
	b := make([]byte, headerSize)
	copy(b, magic)
	binary.LittleEndian.PutUint32(b[8:], formatVersion)
	binary.LittleEndian.PutUint32(b[12:], s.Number)
	copy(b[16:32], s.Random[:])
	binary.LittleEndian.PutUint64(b[32:], uint64(s.Created.UnixNano()))
	binary.LittleEndian.PutUint32(b[40:], s.prev)
	binary.LittleEndian.PutUint32(b[44:], s.lost)
	binary.LittleEndian.PutUint32(b[60:], uint32(checksum(0).add(b[:60])))
	copy(b[headerCopy:], b[:headerCopy])
	return b
}

var errNoHeader = errors.New("the segment's header is unreadable")

// decodeHeader reads a segment's header from the first bytes of its file.
func decodeHeader(b []byte) (*segment, error) {
	var s *segment
	bad := int64(-1)
	for i := headerCopy; i >= 0; i -= headerCopy {
		switch got, err := decodeHeaderCopy(b[min(i, len(b)):]); {
		case err == nil:
			s = got
		case errors.Is(err, errNoHeader):
			bad = int64(i)
		default:
			return nil, err
		}
	}
	if s == nil {
		return nil, errNoHeader
	}
	s.badCopy = bad
	return s, nil
}

func decodeHeaderCopy(b []byte) (*segment, error) {
	if len(b) < headerCopy || string(b[:8]) != magic || binary.LittleEndian.Uint32(b[60:]) != uint32(checksum(0).add(b[:60])) {
		return nil, errNoHeader
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != formatVersion {
		return nil, fmt.Errorf("format version %d, this program reads version %d", v, formatVersion)
	}
	return &segment{
		Segment: Segment{
			Number:  binary.LittleEndian.Uint32(b[12:]),
			Created: time.Unix(0, int64(binary.LittleEndian.Uint64(b[32:]))).UTC(),
			Random:  [16]byte(b[16:32]),
		},
		readable: true,
		prev:     binary.LittleEndian.Uint32(b[40:]),
		lost:     binary.LittleEndian.Uint32(b[44:]),
	}, nil
}

// seal computes the checksums of one segment's records. It has an array for them because
// arguments of package crc32 escape: an array on the stack would be an allocation for
// every checksum.
type seal struct {
	b [16 + 8 + 12]byte // segment id, offset of the record, bytes 0 to 11 of its header
}

func newSeal(id [16]byte) *seal {
	s := new(seal)
	copy(s.b[:], id[:])
	return s
}

// put writes the header of a record at off. payload is the checksum of the
// payload alone, so that it can be computed before the offset is known.
func (s *seal) put(b []byte, off int64, typ byte, length int, payload checksum) {
	binary.LittleEndian.PutUint64(s.b[16:], uint64(off))
	b[0], b[1], b[2], b[3] = typ, 0, 0, 0
	s.b[24] = typ
	binary.LittleEndian.PutUint32(b[4:], uint32(length))
	binary.LittleEndian.PutUint32(b[8:], uint32(payload.add(s.b[:25])))
	copy(s.b[24:], b[:12])
	binary.LittleEndian.PutUint32(b[12:], uint32(checksum(0).add(s.b[:])))
}

// length returns the length of the payload when b begins with the valid header
// of a record at off of a segment of the given size.
func (s *seal) length(b []byte, off, size int64) (int64, bool) {
	if b[0] == 0 || b[1]|b[2]|b[3] != 0 {
		return 0, false
	}
	n := int64(binary.LittleEndian.Uint32(b[4:]))
	if n > MaxPayload || n > size-off-recordHeader || off > math.MaxUint32-recordHeader-n {
		return 0, false
	}
	binary.LittleEndian.PutUint64(s.b[16:], uint64(off))
	copy(s.b[24:], b[:12])
	return n, binary.LittleEndian.Uint32(b[12:]) == uint32(checksum(0).add(s.b[:]))
}

// matches reports whether the payload fits the header. length must have found that header
// valid just before.
func (s *seal) matches(header, payload []byte) bool {
	return binary.LittleEndian.Uint32(header[8:]) == uint32(checksum(0).add(payload).add(s.b[:25]))
}

func align(n int64) int64 { return (n + recordAlign - 1) &^ (recordAlign - 1) }

const (
	segmentSuffix = ".seg"
	tornSuffix    = ".torn"
	tempSuffix    = ".tmp"
)

func fileName(n uint32, suffix string) string { return fmt.Sprintf("%08d%s", n, suffix) }

// parseFileName is the strict inverse of fileName.
func parseFileName(name string) (n uint32, suffix string, ok bool) {
	digits, _, found := strings.Cut(name, ".")
	v, err := strconv.ParseUint(digits, 10, 32)
	if !found || err != nil {
		return 0, "", false
	}
	n, suffix = uint32(v), name[len(digits):]
	return n, suffix, fileName(n, suffix) == name
}
