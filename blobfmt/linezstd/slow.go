package linezstd

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// A Slow is an encoder for lines that are written once and kept long. It works in three steps
// for each block of zstd:
//
//   - A finder collects repeats: text that stood before, at some offset.
//   - A parser goes through the block and finds the cheapest way from its beginning to each
//     place, by literals and by parts of repeats. Prices are those of the block before, and
//     of the frame's beginning for the first block.
//   - The way to the block's end becomes the block.
//
// It searches no further than 1 MiB back. Only one goroutine may use it.
type Slow struct {
	coder
	finder finder
	parser parser
}

// NewSlow returns a Slow. It has 5 MiB, and up to 16 more for text in which much repeats.
func NewSlow() *Slow {
	e := &Slow{}
	e.coder.init()
	return e
}

// Append appends a frame of src to dst, of the same form as [Encoder.Append] does.
func (e *Slow) Append(dst, src []byte) []byte {
	dst = appendHeader(dst, len(src))
	e.coder.reset(src)
	for start, end := 0, -1; end < len(src); start = end {
		end = min(start+maxBlock, len(src))
		e.parse(src[:end], start)
		dst = e.appendBlock(dst, src[:end], start, end == len(src))
	}
	e.note(len(src), len(src))
	e.borrow()
	return binary.LittleEndian.AppendUint32(dst, uint32(xxhash.Sum64(src)))
}

// parse cuts src[start:] into literals and matches.
func (e *Slow) parse(src []byte, start int) {
	e.begin()
	p := &e.parser
	if start == 0 {
		e.learn(src[:min(len(src), sample)])
	}
	e.finder.find(src, start)
	p.parse(&e.coder, src, start, &e.finder)
	p.prices.learn(p.way, &e.coder, src, start)
	from := start
	for _, s := range p.way {
		at := from + int(s.literals)
		e.note(from, at)
		e.lits = append(e.lits, src[from:at]...)
		e.addSequence(int(s.literals), int(s.offset), int(s.length))
		from = at + int(s.length)
	}
	e.note(from, len(src)-2) // the first part of the next block has the last byte too
	e.lits = append(e.lits, src[from:]...)
}

// sample is the length of the text by which the prices of a frame's first block are known.
const sample = 16 << 10

// learn sets the prices to those of a frame's beginning.
func (e *Slow) learn(src []byte) {
	p := &e.parser
	p.prices.guess()
	for range 2 {
		e.finder.reset()
		e.finder.find(src, 0)
		p.parse(&e.coder, src, 0, &e.finder)
		p.prices.learn(p.way, &e.coder, src, 0)
	}
	e.finder.reset()
}
