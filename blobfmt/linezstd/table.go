package linezstd

import (
	"math"
	"math/bits"
	"slices"
)

const (
	modeTable  = 2
	modeRepeat = 3
	maxCodes   = 64
	minLog     = 5
	maxLog     = 9
)

// A table turns the codes of one kind into bits by finite state entropy (RFC 8878, 4.1).
type table struct {
	log   uint8               // bits of a state
	share [maxCodes]int       // of the codes in the states
	steps [maxCodes]step      // encode a code
	state [1 << maxLog]uint16 // the states of the codes, one code after another
}

// A step leads from a state to the next one of a code. The states of the code begin behind base.
// The upper half of bits and the state is the number of bits to write.
type step struct{ bits, base int32 }

// wastes reports whether the table takes so many more bits for the codes than a new one
// that this pays for its description and the time to make it.
func (t *table) wastes(counts *[maxCodes]uint32, n int) bool {
	waste, size := 0.0, float64(n)/float64(int(1)<<t.log)
	for code, c := range counts {
		if c > 0 { // a code without a share wastes infinitely many
			waste += float64(c)*math.Log2(float64(c)/(size*float64(t.share[code]))) - 15
		}
	}
	return waste > 0
}

// normalize makes shares of counts that add up to n.
func (t *table) normalize(counts *[maxCodes]uint32, n, kind int) {
	most := maxLog
	if kind == offsets {
		most = 8
	}
	t.log = uint8(min(most, max(minLog+1, bits.Len(uint(n))-3)))
	size := 1 << t.log
	left := size
	for code, c := range counts {
		t.share[code] = 0
		if c > 0 {
			t.share[code] = max(1, (int(c)*size+n/2)/n)
			left -= t.share[code]
		}
	}
	largest := slices.Index(counts[:], slices.Max(counts[:]))
	if t.share[largest] == size { // a description cannot say that there is only one code
		t.share[(largest+1)%2]++
		left--
	}
	for ; left < 0; left++ {
		t.share[slices.Index(t.share[:], slices.Max(t.share[:]))]--
	}
	t.share[largest] += left
}

// build makes the rest of the table from its shares.
func (t *table) build() {
	var codes [1 << maxLog]uint8 // of the states
	var next [maxCodes]int
	size, total, at := 1<<t.log, 0, 0
	for code, share := range t.share {
		most := int(t.log) + 1 - max(1, bits.Len(uint(max(1, share)-1))) // bits from the lowest states
		t.steps[code] = step{int32(most<<16 - share<<most), int32(total - share)}
		next[code] = total
		total += share
		for range share {
			codes[at] = uint8(code)
			at = (at + size>>1 + size>>3 + 3) % size
		}
	}
	for i, code := range codes[:size] {
		t.state[next[code]] = uint16(size + i)
		next[code]++
	}
}

// first returns the state in which a decoder ends.
func (t *table) first(code uint8) uint32 {
	return uint32(t.state[int(t.steps[code].base)+t.share[code]])
}

// next writes a code, and returns the state that leads to it.
func (t *table) next(w bitWriter, state uint32, code uint8) (bitWriter, uint32) {
	s := &t.steps[code%maxCodes]
	n := uint8((state + uint32(s.bits)) >> 16)
	return w.add(uint64(state), n), uint32(t.state[(state>>(n&31)+uint32(s.base))%(1<<maxLog)])
}

// appendTo appends the table's description.
func (t *table) appendTo(dst []byte) []byte {
	var buf [128]byte
	w := bitWriter{}.add(uint64(t.log-minLog), 4)
	for code, left := 0, 1<<t.log+1; left > 1; code++ {
		// A share is a number up to left, and the low numbers take one bit less.
		share, width := t.share[code], bits.Len(uint(left))
		v, short := share+1, 1<<width-1-left
		if v >= 1<<(width-1) {
			v += short
		} else if v < short {
			width--
		}
		w = w.add(uint64(v), uint8(width)).flush(buf[:])
		left -= share
		for zeros := 3; share == 0 && zeros == 3; {
			// Behind no share is the number of codes without one, 3 for more to come.
			for zeros = 0; zeros < 3 && t.share[code+1] == 0; zeros++ {
				code++
			}
			w = w.add(uint64(zeros), 2).flush(buf[:])
		}
	}
	return append(dst, buf[:w.at+int(w.n+7)/8]...)
}
