package filter

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
)

const (
	// spread is the number of places for each pair of a key and a block. So a look-up of an
	// absent key names a block of each 32nd blob, which costs a search a request, and the decoding
	// of the block. A bit more for each pair halves that.
	spread = 32
	// fewBlocks is a number of blocks below which a blob has more places, in proportion. A
	// block that is named in vain costs a search one more request, however small the blob is:
	// so it is named in vain as rarely as among the blocks of a larger blob.
	fewBlocks = 2
	// leastSpread is the spread of a blob whose ids take too many bytes otherwise.
	leastSpread = 8
	// bucketLen is about the length of a bucket.
	bucketLen = 3900
	// MaxBucket is the greatest length of a bucket. Ids that are chosen so that they come in
	// one bucket make it large.
	MaxBucket = 1 << 20
	// maxBlocks of a blob with ids.
	maxBlocks = 1 << 16
)

// AppendIDs appends the keys of all blocks: buckets of the same length, and one if there are
// no keys. Their number is 0 if there are too many keys, or if they would take more than most
// bytes.
func (b *Builder) AppendIDs(dst []byte, most int) (_ []byte, buckets int) {
	if b.noIDs || b.block == 0 || b.block > maxBlocks {
		return dst, 0
	}
	b.sortKeys()
	for places := spread * max(1, fewBlocks/b.block); places >= leastSpread; places /= 2 {
		if out, buckets := b.appendIDs(dst, most, places); buckets > 0 {
			return out, buckets
		}
	}
	return dst, 0
}

// appendIDs is AppendIDs of sorted keys, with so many places for each pair.
func (b *Builder) appendIDs(dst []byte, most, places int) (_ []byte, buckets int) {
	codes := b.codes()
	l, size := newLayout(b.block, places, len(codes))
	if size > most {
		return dst, 0
	}
	buckets = 1 + size/bucketLen
	l.places = uint64(1 + places*len(codes)/buckets)
	stride := 0
	encoded, ends := b.coded[:0], make([]int, 0, buckets)
	for i := range buckets {
		n := 0
		for n < len(codes) && BucketOf(uint32(codes[n]>>32), buckets) == i {
			n++
		}
		start := len(encoded)
		encoded = l.appendBucket(encoded, l.values(codes[:n], buckets), i, buckets)
		codes = codes[n:]
		stride = max(stride, len(encoded)-start+bucketSum)
		ends = append(ends, len(encoded))
	}
	b.coded = encoded
	if stride*buckets > most || stride > MaxBucket {
		return dst, 0
	}
	from := 0
	for _, end := range ends {
		start := len(dst)
		dst = append(dst, encoded[from:end]...)
		dst = append(dst, make([]byte, stride-bucketSum-(end-from))...)
		dst = binary.LittleEndian.AppendUint32(dst, checksum(dst[start:]))
		from = end
	}
	return dst, buckets
}

// bucketSum is the length of a bucket's checksum, at its end.
const bucketSum = 4

// codes returns the sorted pairs of a key and a block. A key that is in more than a quarter
// of the blocks, and in more than one if there are more, has one pair, with the number of
// blocks as its block.
func (b *Builder) codes() []uint64 {
	out := b.spare[:0]
	for keys := b.keys; len(keys) > 0; {
		n := 1
		for n < len(keys) && keys[n]>>32 == keys[0]>>32 {
			n++
		}
		if n > max(1, b.block/4) || b.block == 1 {
			out = append(out, keys[0]&^math.MaxUint32|uint64(b.block))
		} else {
			out = append(out, keys[:n]...)
		}
		keys = keys[n:]
	}
	return out
}

// BucketOf returns the number of the bucket that has a key.
func BucketOf(key uint32, buckets int) int { return int(uint64(key) * uint64(buckets) >> 32) }

// A layout maps the pairs of a bucket to numbers: place x (blocks + 1) + block. The place of
// a key in its bucket is in the order of keys.
type layout struct {
	places uint64
	blocks int
	low    int // bits of a gap that are stored as they are
}

