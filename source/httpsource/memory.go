package httpsource

import "math/bits"

const (
	// least is the smallest buffer. A body must bring half of it, which net/http has read
	// with the head, before it gets more memory, and all of it before it gets more time.
	least = 4 << 10
	// maxKept is the largest buffer that is used again.
	maxKept = 2 << 20
	// idle is how many idle buffers of each size are kept, 32 MiB in all.
	idle = 8
)

// buffers keeps memory for later bodies, by class: powers of two from least to maxKept.
// It is no sync.Pool, which would keep all the memory of a burst.
type buffers [10]chan []byte

func newBuffers() (b buffers) {
	for class := range b {
		b[class] = make(chan []byte, idle)
	}
	return b
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
		select {
		case buf := <-b[class(n)]:
			return buf
		default:
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
	select {
	case b[class(size)] <- buf[:0]:
	default:
	}
}

// grow returns a buffer for n bytes that begins with those of buf, and takes buf
// back.
func (b *buffers) grow(buf []byte, n int) []byte {
	more := append(b.get(n), buf...)
	b.put(buf)
	return more
}
