package linezstd

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

const (
	loadLen  = 8 // bytes that the finder loads at once
	copyLen  = 32
	minMatch = 4
	wordLen  = 6  // bytes of a word, with those behind it, that are found again
	maxWord  = 64 // bounds the walk through a word, so that no input costs a square

	shapeBits = 12 // of the hashes
	wordBits  = 13
	// A canonical line begins with `{"ts":"`, 30 bytes of time and the level.
	timeEnd    = 37
	levelStart = timeEnd + len(`","level":"`)
	maxLevel   = 8
	message    = `"msg":"`
)

// find cuts src[start:] into literals and matches with anything in front of them.
//
// Lines that come from one statement of a program have one shape: they differ only in
// values. So find lays a line beside the last one of its shape, at q, and walks along
// both. A match lasts until a value differs, and the next one begins behind both values.
func (e *Encoder) find(src []byte, start int) {
	limit := len(src) - loadLen
	p, q, from := start, max(0, start-e.reps.first), start
	line, end := start, start-1 // of the line that p is in; end is its newline
	for p < limit {
		if q < p && load32(src, p) == load32(src, q) {
			n := minMatch + matchLen(src, p+minMatch, q+minMatch)
			e.add(src, from, p, p-q, n)
			p, q = p+n, q+n
			if from = p; p >= limit {
				break
			}
		}
		if p > end {
			line, end = lineOf(src, p, end)
			if at := e.messageAt(src, line); at > 0 {
				slot := &e.shapes[hash(load64(src, at), shapeBits)]
				last := int(*slot)
				*slot = int32(line)
				if p < at {
					p = max(p, line+timeEnd)
					q = last + p - line
					if q < p && load32(src, p) == load32(src, q) {
						continue
					}
				}
			}
		}
		if p, q = e.align(src, p, q, end); p > end {
			q = line
		}
	}
	e.note(from, len(src)-2) // the first part of the next block has the last byte too
	e.lits = append(e.lits, src[from:]...)
}

// lineOf returns the extent of the line of p, which is behind the line that ends at end.
func lineOf(src []byte, p, end int) (int, int) {
	for {
		start := end + 1
		i := bytes.IndexByte(src[start:], '\n')
		if i < 0 {
			return start, len(src)
		}
		if end = start + i; p <= end {
			return start, end
		}
	}
}

// messageAt returns the place where a line's message begins, or 0 if the line is short.
// In a line that is not canonical it is some other place, which only costs ratio.
func (e *Encoder) messageAt(src []byte, start int) int {
	at := start + levelStart
	if at+maxLevel+e.toMessage > len(src)-loadLen {
		return 0
	}
	return at + max(0, bytes.IndexByte(src[at:at+maxLevel+1], '"')) + e.toMessage
}

// align walks from p and q, where two values differ, to places that are alike: behind
// values of one length, else a word that stood somewhere before, else behind values of two
// lengths. It returns a p behind end if the line has no such place.
func (e *Encoder) align(src []byte, p, q, end int) (int, int) {
	limit := len(src) - loadLen
	for p <= end && p < limit {
		word := p
		p = min(p+maxWord, limit, endOfWord(src, p))
		// Most values of a field have one length.
		if same := q + p - word; q < word && load32(src, p) == load32(src, same) {
			return p, same
		}
		begin := load64(src, word) << (64 - 8*wordLen)
		slot := &e.words[hash(begin, wordBits)]
		last := int(*slot)
		*slot = int32(word)
		if last < word && begin == load64(src, last)<<(64-8*wordLen) {
			return word, last
		}
		if src[p] == '"' {
			q = min(q+maxWord, p, endOfString(src, q))
		} else {
			q = min(q+maxWord, p, endOfWord(src, q))
		}
		if q < p && load32(src, p) == load32(src, q) {
			return p, q
		}
		p, q = p+1, q+1
	}
	return p, q
}

const (
	ones = 0x0101010101010101
	high = 0x80 * ones
)

// endOfWord returns the place of the first byte from p on that is in no word, or one that is
// further than a word may be long, or than the last byte that a load may begin at. Words have
// letters, digits, dots and bytes that are not ASCII.
func endOfWord(src []byte, p int) int {
	for end := p + maxWord; p < end && p <= len(src)-loadLen; p += loadLen {
		x := load64(src, p)
		ascii := x &^ high
		low := ascii | 0x20*ones
		// The highest bit of each byte: of such a pair of sums the second has it only if the
		// first has.
		letters := (low + (0x80-'a')*ones) ^ (low + (0x80-'z'-1)*ones)
		digits := (ascii + (0x80-'0')*ones) ^ (ascii + (0x80-'9'-1)*ones)
		noDots := (ascii ^ '.'*ones) + 0x7f*ones
		if others := noDots &^ (letters | digits | x) & high; others != 0 {
			return p + bits.TrailingZeros64(others)/8
		}
	}
	return p
}

// endOfString is endOfWord for text before a quote: only a quote ends it.
func endOfString(src []byte, p int) int {
	for end := p + maxWord; p < end && p <= len(src)-loadLen; p += loadLen {
		x := load64(src, p) ^ '"'*ones
		if quotes := (x - ones) &^ x & high; quotes != 0 {
			return p + bits.TrailingZeros64(quotes)/8
		}
	}
	return p
}

// add appends the literals src[from:p] and a match of n bytes at p, which begins earlier
// if it can.
func (e *Encoder) add(src []byte, from, p, offset, n int) {
	if q := p - offset; q >= loadLen && p > from {
		same := bits.LeadingZeros64(load64(src, p-loadLen)^load64(src, q-loadLen)) / 8
		same = min(same, p-from)
		p, n = p-same, n+same
		for ; same == loadLen && p > from && p > offset && src[p-1] == src[p-offset-1]; n++ {
			p--
		}
	}
	e.note(from, p)
	used := len(e.lits)
	if p-from <= copyLen && used+copyLen <= cap(e.lits) && from+copyLen <= len(src) {
		e.lits = e.lits[:used+copyLen]
		*(*[copyLen]byte)(e.lits[used:]) = [copyLen]byte(src[from:])
		e.lits = e.lits[:used+p-from]
	} else {
		e.lits = append(e.lits, src[from:p]...)
	}
	e.addSequence(p-from, offset, n)
}

// matchLen returns the number of equal bytes at p and q, which is in front of p.
func matchLen(src []byte, p, q int) int {
	n, a := 0, src[p:]
	b := src[q:][:len(a)]
	for ; len(a)-n >= loadLen; n += loadLen {
		if x := load64(a, n) ^ load64(b, n); x != 0 {
			return n + bits.TrailingZeros64(x)/8
		}
	}
	for n < len(a) && a[n] == b[n] {
		n++
	}
	return n
}

func load32(b []byte, i int) uint32 { return binary.LittleEndian.Uint32(b[i:]) }
func load64(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }

// hash returns the n highest bits of a product.
func hash(x uint64, n int) uint64 { return x * 0x9E3779B97F4A7C15 >> (64 - n) }
