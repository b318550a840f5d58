package linezstd

import (
	"math"
	"math/bits"
	"slices"
)

// Modes of a table in the section of the sequences.
const (
	modePredefined = 0
	modeTable      = 2
	modeRepeat     = 3
)

const (
	maxLog   = 9 // of a table; offsets have 8
	minLog   = 5
	maxCodes = 64
)

// A table turns codes of one kind into bits by finite state entropy (RFC 8878, 4.1). A
// state is a number of log bits.
type table struct {
	log   uint8
	norm  [maxCodes]int16   // shares of the codes; they add up to 1<<log. -1 is a share of 1
	cost  [maxCodes]float32 // bits
	steps [maxCodes]step
	state [1 << maxLog]uint16 // the next states
}

// A step encodes one code.
type step struct {
	bits int32 // added to the state, it leaves the number of bits in its upper half
	base int32 // of the code's part of table.state
}

// build makes the table of log and norm.
func (t *table) build() {
	size := 1 << t.log
	var symbols [1 << maxLog]uint8
	var next [maxCodes]int
	t.steps = [maxCodes]step{}
	total, top := 0, size-1
	for s, n := range t.norm {
		t.cost[s] = float32(math.Inf(1))
		if n == 0 {
			continue
		}
		next[s] = total
		share := max(1, int(n))
		if n < 0 {
			symbols[top] = uint8(s)
			top--
		}
		most := int(t.log) - bits.Len(uint(share-1)) + 1 // bits from the lowest states
		if share == 1 {
			most = int(t.log)
		}
		t.steps[s] = step{bits: int32(most<<16 - share<<most), base: int32(total - share)}
		t.cost[s] = float32(t.log) - float32(math.Log2(float64(share)))
		total += share
	}
	at, stride := 0, size>>1+size>>3+3
	for s, n := range t.norm {
		for range max(0, n) {
			symbols[at] = uint8(s)
			for at = (at + stride) & (size - 1); at > top; {
				at = (at + stride) & (size - 1)
			}
		}
	}
	for i, s := range symbols[:size] {
		t.state[next[s]] = uint16(size + i)
		next[s]++
	}
}

// first returns the state that the last sequence's code begins with.
func (t *table) first(code uint8) uint32 {
	s := t.steps[code%maxCodes]
	n := (s.bits + 1<<15) >> 16
	return uint32(t.state[(n<<16-s.bits)>>n+s.base])
}

// next writes a code.
func (t *table) next(w bitWriter, state uint32, code uint8) (bitWriter, uint32) {
	s := &t.steps[code%maxCodes]
	n := uint8((state + uint32(s.bits)) >> 16)
	w = w.add(uint64(state)&(1<<(n&15)-1), n)
	return w, uint32(t.state[(state>>(n&15)+uint32(s.base))%(1<<maxLog)])
}

// bitsOf returns the length of the codes in bits, which is infinite if one has no share.
func (t *table) bitsOf(counts *[maxCodes]uint32) float32 {
	sum := float32(0)
	for s, n := range counts {
		if n > 0 {
			sum += float32(n) * t.cost[s]
		}
	}
	return sum
}

// choose sets the table of a kind for n sequences and returns its mode.
func (e *Encoder) choose(kind, n int) uint8 {
	counts := &e.counts[kind]
	// A new table costs at least its description and what the codes need.
	own := float32(0)
	for _, c := range counts {
		if c > 0 {
			own += 5 + float32(c)*float32(math.Log2(float64(n)/float64(c)))
		}
	}
	previous := e.tables[kind]
	predefined := &e.predefined[kind]
	if known := previous != nil; known && previous.bitsOf(counts) <= own {
		return modeRepeat
	}
	if predefined.bitsOf(counts) <= own {
		e.tables[kind] = predefined
		return modePredefined
	}
	t := &e.made[kind]
	most := uint8(maxLog)
	if kind == offsets {
		most = 8
	}
	t.normalize(counts, n, most)
	t.build()
	e.tables[kind] = t
	return modeTable
}

// normalize makes shares from counts that add up to n.
func (t *table) normalize(counts *[maxCodes]uint32, n int, most uint8) {
	codes := 0
	for _, c := range counts {
		if c > 0 {
			codes++
		}
	}
	t.log = min(most, uint8(max(minLog, bits.Len(uint(codes)), bits.Len(uint(n-1))-3)))
	size := 1 << t.log
	left := size
	for s, c := range counts {
		t.norm[s] = 0
		if c > 0 {
			t.norm[s] = int16(max(1, (int(c)*size+n/2)/n))
			left -= int(t.norm[s])
		}
	}
	if codes == 1 {
		// A description cannot say that there is one code only.
		s := slices.Index(t.norm[:], int16(size))
		t.norm[s]--
		if s == 0 {
			s = 2
		}
		t.norm[s-1] = 1
	}
	for ; left < 0; left++ {
		t.norm[slices.Index(t.norm[:], slices.Max(t.norm[:]))]--
	}
	t.norm[slices.Index(t.norm[:], slices.Max(t.norm[:]))] += int16(left)
}

// appendTo appends the table's description.
func (t *table) appendTo(dst []byte) []byte {
	var buf [128]byte
	w := bitWriter{}.add(uint64(t.log-minLog), 4)
	left := 1<<t.log + 1
	for s := 0; left > 1; s++ {
		n := int(t.norm[s])
		width := bits.Len(uint(left)) // values are 0 to left
		// The low values take one bit less, as many as there are unused values.
		short := 1<<width - 1 - left
		v := n + 1
		if v >= 1<<(width-1) {
			v += short
		}
		if v < short {
			width--
		}
		w = w.add(uint64(v), uint8(width)).flush(buf[:])
		left -= max(n, -n)
		for zeros := 0; n == 0; s += zeros {
			for zeros = 0; zeros < 3 && t.norm[s+1+zeros] == 0; zeros++ {
			}
			w = w.add(uint64(zeros), 2).flush(buf[:])
			if zeros < 3 {
				n = -1
			}
		}
	}
	return append(dst, buf[:w.end()]...)
}
