package httpsource

import (
	"math/bits"
	"sync"
)

const (
	// least is the smallest buffer. A body must bring as much before it gets more
	// memory and more time.
	least = 4 << 10
	// maxKept is the largest buffer that is used again.
	maxKept = 2 << 20
	// allKept is the total size of the idle buffers that are kept.
	allKept = 32 << 20
)

// buffers keeps memory for later bodies: powers of two from least to maxKept. It is
// no sync.Pool, which would keep all the memory of a burst.
type buffers struct {
	mu   sync.Mutex
	free [10][][]byte // by class
	kept int          // bytes in free
}

// class returns the smallest class of buffers for n bytes, n <= maxKept.
func class(n int) int { return bits.Len(uint(max(n, least)-1)) - bits.Len(least-1) }

// sizeFor returns the capacity of a buffer for n bytes: that is counted.
func sizeFor(n int) int {
	if n > maxKept {
		return n
	}
	return least << class(n)
}

// get returns an empty buffer with the capacity sizeFor(n).
func (b *buffers) get(n int) []byte {
	if n <= maxKept {
		b.mu.Lock()
		defer b.mu.Unlock()
		if free := &b.free[class(n)]; len(*free) > 0 {
			last := len(*free) - 1
			buf := (*free)[last]
			(*free)[last] = nil
			*free = (*free)[:last]
			b.kept -= cap(buf)
			return buf
		}
	}
	return make([]byte, 0, sizeFor(n))
}

// put takes a buffer back. It may be nil.
func (b *buffers) put(buf []byte) {
	size := cap(buf)
	if size < least || size > maxKept || size != sizeFor(size) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kept+size <= allKept {
		b.kept += size
		b.free[class(size)] = append(b.free[class(size)], buf[:0])
	}
}

// grow returns a buffer for n bytes that begins with those of buf, and takes buf
// back.
func (b *buffers) grow(buf []byte, n int) []byte {
	more := append(b.get(n), buf...)
	b.put(buf)
	return more
}
