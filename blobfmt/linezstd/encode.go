// Package linezstd makes zstd frames (RFC 8878) of log lines. An [Encoder] knows where lines of
// one service are alike, so it searches less than an encoder for any data, and finds more. Its
// frames of less than [MinSize] are better made by the zstd package. A [Slow] takes some twenty
// times the CPU to make frames that are an eighth smaller, for lines that are kept long.
package linezstd

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/huff0"
)

// MinSize is the number of bytes from which on this package pays. With fewer, it has seen
// too few lines when the next one comes.
const MinSize = 128 << 10

const (
	maxBlock    = 128 << 10 // zstd's own bound on one of its blocks
	minLiterals = 64        // fewer are not compressed
	// Forms of a block, and of its literals. 0 is as it is.
	compressed = 2
	sameTree   = 3
)

// An Encoder makes frames, one after another, and keeps its memory between them. Only one
// goroutine may use it.
type Encoder struct {
	shapes    [1 << shapeBits]int32 // starts of lines, by a hash of their messages' beginnings
	words     [1 << wordBits]int32  // places of words, by a hash
	toMessage int                   // bytes from the end of the level to the message
	coder
}

// A coder turns literals and matches into blocks.
type coder struct {
	// The block under construction.
	lits   []byte
	seqs   []sequence
	counts [kinds][maxCodes]uint32
	reps   repeats
	before repeats // those at the block's start

	fresh []uint64 // of the frame, a bit for each byte

	huff   huff0.Scratch
	tables [kinds]table
	known  bool // the decoder has the tables

	litCode    [64]uint8
	matchCode  [128]uint8
	litExtra   [maxCodes]uint8
	matchExtra [maxCodes]uint8
}

// NewEncoder returns an Encoder. It has 0.2 MiB, and 0.3 when it has made a frame of usual
// lines. The most is 1, for a block of nothing but short matches.
func NewEncoder() *Encoder {
	e := &Encoder{}
	e.coder.init()
	return e
}

// init makes an empty coder ready.
func (e *coder) init() {
	e.lits = make([]byte, 0, maxBlock+copyLen)
	e.huff.WantLogLess = 4
	copy(e.litExtra[16:], litExtra)
	copy(e.matchExtra[32:], matchExtra)
	fillCodes(e.litCode[:], &e.litExtra)
	fillCodes(e.matchCode[:], &e.matchExtra)
}

// Append appends a frame of src to dst. The frame has the content size, the single-segment
// flag and the checksum. src is at most 8 MiB, which is as much as every decoder accepts.
func (e *Encoder) Append(dst, src []byte) []byte {
	dst = appendHeader(dst, len(src))
	e.reset(src)
	for start, end := 0, -1; end < len(src); start = end {
		end = min(start+maxBlock, len(src))
		if i := bytes.LastIndexByte(src[start:end], '\n'); i >= 0 && end < len(src) {
			end = start + i + 1
		}
		e.begin()
		e.find(src[:end], start)
		dst = e.appendBlock(dst, src[:end], start, end == len(src))
	}
	e.note(len(src), len(src))
	e.borrow()
	return binary.LittleEndian.AppendUint32(dst, uint32(xxhash.Sum64(src)))
}

// appendHeader appends the beginning of a frame of n bytes: the magic number, and flags for
// a content size in 4 bytes, a single segment and a checksum.
func appendHeader(dst []byte, n int) []byte {
	dst = append(dst, 0x28, 0xb5, 0x2f, 0xfd, 2<<6|1<<5|1<<2)
	return binary.LittleEndian.AppendUint32(dst, uint32(n))
}

// Fresh returns a bit for each byte of the last frame's text, from the lowest on, and some
// more behind them. Those of the parts before, between and behind repeats of earlier text are
// set, and those of the bytes next to such a part. A part may be empty. The bits are valid
// until the next Append.
func (e *coder) Fresh() []uint64 { return e.fresh }

// note adds the bits for the part from start to end to the number that they are: the bit
// behind them less the first of them. Parts must have no bit in common.
func (e *coder) note(start, end int) {
	first, behind := uint(max(0, start-1)), uint(max(0, end+1))
	e.fresh[first/64] -= 1 << (first % 64)
	e.fresh[behind/64] += 1 << (behind % 64)
}

// borrow makes bits of all that was noted: a part that goes on in the next word borrows there.
func (e *coder) borrow() {
	less := uint64(0)
	for i, word := range e.fresh {
		word -= less
		e.fresh[i], less = word, word>>63
	}
}

// reset begins a frame.
func (e *Encoder) reset(src []byte) {
	e.coder.reset(src)
	clear(e.shapes[:])
	clear(e.words[:])
	e.toMessage = 0
	line, _, _ := bytes.Cut(src, []byte{'\n'})
	line = line[min(levelStart, len(line)):]
	if at, level := bytes.Index(line, []byte(message)), bytes.IndexByte(line, '"'); at > level {
		e.toMessage = at + len(message) - level
	}
}

// reset begins a frame.
func (e *coder) reset(src []byte) {
	size := len(src)/64 + 3
	e.fresh = slices.Grow(e.fresh[:0], size)[:size]
	clear(e.fresh)
	e.reps = repeats{1, 4, 8}
	e.forget()
}

// forget forbids the next block to use tables from blocks before it.
func (e *coder) forget() {
	e.known = false
	e.huff.Reuse = huff0.ReusePolicyNone
}

// begin begins a block.
func (e *coder) begin() {
	e.lits, e.seqs = e.lits[:0], e.seqs[:0]
	clear(e.counts[:])
	e.before = e.reps
}

// appendBlock appends the block of src[start:], of the literals and sequences that were added.
func (e *coder) appendBlock(dst, src []byte, start int, last bool) []byte {
	head := len(dst)
	form := compressed
	dst = e.appendSequences(e.appendLiterals(append(dst, 0, 0, 0)))
	if len(dst)-head-3 >= len(src)-start {
		form = 0
		dst = append(dst[:head+3], src[start:]...)
		e.reps = e.before
		e.forget()
	}
	h := (len(dst)-head-3)<<3 | form<<1
	if last {
		h |= 1
	}
	dst[head], dst[head+1], dst[head+2] = byte(h), byte(h>>8), byte(h>>16)
	return dst
}

// appendLiterals appends the section of the literals to a block.
func (e *coder) appendLiterals(dst []byte) []byte {
	n := len(e.lits)
	if n >= minLiterals {
		// Every error says that the literals do not become smaller.
		if out, same, err := huff0.Compress4X(e.lits, &e.huff); err == nil {
			e.huff.Reuse = huff0.ReusePolicyAllow
			form := uint64(compressed)
			if same {
				form = sameTree
			}
			h := form | 3<<2 | uint64(n)<<4 | uint64(len(out))<<22 // four streams
			dst = binary.LittleEndian.AppendUint32(dst, uint32(h))
			return append(append(dst, byte(h>>32)), out...)
		}
	}
	h := 3<<2 | n<<4
	return append(append(dst, byte(h), byte(h>>8), byte(h>>16)), e.lits...)
}
