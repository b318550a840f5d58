package blobfmt

import (
	"encoding/binary"
	"errors"
)

// This file has the part of RFC 8878 that finds the end of a zstd frame without decoding
// it.

const (
	frameMagic = 0xFD2FB528
	// indexMagic marks the skippable frame with the index. zstd skips any of 0x184D2A50
	// to 0x184D2A5F. The directory store uses another one of them for its attributes
	// behind the blob.
	indexMagic     = 0x184D2A5B
	skippableMagic = 0x184D2A50
	skippableMask  = 0xFFFFFFF0

	skippableHeader = 8         // magic and length
	maxFrameBlock   = 128 << 10 // zstd's own bound on one of its blocks

	// maxRaw bounds the lines of one block. It is the greatest window that every zstd
	// decoder must accept, so no reader needs options.
	maxRaw = 8 << 20
)

// A frame is the extent of a zstd frame, without its content.
type frame struct {
	length    int // of the whole frame
	raw       int // length of its content
	skippable bool
}

var (
	errNoFrame  = errors.New("no zstd frame starts here")
	errCutFrame = errors.New("the zstd frame is cut short")
	errBadFrame = errors.New("the zstd frame's headers are damaged")
)

// parseFrame finds the extent of the frame at the start of b. It accepts only an
// Encoder's frames: with content size and checksum, and without a dictionary. On an
// error, length is the number of bytes that it parsed.
func parseFrame(b []byte) (frame, error) {
	if len(b) < skippableHeader {
		return frame{length: len(b)}, errCutFrame
	}
	magic := binary.LittleEndian.Uint32(b)
	if magic&skippableMask == skippableMagic {
		n := int64(binary.LittleEndian.Uint32(b[4:])) + skippableHeader
		if n > int64(len(b)) {
			return frame{length: len(b), skippable: true}, errCutFrame
		}
		return frame{length: int(n), skippable: true}, nil
	}
	if magic != frameMagic {
		return frame{}, errNoFrame
	}
	raw, at, err := parseFrameHeader(b)
	if err != nil {
		return frame{length: 4}, err
	}
	for last := false; !last; {
		if len(b)-at < 3 {
			return frame{length: at}, errCutFrame
		}
		h := int(b[at]) | int(b[at+1])<<8 | int(b[at+2])<<16
		at += 3
		last = h&1 == 1
		size := h >> 3
		if size > maxFrameBlock {
			return frame{length: at}, errBadFrame
		}
		switch h >> 1 & 3 {
		case 1: // run length: one byte, repeated
			size = 1
		case 3: // reserved
			return frame{length: at}, errBadFrame
		}
		if len(b)-at < size {
			return frame{length: at}, errCutFrame
		}
		at += size
	}
	if len(b)-at < 4 {
		return frame{length: at}, errCutFrame
	}
	return frame{length: at + 4, raw: raw}, nil
}

// parseFrameHeader returns the content size and the length of magic and header.
func parseFrameHeader(b []byte) (raw, length int, err error) {
	const (
		dictionary = 0x03
		checksum   = 0x04
		reserved   = 0x08
		single     = 0x20
	)
	descriptor := b[4]
	if descriptor&(dictionary|reserved) != 0 || descriptor&checksum == 0 || descriptor&single == 0 {
		return 0, 0, errBadFrame
	}
	at := 5
	size := 1 << (descriptor >> 6)
	if len(b) < at+size {
		return 0, 0, errCutFrame
	}
	var n uint64
	switch size {
	case 1:
		n = uint64(b[at])
	case 2:
		n = uint64(binary.LittleEndian.Uint16(b[at:])) + 256
	case 4:
		n = uint64(binary.LittleEndian.Uint32(b[at:]))
	default:
		n = binary.LittleEndian.Uint64(b[at:])
	}
	if n == 0 || n > maxRaw {
		return 0, 0, errBadFrame
	}
	return int(n), at + size, nil
}