// newLayout returns the layout for so many pairs with so many places each, without its places.
// size is about the length of all buckets.
func newLayout(blocks, places, pairs int) (l layout, size int) {
	gap := float64(places * (blocks + 1))
	l = layout{blocks: blocks, low: int(math.Log2(gap * math.Ln2))}
	return l, int(float64(pairs) * (float64(l.low) + 1 + 1/math.Expm1(float64(uint64(1)<<l.low)/gap)) / 8)
}

func (l *layout) place(key uint32, buckets int) uint64 {
	return uint64(uint32(uint64(key)*uint64(buckets))) * l.places >> 32
}

// values turns the pairs of a bucket into numbers, in place, ascending, each once.
func (l *layout) values(codes []uint64, buckets int) []uint64 {
	out := codes[:0]
	for _, c := range codes {
		v := l.place(uint32(c>>32), buckets)*uint64(l.blocks+1) + c&math.MaxUint32
		// Keys of one place lie next to each other, but not their blocks in order.
		i := len(out)
		for i > 0 && out[i-1] > v {
			i--
		}
		if i > 0 && out[i-1] == v {
			continue
		}
		out = append(out, 0)
		copy(out[i+1:], out[i:])
		out[i] = v
	}
	return out
}

// appendBucket appends the gaps between numbers in Rice's code: a gap without its low bits
// in ones with a zero behind them, then the low bits.
func (l *layout) appendBucket(dst []byte, values []uint64, number, buckets int) []byte {
	dst = binary.AppendUvarint(dst, uint64(number))
	dst = binary.AppendUvarint(dst, uint64(buckets))
	dst = binary.AppendUvarint(dst, l.places)
	dst = binary.AppendUvarint(dst, uint64(l.blocks))
	dst = binary.AppendUvarint(dst, uint64(len(values)))
	dst = append(dst, byte(l.low))
	w := bitWriter{dst: dst}
	next := uint64(0)
	for _, v := range values {
		gap := v - next
		next = v + 1
		q := gap >> l.low
		for ; q >= 32; q -= 32 {
			w.put(1<<32-1, 32)
		}
		w.put(1<<q-1, int(q)+1)
		w.put(gap, l.low)
	}
	return w.end()
}

// A bitWriter writes from the lowest bit of a byte on.
type bitWriter struct {
	dst  []byte
	bits uint64
	n    int
}

// put writes the lowest n bits, at most 33.
func (w *bitWriter) put(v uint64, n int) {
	w.bits |= (v & (1<<n - 1)) << w.n
	w.n += n
	if w.n >= 32 {
		// The rest of a number of up to 33 bits fits behind 31.
		w.dst = binary.LittleEndian.AppendUint32(w.dst, uint32(w.bits))
		w.bits >>= 32
		w.n -= 32
	}
}

func (w *bitWriter) end() []byte {
	for ; w.n > 0; w.n -= 8 {
		w.dst = append(w.dst, byte(w.bits))
		w.bits >>= 8
	}
	return w.dst
}

// ErrBucket means that a bucket of ids is damaged.
var ErrBucket = errors.New("ids: a bucket is damaged")

// A bucket is one of ids, parsed.
type bucket struct {
	layout
	number, buckets uint64
	count           uint64
	gaps            []byte
}

// parseBucket checks a bucket.
func parseBucket(b []byte) (out bucket, err error) {
	if len(b) < bucketSum || checksum(b[:len(b)-bucketSum]) != binary.LittleEndian.Uint32(b[len(b)-bucketSum:]) {
		return out, ErrBucket
	}
	b = b[:len(b)-bucketSum]
	var numbers [5]uint64
	for i := range numbers {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return out, ErrBucket
		}
		numbers[i], b = v, b[n:]
	}
	out.number, out.buckets, out.places, out.blocks, out.count = numbers[0], numbers[1], numbers[2], int(numbers[3]), numbers[4]
	if len(b) < 1 || b[0] > 32 || out.places > 1<<32 || numbers[3] < 1 || numbers[3] > maxBlocks || out.count > 8*uint64(len(b)) {
		return out, ErrBucket
	}
	out.low, out.gaps = int(b[0]), b[1:]
	return out, nil
}

