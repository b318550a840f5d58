package blobfmt

import (
	"encoding/binary"
	"errors"
	"math"
)

// A sectionReader reads the numbers of a section. After its first error it returns zeros,
// so callers check once at the end. Its counts are safe sizes for an allocation.
//
// It counts the bytes it has read, and does not cut them off: a change of a slice costs more while
// memory is being collected.
type sectionReader struct {
	all []byte
	at  int
	err error
}

func (r *sectionReader) rest() []byte { return r.all[r.at:] }

// drop skips all the rest.
func (r *sectionReader) drop() { r.at = len(r.all) }

func (r *sectionReader) fail(reason string) {
	if r.err == nil {
		r.err = errors.New(reason)
	}
	r.drop()
}

// skip skips a number of n bytes, as package binary counts them.
func (r *sectionReader) skip(n int) {
	if n <= 0 {
		r.fail("a number is cut short or too large")
		return
	}
	r.at += n
}

// time reads a zigzag difference of two times; sums of it may wrap around.
func (r *sectionReader) time() int64 {
	v, n := binary.Varint(r.rest())
	r.skip(n)
	return v
}

// varint reads a zigzag number. Every such number is a difference of smaller ones, so the
// bounds keep a sum of two of them from overflowing.
func (r *sectionReader) varint() int64 {
	if r.at < len(r.all) && r.all[r.at] < 0x80 { // most numbers are small
		v := r.all[r.at]
		r.at++
		return int64(v>>1) ^ -int64(v&1)
	}
	v, n := binary.Varint(r.rest())
	r.skip(n)
	if v > math.MaxInt64/4 || v < math.MinInt64/4 {
		r.fail("a number is out of range")
		return 0
	}
	return v
}

// upTo reads a number that is at most limit.
func (r *sectionReader) upTo(limit uint64) uint64 {
	if r.at < len(r.all) && r.all[r.at] < 0x80 && uint64(r.all[r.at]) <= limit {
		r.at++
		return uint64(r.all[r.at-1])
	}
	v, n := binary.Uvarint(r.rest())
	r.skip(n)
	if v > limit {
		r.fail("a number is out of range")
		return 0
	}
	return v
}

// count reads the number of the following items, each of at least size bytes.
func (r *sectionReader) count(size int) int {
	return int(r.upTo(uint64(len(r.rest()) / size)))
}

func (r *sectionReader) bytes(n int) []byte {
	if len(r.rest()) < n {
		r.fail("cut short")
		return make([]byte, n)
	}
	b := r.rest()[:n]
	r.at += n
	return b
}

// end returns the first error; left-over bytes are an error too.
func (r *sectionReader) end() error {
	if len(r.rest()) > 0 {
		r.fail("bytes are left over")
	}
	return r.err
}
