// Package linezstd makes zstd frames (RFC 8878) of log lines, in less time than an encoder
// that knows nothing of lines.
package linezstd

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/huff0"
)

const maxBlock = 128 << 10 // zstd's own bound on one of its blocks

// An Encoder makes frames, one after another, and keeps its memory between them. Only one
// goroutine may use it.
type Encoder struct {
	// What is in front of the finder, by a hash: starts of lines and places of words.
	shapes    [1 << shapeBits]int32
	words     [1 << wordBits]int32
	inWord    [256]bool
	toMessage int // from the end of the level to the message

	// The block under construction.
	lits   []byte
	seqs   []sequence
	counts [kinds][maxCodes]uint32
	reps   repeats

	huff       huff0.Scratch
	tables     [kinds]*table // of the block before, nil: none
	made       [kinds]table
	predefined [kinds]table

	litCode    [64]uint8
	matchCode  [128]uint8
	litExtra   [maxCodes]uint8
	matchExtra [maxCodes]uint8
}

// NewEncoder returns an Encoder.
func NewEncoder() *Encoder {
	e := &Encoder{lits: make([]byte, 0, maxBlock+copyLen)}
	for c := range e.inWord {
		e.inWord[c] = c == '.' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || c >= 0x80
	}
	e.huff.WantLogLess = 4
	e.initCodes()
	return e
}

// Append appends a frame of src to dst. The frame has the content size, the single-segment
// flag and the checksum. src is at most 8 MiB, which is as much as every decoder accepts.
func (e *Encoder) Append(dst, src []byte) []byte {
	dst = appendHeader(dst, len(src))
	e.reset(src)
	for start := 0; ; {
		end := blockEnd(src, start)
		dst = e.appendBlock(dst, src[:end], start, end == len(src))
		if start = end; start == len(src) {
			return binary.LittleEndian.AppendUint32(dst, uint32(xxhash.Sum64(src)))
		}
	}
}

// appendHeader appends the header of a frame.
func appendHeader(dst []byte, size int) []byte {
	const flags = 1<<5 | 1<<2 // single segment, checksum
	dst = append(dst, 0x28, 0xb5, 0x2f, 0xfd)
	switch {
	case size < 256:
		return append(dst, flags, byte(size))
	case size < 256+1<<16:
		return binary.LittleEndian.AppendUint16(append(dst, flags|1<<6), uint16(size-256))
	default:
		return binary.LittleEndian.AppendUint32(append(dst, flags|2<<6), uint32(size))
	}
}

// reset begins a frame.
func (e *Encoder) reset(src []byte) {
	clear(e.shapes[:])
	clear(e.words[:])
	e.reps = repeats{1, 4, 8}
	e.forget()
	first, _, _ := bytes.Cut(src, []byte{'\n'})
	e.toMessage = 0
	if len(first) > levelStart {
		level := bytes.IndexByte(first[levelStart:], '"')
		if at := bytes.Index(first[levelStart:], []byte(`"msg":"`)); at > level && level >= 0 {
			e.toMessage = at + len(`"msg":"`) - level
		}
	}
}

// forget forbids the next block to use tables of blocks before it.
func (e *Encoder) forget() {
	e.tables = [kinds]*table{}
	e.huff.Reuse = huff0.ReusePolicyNone
}

// blockEnd returns the end of the block that begins at start. It is the end of a line if
// a block can hold one.
func blockEnd(src []byte, start int) int {
	if len(src)-start <= maxBlock {
		return len(src)
	}
	end := start + maxBlock
	if i := bytes.LastIndexByte(src[start:end], '\n'); i >= 0 {
		return start + i + 1
	}
	return end
}

// Types of blocks.
const (
	blockRaw        = 0
	blockCompressed = 2
)

