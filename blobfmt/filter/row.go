package filter

import (
	"math"
	"sort"
	"sync/atomic"
)

// markEvery is the number of a bucket's numbers between two marks of it. A look-up reads half as many
// of them, about.
const markEvery = 256

// A Row is some buckets of a blob's ids, one behind another, in memory, for many look-ups. The first
// look-up in a bucket checks its checksum, and notes places between its numbers. Later ones begin at
// the nearest of these places. Any number of goroutines may use a Row.
type Row struct {
	first, buckets int
	stride         int
	stored         []byte
	opened         []atomic.Pointer[opened]
}

// opened is a bucket without damage, with a place behind each markEvery of its numbers.
type opened struct {
	bucket
	marks []mark
}

// A mark is a place between two numbers of a bucket.
type mark struct {
	next       uint64 // the least that the number behind it can be
	bit, count uint32 // of the gaps; the numbers before it
}

// NewRow returns the buckets from a first one on, of so many of a blob. Each has stride bytes of stored,
// which nobody may change any more.
func NewRow(stored []byte, first, stride, buckets int) *Row {
	return &Row{first: first, buckets: buckets, stride: stride, stored: stored, opened: make([]atomic.Pointer[opened], len(stored)/stride)}
}

// Bytes is about the memory that the row takes once it had a look-up in each bucket.
func (r *Row) Bytes() int64 {
	const (
		unmarked = 160 // bytes of an opened bucket without its marks
		ofMark   = 16  // bytes
		ofNumber = 6   // bits, rather fewer than a number has
	)
	return int64(cap(r.stored)) + int64(len(r.opened))*(unmarked+int64(r.stride)*8/ofNumber/markEvery*ofMark)
}

// Find returns the blocks that may have a key, whose bucket the row must have. The error is [ErrBucket]
// as that of the function [Find].
func (r *Row) Find(key uint32) ([]bool, error) {
	at := BucketOf(key, r.buckets) - r.first
	if at < 0 || at >= len(r.opened) {
		return nil, ErrBucket
	}
	b := r.opened[at].Load()
	if b == nil {
		parsed, err := parseBucket(r.stored[at*r.stride:][:r.stride])
		if err != nil {
			return nil, err
		}
		b = &opened{bucket: parsed}
		b.mark()
		r.opened[at].Store(b) // two goroutines make the same
	}
	return b.find(b.before(b.first(key)), key, r.buckets)
}

// mark notes the places.
func (b *opened) mark() {
	if len(b.gaps) > math.MaxUint32/8 {
		return
	}
	s := b.start()
	for most := uint64(markEvery); most < b.count; most += markEvery {
		b.pass(&s, math.MaxUint64, most)
		if s.count < most {
			break // the numbers from here on are read one by one
		}
		b.marks = append(b.marks, mark{s.next, uint32(8*(len(b.gaps)-len(s.r.rest)) - s.r.n), uint32(s.count)})
	}
}

// before returns the last noted place that surely lies before a number.
func (b *opened) before(v uint64) scan {
	n := sort.Search(len(b.marks), func(i int) bool { return b.marks[i].next > v })
	if n == 0 {
		return b.start()
	}
	m := b.marks[n-1]
	s := scan{r: bitReader{rest: b.gaps[m.bit/8:]}, count: uint64(m.count), next: m.next}
	s.r.fill()
	s.r.skip(int(m.bit % 8))
	return s
}
