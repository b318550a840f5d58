package blobfmt

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
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

// startsFrame reports whether b begins with the magic of a frame, skippable or not.
func startsFrame(b []byte) bool {
	if len(b) < 4 {
		return false
	}
	magic := binary.LittleEndian.Uint32(b)
	return magic == frameMagic || magic&skippableMask == skippableMagic
}

// parseFrame finds the extent of the frame at the start of b. It accepts only an
// Encoder's frames: with content size and checksum, and without a dictionary. On an
// error, length is the number of bytes that it parsed.
func parseFrame(b []byte) (frame, error) {
	var h zstd.Header
	err := h.Decode(b)
	f := frame{length: h.HeaderSize, skippable: h.Skippable}
	switch {
	case errors.Is(err, zstd.ErrMagicMismatch):
		return f, errNoFrame
	case errors.Is(err, io.ErrUnexpectedEOF), int64(h.SkippableSize) > int64(len(b)-f.length):
		return f, errCutFrame
	case err != nil:
		return f, errBadFrame
	case h.Skippable:
		f.length += int(h.SkippableSize)
		return f, nil
	case !h.SingleSegment, !h.HasCheckSum, h.DictionaryID != 0, h.FrameContentSize == 0, h.FrameContentSize > maxRaw:
		return f, errBadFrame
	}
	for last := false; !last; {
		if len(b)-f.length < 3 {
			return f, errCutFrame
		}
		block := b[f.length:]
		head := int(block[0]) | int(block[1])<<8 | int(block[2])<<16
		f.length += 3
		last = head&1 == 1
		size, kind := head>>3, head>>1&3
		if size > maxFrameBlock || kind == 3 { // 3 is reserved
			return f, errBadFrame
		}
		if kind == 1 { // run length: one byte, repeated
			size = 1
		}
		if len(b)-f.length < size {
			return f, errCutFrame
		}
		f.length += size
	}
	if len(b)-f.length < 4 {
		return f, errCutFrame
	}
	f.length += 4
	f.raw = int(h.FrameContentSize)
	return f, nil
}
