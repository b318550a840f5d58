package linezstd

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// The three kinds of codes in a sequence, in the order of their tables.
const (
	litLengths = iota
	offsets
	matchLengths
	kinds
)

// A sequence is literals and the match behind them, as three codes and the bits that
// these leave open.
type sequence struct {
	extra uint64 // the bits of the literal length are the lowest, then match length, offset
	codes uint32 // a byte of each kind, and the length of extra, which is at most 16+16+23
}

func (s *sequence) code(kind int) uint8 { return uint8(s.codes >> (8 * kind)) }
func (s *sequence) bits() uint8         { return uint8(s.codes >> 24) }

// Repeats are the last three offsets, the last one first. Without arrays they stay in
// registers.
type repeats struct{ first, second, third int }

// addSequence appends a sequence.
func (e *Encoder) addSequence(litLen, offset, matchLen int) {
	// One of the last three offsets has a number from 1 to 3.
	r := e.reps
	number, second, third := offset+3, r.first, r.second
	if offset == r.third {
		number = 3
	}
	if offset == r.second {
		number, third = 2, r.third
	}
	if offset == r.first {
		number, second, third = 1, r.second, r.third
	}
	// Behind no literals the first one would continue a match, so the numbers mean the
	// other two, and one byte less than the first.
	switch {
	case litLen > 0:
	case number == 1:
		number, second, third = offset+3, r.first, r.second
	case number <= 3:
		number--
	}
	e.reps = repeats{offset, second, third}

	match := matchLen - 3
	lc := uint8(bits.Len32(uint32(litLen))) + 18
	if litLen < len(e.litCode) {
		lc = e.litCode[litLen]
	}
	mc := uint8(bits.Len32(uint32(match))) + 35
	if match < len(e.matchCode) {
		mc = e.matchCode[match]
	}
	oc := uint8(bits.Len32(uint32(number))) - 1
	lb, mb := e.litExtra[lc&63], e.matchExtra[mc&63]
	extra := uint64(number)&(1<<(oc&31)-1)<<((lb+mb)&63) | uint64(match)&(1<<(mb&31)-1)<<(lb&63) | uint64(litLen)&(1<<(lb&31)-1)
	e.seqs = append(e.seqs, sequence{extra, uint32(lc) | uint32(oc)<<8 | uint32(mc)<<16 | uint32(lb+mb+oc)<<24})
	e.counts[litLengths][lc&63]++
	e.counts[offsets][oc&63]++
	e.counts[matchLengths][mc&63]++
}

// appendSequences appends the section of the sequences to a block.
func (e *Encoder) appendSequences(dst []byte) []byte {
	n := len(e.seqs)
	switch {
	case n < 128:
		dst = append(dst, byte(n))
	case n < 0x7f00:
		dst = append(dst, byte(n>>8)+128, byte(n))
	default:
		dst = append(dst, 255, byte(n-0x7f00), byte((n-0x7f00)>>8))
	}
	if n == 0 {
		return dst
	}
	modes := len(dst)
	dst = append(dst, 0)
	for k := range kinds {
		mode := e.choose(k, n)
		dst[modes] |= mode << (6 - 2*k)
		if mode == modeTable {
			dst = e.tables[k].appendTo(dst)
		}
	}
	return e.appendBits(dst)
}

// appendBits appends the sequences' bits, of the last sequence first, because decoders
// read them from the end.
func (e *Encoder) appendBits(dst []byte) []byte {
	ll, of, ml := e.tables[litLengths], e.tables[offsets], e.tables[matchLengths]
	at := len(dst)
	buf := slices.Grow(dst, len(e.seqs)*maxSequence+64)
	buf = buf[:cap(buf)]
	w := bitWriter{at: at}
	last := e.seqs[len(e.seqs)-1]
	l, o, m := ll.first(last.code(litLengths)), of.first(last.code(offsets)), ml.first(last.code(matchLengths))
	w = w.add(last.extra, last.bits()).flush(buf)
	for i := len(e.seqs) - 2; i >= 0; i-- {
		s := &e.seqs[i]
		w, o = of.next(w, o, s.code(offsets))
		w, m = ml.next(w, m, s.code(matchLengths))
		w, l = ll.next(w, l, s.code(litLengths))
		if w.n+uint(s.bits()) > 63 {
			w = w.flush(buf)
		}
		w = w.add(s.extra, s.bits()).flush(buf)
	}
	w = w.add(uint64(m)&(1<<ml.log-1), ml.log).add(uint64(o)&(1<<of.log-1), of.log).flush(buf)
	w = w.add(uint64(l)&(1<<ll.log-1), ll.log).add(1, 1).flush(buf)
	return buf[:w.end()]
}

const maxSequence = 12 // bytes: 26 bits of states and 55 of values

// A bitWriter holds the bits that are not yet written, with the first in the lowest
// place. It holds at most 7 after flush.
type bitWriter struct {
	acc uint64
	n   uint
	at  int // place of the next byte
}

func (w bitWriter) add(v uint64, n uint8) bitWriter {
	w.acc |= v << (w.n & 63)
	w.n += uint(n)
	return w
}

// end returns the place behind the last bit, after flush.
func (w bitWriter) end() int { return w.at + int(w.n+7)/8 }

func (w bitWriter) flush(buf []byte) bitWriter {
	binary.LittleEndian.PutUint64(buf[w.at:], w.acc)
	w.at += int(w.n >> 3)
	w.acc >>= w.n &^ 7 & 63
	w.n &= 7
	return w
}
