package linezstd

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// The kinds of codes in a sequence, in the order of their tables.
const (
	litLengths = iota
	offsets
	matchLengths
	kinds
)

// Bits that a code of a literal or match length leaves open, from the codes 16 and 32 on.
// A code before has one value.
const (
	litExtra   = "\x01\x01\x01\x01\x02\x02\x03\x03\x04\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10"
	matchExtra = "\x01\x01\x01\x01\x02\x02\x03\x03\x04\x04\x05\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10"
)

// A sequence is literals and the match behind them: three codes, and the bits that these
// leave open.
type sequence struct {
	extra uint64 // literal length in the lowest bits, then match length, then offset
	codes uint32 // a byte of each kind, and the length of extra
}

func (s *sequence) code(kind int) uint8 { return uint8(s.codes >> (8 * kind)) }
func (s *sequence) bits() uint8         { return uint8(s.codes >> 24) }

// Repeats are the last three offsets. They are no array, so that they stay in registers.
type repeats struct{ first, second, third int }

// fillCodes sets the code of each value.
func fillCodes(codes []uint8, extra *[maxCodes]uint8) {
	for v, code := 0, 0; v < len(codes); code++ {
		for end := v + 1<<extra[code]; v < min(end, len(codes)); v++ {
			codes[v] = uint8(code)
		}
	}
}

// number returns the number that stands for an offset behind so many literals, and the
// repeats from then on.
func (r repeats) number(literals, offset int) (int, repeats) {
	// One of the last three offsets has a number from 1 to 3.
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
	// Behind no literals the first would continue a match, so 1 and 2 mean the others, and 3
	// the byte behind the first.
	switch {
	case literals > 0:
	case number == 1:
		number, second, third = offset+3, r.first, r.second
	case number <= 3:
		number--
	case offset == r.first-1:
		number = 3
	}
	return number, repeats{offset, second, third}
}

// codeOfLiterals is the code of a number of literals.
func (e *coder) codeOfLiterals(n int) uint8 {
	if n < len(e.litCode) {
		return e.litCode[n]
	}
	return uint8(bits.Len32(uint32(n))) + 18
}

// codeOfMatch is the code of the length of a match, less 3.
func (e *coder) codeOfMatch(n int) uint8 {
	if n < len(e.matchCode) {
		return e.matchCode[n]
	}
	return uint8(bits.Len32(uint32(n))) + 35
}

// addSequence appends a sequence to the block.
func (e *coder) addSequence(litLen, offset, matchLen int) {
	number, reps := e.reps.number(litLen, offset)
	e.reps = reps
	match := matchLen - 3
	lc, mc := e.codeOfLiterals(litLen), e.codeOfMatch(match)
	oc := uint8(bits.Len32(uint32(number))) - 1
	lb, mb := e.litExtra[lc%maxCodes], e.matchExtra[mc%maxCodes]
	extra := uint64(number)&(1<<(oc&31)-1)<<((lb+mb)&63) | uint64(match)&(1<<(mb&31)-1)<<(lb&63) | uint64(litLen)&(1<<(lb&31)-1)
	e.seqs = append(e.seqs, sequence{extra, uint32(lc) | uint32(oc)<<8 | uint32(mc)<<16 | uint32(lb+mb+oc)<<24})
	e.counts[litLengths][lc%maxCodes]++
	e.counts[offsets][oc%maxCodes]++
	e.counts[matchLengths][mc%maxCodes]++
}

// appendSequences appends the section of the sequences to a block.
func (e *coder) appendSequences(dst []byte) []byte {
	n := len(e.seqs)
	switch {
	case n == 0:
		return append(dst, 0)
	case n < 0x7f00:
		dst = append(dst, byte(n>>8)+128, byte(n))
	default:
		dst = append(dst, 255, byte(n-0x7f00), byte((n-0x7f00)>>8))
	}
	modes := len(dst)
	dst = append(dst, 0)
	for k := range kinds {
		mode := modeRepeat
		if t := &e.tables[k]; !e.known || t.wastes(&e.counts[k], n) {
			mode = modeTable
			t.normalize(&e.counts[k], n, k)
			t.build()
			dst = t.appendTo(dst)
		}
		dst[modes] |= byte(mode << (6 - 2*k))
	}
	e.known = true
	return e.appendBits(dst)
}

// appendBits appends the bits of the sequences. The last sequence comes first, because
// decoders read from the end.
func (e *coder) appendBits(dst []byte) []byte {
	ll, of, ml := &e.tables[litLengths], &e.tables[offsets], &e.tables[matchLengths]
	w := bitWriter{at: len(dst)}
	buf := slices.Grow(dst, 12*len(e.seqs)+32) // 26 and 55 bits a sequence
	buf = buf[:cap(buf)]
	s := &e.seqs[len(e.seqs)-1]
	l, o, m := ll.first(s.code(litLengths)), of.first(s.code(offsets)), ml.first(s.code(matchLengths))
	w = w.add(s.extra, s.bits()).flush(buf)
	for i := len(e.seqs) - 2; i >= 0; i-- {
		s = &e.seqs[i]
		w, o = of.next(w, o, s.code(offsets))
		w, m = ml.next(w, m, s.code(matchLengths))
		w, l = ll.next(w, l, s.code(litLengths))
		if w.n+uint(s.bits()) > 63 {
			w = w.flush(buf)
		}
		w.bits |= s.extra << (w.n & 63)
		w.n += uint(s.bits())
		w = w.flush(buf)
	}
	w = w.add(uint64(m), ml.log).add(uint64(o), of.log).flush(buf)
	w = w.add(uint64(l), ll.log).add(1, 1).flush(buf)
	return buf[:w.at+int(w.n+7)/8]
}

// A bitWriter holds the bits that are not written yet, the first one lowest. After flush
// it holds at most 7.
type bitWriter struct {
	bits uint64
	n    uint
	at   int // of the next byte
}

// add adds the n lowest bits of v.
func (w bitWriter) add(v uint64, n uint8) bitWriter {
	w.bits |= v & (1<<(n&63) - 1) << (w.n & 63)
	w.n += uint(n)
	return w
}

// flush writes the whole bytes, and needs room for 8.
func (w bitWriter) flush(buf []byte) bitWriter {
	binary.LittleEndian.PutUint64(buf[w.at:], w.bits)
	w.at += int(w.n / 8)
	w.bits >>= w.n &^ 7 & 63
	w.n %= 8
	return w
}
