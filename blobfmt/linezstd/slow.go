package linezstd

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// A Slow is an encoder for lines that are written once and kept long: it takes several times
// the CPU of an [Encoder], and its frames are a tenth smaller. It works in three steps for each
// block of zstd:
//
//   - A finder collects repeats: text that stood before, at some offset.
//   - A parser goes through the block and finds the cheapest way from its beginning to each
//     place, by literals and by parts of repeats. Prices are those of the block before.
//   - The way to the block's end becomes the block.
//
// It searches no further than 1 MiB back. Only one goroutine may use it.
type Slow struct {
	coder
	finder finder
	parser parser
}

// NewSlow returns a Slow. It has 7 MiB.
func NewSlow() *Slow {
	e := &Slow{}
	e.coder.init()
	return e
}

// Append appends a frame of src to dst, of the same form as [Encoder.Append] does.
func (e *Slow) Append(dst, src []byte) []byte {
	dst = appendHeader(dst, len(src))
	e.coder.reset(src)
	e.finder.reset()
	e.parser.prices.guess()
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
	e.finder.find(src, start)
	p.parse(&e.coder, src, start, &e.finder)
	if start == 0 { // prices were guessed
		p.prices.learn(p.way, &e.coder, src, start)
		p.parse(&e.coder, src, start, &e.finder)
	}
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
