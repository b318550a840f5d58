package blobfmt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// A Decoder decompresses blocks. It keeps its buffers.
type Decoder struct {
	zstd *zstd.Decoder
	// described is for frames with a CRC-32C in an index. It leaves out zstd's own checksum.
	described *zstd.Decoder
}

// overAlloc is the room behind the content that lets zstd take its fast path.
const overAlloc = 16

// maxDecoded bounds the memory of one zstd call, in case an earlier check is wrong.
const maxDecoded = 64 << 20

// NewDecoder returns a Decoder that at most n goroutines use at once; others wait. It
// needs no closing.
func NewDecoder(n int) *Decoder {
	d := &Decoder{}
	for to, ignore := range map[**zstd.Decoder]bool{&d.zstd: false, &d.described: true} {
		*to, _ = zstd.NewReader(nil, // it fails only for invalid options
			zstd.IgnoreChecksum(ignore),
			zstd.WithDecoderConcurrency(max(1, n)),
			zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxRaw),
			zstd.WithDecoderMaxMemory(maxDecoded),
			zstd.WithDecodeAllCapLimit(true))
	}
	return d
}

// Block appends the lines of block b to dst. stored is the b.Stored bytes of the blob at
// b.Offset. The error is a [*CorruptError] if the block does not match the index.
func (d *Decoder) Block(dst, stored []byte, b Block) ([]byte, error) {
	if int64(len(stored)) != b.Stored {
		return dst, b.corrupt(fmt.Sprintf("the block is cut short at %d bytes", len(stored)))
	}
	// zstd's own checksum covers the lines only, and some bits of a frame do not affect
	// them. This checksum also detects damage faster, and suffices.
	if checksum(0, stored) != b.CRC {
		return dst, b.corrupt("the block's checksum is wrong")
	}
	start := len(dst)
	dst, err := d.decode(dst, stored, b.Raw)
	if err != nil {
		return dst, b.corrupt(err.Error())
	}
	if !wholeLines(dst[start:]) {
		return dst[:start], b.corrupt("the block does not hold the lines that the index says")
	}
	return dst, nil
}

func (b Block) corrupt(reason string) error {
	return &CorruptError{Blob: b.blob, Offset: b.Offset, Length: b.Stored, Reason: reason}
}

func wholeLines(lines []byte) bool {
	return len(lines) > 0 && lines[len(lines)-1] == '\n'
}

// decode appends the content of exactly one frame, which must have the length raw. The caller has
// checked the bytes of the frame. After an error dst is unchanged.
func (d *Decoder) decode(dst, stored []byte, raw int64) ([]byte, error) {
	f, err := parseFrame(stored)
	switch {
	case err != nil:
		return dst, err
	case f.skippable || f.length != len(stored):
		return dst, errBadFrame
	case int64(f.raw) != raw:
		return dst, fmt.Errorf("the zstd frame holds %d bytes and not %d", f.raw, raw)
	}
	return content(d.described, dst, stored, f)
}

// head returns the start of the content of a frame with checked bytes: the content of the first of
// zstd's blocks, up to 128 KiB. It is nil if that is all, or cannot be told.
func (d *Decoder) head(stored []byte) []byte {
	var h zstd.Header
	if err := h.Decode(stored); err != nil || h.Skippable || !h.FirstBlock.OK || h.FirstBlock.Last || !h.FirstBlock.Compressed {
		return nil
	}
	end := h.HeaderSize + 3 + h.FirstBlock.CompressedSize
	if end > len(stored) {
		return nil
	}
	// The first block alone is a frame too, with a header that names no length, a window of
	// 128 KiB and no checksum, and with the bit that marks the last block.
	frame := binary.LittleEndian.AppendUint32(make([]byte, 0, 6+end), frameMagic)
	frame = append(frame, 0, 7<<3)
	frame = append(frame, stored[h.HeaderSize:end]...)
	frame[6] |= 1
	out, err := d.described.DecodeAll(frame, make([]byte, 0, maxFrameBlock+overAlloc))
	if err != nil {
		return nil
	}
	return out
}

// content appends the content of a frame that has been parsed.
func content(z *zstd.Decoder, dst, stored []byte, f frame) ([]byte, error) {
	start := len(dst)
	if cap(dst) == 0 {
		dst = make([]byte, 0, f.raw+overAlloc) // slices.Grow would also clear it
	}
	dst = slices.Grow(dst, f.raw+overAlloc)
	out, err := z.DecodeAll(stored, dst)
	if err != nil {
		return dst[:start], fmt.Errorf("zstd: %w", err)
	}
	if len(out)-start != f.raw {
		return dst[:start], errBadFrame
	}
	return out, nil
}

// A Frame is a block found by [Decoder.Walk].
type Frame struct {
	Offset, Stored int64
	Lines          []byte // valid until the next step
}

// Walk goes through a whole blob without its index and yields every block that decodes. A
// damaged span is yielded as a [*CorruptError] with a zero Frame, and the walk continues
// behind it. Skippable frames are skipped, damaged or not.
func (d *Decoder) Walk(key string, body []byte) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		w := walk{d: d, body: body, budget: walkBudget + walkFactor*int64(len(body))}
		for at := 0; at < len(body); {
			f, err := w.try(at)
			if err != nil {
				end := w.next(at + 1)
				c := &CorruptError{Blob: key, Offset: int64(at), Length: int64(end - at), Reason: err.Error()}
				if !yield(Frame{}, c) {
					return
				}
				at = end
				continue
			}
			if !f.skippable && !yield(Frame{Offset: int64(at), Stored: int64(f.length), Lines: w.lines}, nil) {
				return
			}
			at += f.length
		}
	}
}

// A hostile blob can hold a frame that fails late at every few bytes. The budget bounds
// the bytes that the walk reads or decompresses in such attempts. Random damage never
// comes near it.
const (
	walkBudget = 64 << 20
	walkFactor = 16
)

var errWalkBudget = errors.New("too much of the blob is damaged to look for blocks further on")

type walk struct {
	d      *Decoder
	body   []byte
	lines  []byte // of the frame tried last
	budget int64
}

// try decodes the frame at an offset.
func (w *walk) try(at int) (frame, error) {
	if w.budget < 0 {
		return frame{}, errWalkBudget
	}
	f, err := parseFrame(w.body[at:])
	if err == nil && !f.skippable {
		w.lines, err = content(w.d.zstd, w.lines[:0], w.body[at:at+f.length], f)
		if err == nil && !wholeLines(w.lines) {
			err = errors.New("the content does not end in a line")
		}
	}
	if err != nil {
		w.budget -= int64(f.length + f.raw)
	}
	return f, err
}

// next finds the first frame at or after an offset that decodes, or the end.
func (w *walk) next(from int) int {
	for at := from; at+skippableHeader <= len(w.body) && w.budget >= 0; at++ {
		if !startsFrame(w.body[at:]) {
			continue
		}
		f, err := w.try(at)
		// Four bytes are weak evidence: a skippable frame must also lead to another
		// frame.
		end := at + f.length
		if err == nil && (!f.skippable || end == len(w.body) || startsFrame(w.body[end:])) {
			return at
		}
	}
	return len(w.body)
}
