package body

import (
	"bufio"
	"bytes"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// NewReader decompresses a body of any length while it is read. The result must be closed. It
// may have [MaxRatio] times the bytes of r, beyond its first MiB. The error is that of r, or an
// [*Error].
func NewReader(enc Encoding, r io.Reader) (io.ReadCloser, error) {
	if enc == Plain {
		return io.NopCloser(r), nil
	}
	const begins = 8 // bytes that tell the sort of most bodies
	src := &countedReader{r: r}
	b := bufio.NewReader(src)
	peeked, _ := b.Peek(begins) // the error comes again
	head := bytes.Clone(peeked)
	z, err := enc.openStream(b)
	if err != nil {
		return nil, fail(nil, "the body is not valid %s (%v)%s", enc, err, instead(enc, head, err))
	}
	return &stream{enc: enc, src: src, z: z, head: head}, nil
}

// openStream returns a decompressor of a stream. Unlike [Encoding.open] it never needs to know
// the whole body.
func (e Encoding) openStream(src *bufio.Reader) (io.Reader, error) {
	switch e {
	case Deflate:
		if head, _ := src.Peek(2); !isZlib(bytes.NewReader(head)) {
			return flate.NewReader(src), nil
		}
		return zlib.NewReader(src)
	case Snappy:
		return s2.NewReader(src, s2.ReaderAllocBlock(64<<10)), nil
	case Gzip:
		return gzip.NewReader(src)
	}
	return zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
}

// A countedReader counts the bytes that were read.
type countedReader struct {
	r io.Reader
	n int64
}

func (c *countedReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// A stream is a decompressor within the limits.
type stream struct {
	enc Encoding
	src *countedReader
	z   io.Reader
	n   int64

	head []byte // the first bytes, still compressed
}

// Read implements [io.Reader].
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.z.Read(p)
	s.n += int64(n)
	switch {
	case s.n > 1<<20+MaxRatio*s.src.n:
		return 0, fail(ErrTooLarge, "the body expands to more than %d times its size; send it less compressed", MaxRatio)
	case err != nil && err != io.EOF:
		return n, fail(nil, "the body is not valid %s (%v)%s", s.enc, err, instead(s.enc, s.head, err))
	}
	return n, err
}

// Close releases the memory of the decompressor.
func (s *stream) Close() error {
	if z, ok := s.z.(*zstd.Decoder); ok {
		z.Close()
	}
	return nil
}
