package linezstd

import "math/bits"

const (
	keyLen     = 6 // bytes by which repeats are found
	bucketBits = 14
	tagBits    = 12
	ringMask   = 1<<(32-tagBits) - 1
	// Places further before the end of all known repeats are not looked up: values differ
	// there, and what follows a value may go on for longer elsewhere.
	lookAhead = 8
	// Bounds that no usual text reaches. They bound the time for the others.
	maxLength = 1 << 16
	maxBefore = 1 << 10
)

// A repeat is text that stood offset bytes before: all from start to end.
type repeat struct {
	start, end, offset int32
	next               int32 // with the same start: its place in found, plus 1
}

// A finder finds repeats in a block of all text before.
type finder struct {
	buckets [1 << bucketBits]bucket
	used    [1 << bucketBits]uint8 // places that a bucket has got, modulo 256
	found   []repeat
	first   [maxBlock]int32 // by the start in the block: its place in found, plus 1
	front   front
}

// A bucket has the last places of some keys: a tag of the key in the highest bits, and the
// lowest bits of the place. A new place takes that of the oldest.
type bucket [4]uint32

// reset begins a frame.
func (f *finder) reset() {
	clear(f.buckets[:])
	clear(f.used[:])
}

// find collects the repeats in src[start:].
func (f *finder) find(src []byte, start int) {
	f.found = f.found[:0]
	clear(f.first[:])
	f.front.n = 0
	reach := start // end of the repeat that goes furthest
	for p := start; p <= len(src)-loadLen; p++ {
		h := hash(load64(src, p)<<(64-8*keyLen), bucketBits+tagBits)
		k := h >> tagBits % (1 << bucketBits)
		entry := uint32(h)<<(32-tagBits) | uint32(p&ringMask)
		if p+lookAhead >= reach {
			f.front.drop(p)
			reach = max(reach, f.lookUp(src, start, p, k, entry))
		}
		f.buckets[k][f.used[k]%4] = entry
		f.used[k]++
	}
}

// lookUp adds the repeats at p of the places in a bucket, the last one first, and returns the
// end of the longest.
func (f *finder) lookUp(src []byte, start, p int, k uint64, entry uint32) int {
	text := src[:min(len(src), p+maxLength)]
	longest := keyLen - 1
	places, newest := &f.buckets[k], f.used[k]-1
	for i := range uint8(len(places)) {
		place := places[(newest-i)%4]
		if (place^entry)>>(32-tagBits) != 0 {
			continue
		}
		offset := (p - int(place)) & ringMask
		q := p - offset
		if q < 0 || offset == 0 || p+longest >= len(text) || src[q+longest] != src[p+longest] {
			continue
		}
		n := matchLen(text, p, q)
		if n <= longest {
			continue
		}
		longest = n
		if !f.front.add(offset, p+n) {
			continue
		}
		from := p
		for least := max(start, offset, p-maxBefore); from > least && src[from-1] == src[from-1-offset]; {
			from--
		}
		f.found = append(f.found, repeat{int32(from), int32(p + n), int32(offset), f.first[from-start]})
		f.first[from-start] = int32(len(f.found))
	}
	return p + longest
}

// A front has the repeats that cover a place, without those than which another one is
// better: ends no earlier, with no more bits in its offset. Both are ascending.
type front struct {
	n int
	r [24]struct{ offset, end, code int32 } // an offset has at most 23 bits
}

// drop drops the repeats that are too short from p on.
func (f *front) drop(p int) {
	k := 0
	for k < f.n && int(f.r[k].end) < p+minSlow {
		k++
	}
	if k > 0 {
		copy(f.r[:], f.r[k:f.n])
		f.n -= k
	}
}

// add adds a repeat, unless the front has a better one.
func (f *front) add(offset, end int) bool {
	code := int32(bits.Len32(uint32(offset+3))) - 1
	i := 0
	for i < f.n && f.r[i].end < int32(end) {
		i++
	}
	if i < f.n && f.r[i].code <= code {
		return false
	}
	worse := i // from here to i
	for worse > 0 && f.r[worse-1].code >= code {
		worse--
	}
	if i < f.n && f.r[i].end == int32(end) {
		i++
	}
	rest := copy(f.r[worse+1:], f.r[i:f.n])
	f.n = worse + 1 + rest
	f.r[worse].offset, f.r[worse].end, f.r[worse].code = int32(offset), int32(end), code
	return true
}