// Find returns the blocks that may have a key, from the key's bucket of so many. The error is
// [ErrBucket] if it is another bucket, or a damaged one.
func Find(b []byte, key uint32, buckets int) ([]bool, error) {
	parsed, err := parseBucket(b)
	if err != nil {
		return nil, err
	}
	return parsed.find(parsed.start(), key, buckets)
}

// find returns the blocks that may have a key. It begins at a place before the numbers of the key.
func (b *bucket) find(from scan, key uint32, buckets int) ([]bool, error) {
	if !b.has(key, buckets) {
		return nil, ErrBucket
	}
	have := make([]bool, b.blocks)
	width := uint64(b.blocks + 1)
	first := b.first(key)
	return have, b.each(from, first, func(v uint64) bool {
		switch {
		case v >= first+width:
			return false
		case v == first+width-1:
			for i := range have {
				have[i] = true
			}
		default:
			have[v-first] = true
		}
		return true
	})
}

// has reports whether the bucket is that of a key among so many.
func (b *bucket) has(key uint32, buckets int) bool {
	return b.buckets == uint64(buckets) && b.number == uint64(BucketOf(key, buckets))
}

// first is the least number that a pair of a key can have.
func (b *bucket) first(key uint32) uint64 { return b.place(key, int(b.buckets)) * uint64(b.blocks+1) }

// A scan is a place between the numbers of a bucket: so many lie before it, and the one behind it is
// next or more.
type scan struct {
	r           bitReader
	count, next uint64
}

// start is the place before all numbers.
func (b *bucket) start() scan { return scan{r: bitReader{rest: b.gaps}} }

// each calls f for the numbers from a first one on, in ascending order, until it returns false. It
// begins at a place before that number.
func (b *bucket) each(s scan, from uint64, f func(v uint64) bool) error {
	b.pass(&s, from, b.count)
	r, next := s.r, s.next
	for range b.count - s.count {
		q := uint64(0)
		for {
			r.fill()
			ones := bits.TrailingZeros64(^r.bits)
			if ones < r.n {
				q += uint64(ones)
				r.skip(ones + 1)
				break
			}
			if r.n == 0 {
				return ErrBucket
			}
			q += uint64(r.n)
			r.skip(r.n)
		}
		r.fill()
		if r.n < b.low {
			return ErrBucket
		}
		next += q<<b.low | r.bits&(1<<b.low-1)
		r.skip(b.low)
		if next >= from && !f(next) {
			return nil
		}
		next++
	}
	return nil
}

// pass moves a place behind numbers below one, up to so many in all, as long as a gap has few bits and
// eight bytes follow.
func (b *bucket) pass(s *scan, below, most uint64) {
	low := b.low & 63
	r, count, next := s.r, s.count, s.next
	for count < most && len(r.rest) >= 8 {
		r.fill()
		ones := bits.TrailingZeros64(^r.bits)
		n := ones + 1 + low
		if n > r.n {
			break
		}
		v := next + uint64(ones)<<low + r.bits>>(ones+1)&(1<<low-1)
		if v >= below {
			break
		}
		r.skip(n)
		count, next = count+1, v+1
	}
	*s = scan{r, count, next}
}

// A bitReader reads the bits of a bitWriter. Bits from n on are zero.
type bitReader struct {
	rest []byte
	bits uint64
	n    int
}

// fill makes at least 32 bits ready, if there are as many.
func (r *bitReader) fill() {
	if r.n >= 32 {
		return
	}
	if len(r.rest) >= 4 {
		r.bits |= uint64(binary.LittleEndian.Uint32(r.rest)) << r.n
		r.rest = r.rest[4:]
		r.n += 32
		return
	}
	for ; len(r.rest) > 0; r.rest = r.rest[1:] {
		r.bits |= uint64(r.rest[0]) << r.n
		r.n += 8
	}
}

func (r *bitReader) skip(n int) {
	r.bits >>= n
	r.n -= n
}