// appendBlock appends the block of src[start:].
func (e *Encoder) appendBlock(dst, src []byte, start int, last bool) []byte {
	e.lits, e.seqs, e.counts = e.lits[:0], e.seqs[:0], [kinds][maxCodes]uint32{}
	reps, size := e.reps, len(src)-start
	e.find(src, start)
	head := len(dst)
	dst = append(dst, 0, 0, 0)
	kind := blockCompressed
	dst = e.appendSequences(e.appendLiterals(dst))
	if len(dst)-head-3 >= size {
		kind = blockRaw
		dst = append(dst[:head+3], src[start:]...)
		e.reps = reps
		e.forget()
	}
	h := uint32(len(dst)-head-3)<<3 | uint32(kind)<<1
	if last {
		h |= 1
	}
	dst[head], dst[head+1], dst[head+2] = byte(h), byte(h>>8), byte(h>>16)
	return dst
}

// Types of literals.
const (
	literalsRaw = iota
	literalsRepeated
	literalsHuffman
	literalsSameTree
)

const manyLiterals = 1024 // are coded in four streams

// appendLiterals appends the section of the literals to a block.
func (e *Encoder) appendLiterals(dst []byte) []byte {
	n := len(e.lits)
	var out []byte
	var same bool
	err := error(huff0.ErrIncompressible)
	switch {
	case n >= manyLiterals:
		out, same, err = huff0.Compress4X(e.lits, &e.huff)
	case n > 16:
		out, same, err = huff0.Compress1X(e.lits, &e.huff)
	}
	switch {
	case errors.Is(err, huff0.ErrUseRLE):
		return append(appendSize(dst, literalsRepeated, n), e.lits[0])
	case err != nil || len(out) >= n:
		if err == nil {
			e.huff.Reuse = huff0.ReusePolicyNone
		}
		return append(appendSize(dst, literalsRaw, n), e.lits...)
	}
	e.huff.Reuse = huff0.ReusePolicyAllow
	kind := uint64(literalsHuffman)
	if same {
		kind = literalsSameTree
	}
	c := uint64(len(out))
	switch {
	case n < manyLiterals:
		h := kind | uint64(n)<<4 | c<<14
		dst = append(dst, byte(h), byte(h>>8), byte(h>>16))
	case n < 1<<14:
		dst = binary.LittleEndian.AppendUint32(dst, uint32(kind|2<<2|uint64(n)<<4|c<<18))
	default:
		h := kind | 3<<2 | uint64(n)<<4 | c<<22
		dst = append(binary.LittleEndian.AppendUint32(dst, uint32(h)), byte(h>>32))
	}
	return append(dst, out...)
}

// appendSize appends the header of literals that are not compressed.
func appendSize(dst []byte, kind, n int) []byte {
	switch {
	case n < 1<<5:
		return append(dst, byte(kind|n<<3))
	case n < 1<<12:
		return binary.LittleEndian.AppendUint16(dst, uint16(kind|1<<2|n<<4))
	default:
		h := kind | 3<<2 | n<<4
		return append(dst, byte(h), byte(h>>8), byte(h>>16))
	}
}

// Bits that the codes of literal and match lengths leave open: those of the codes from 16
// and 32. Every code before has one value.
var (
	litExtra   = [...]uint8{1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	matchExtra = [...]uint8{1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
)

// Shares of the codes in the tables that a decoder has from the start.
var (
	litShares    = [...]int16{4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1}
	offsetShares = [...]int16{1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1}
	matchShares  = [...]int16{1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1}
)

// initCodes fills the tables that never change.
func (e *Encoder) initCodes() {
	copy(e.litExtra[16:], litExtra[:])
	copy(e.matchExtra[32:], matchExtra[:])
	fill := func(codes []uint8, extra *[maxCodes]uint8) {
		for v, code := 0, 0; v < len(codes); code++ {
			for n := 1 << extra[code]; n > 0 && v < len(codes); n-- {
				codes[v] = uint8(code)
				v++
			}
		}
	}
	fill(e.litCode[:], &e.litExtra)
	fill(e.matchCode[:], &e.matchExtra)
	for k, shares := range [kinds][]int16{litShares[:], offsetShares[:], matchShares[:]} {
		t := &e.predefined[k]
		t.log = 6
		if k == offsets {
			t.log = 5
		}
		copy(t.norm[:], shares)
		t.build()
	}
}

var _ = slices.Max[[]int]
