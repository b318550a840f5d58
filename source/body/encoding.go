package body

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// An Encoding is the one layer of compression that a body may have.
type Encoding string

// The supported encodings.
const (
	Plain   Encoding = ""
	Gzip    Encoding = "gzip"
	Zstd    Encoding = "zstd"
	Deflate Encoding = "deflate"
	Snappy  Encoding = "snappy"
)

// parseEncoding parses the values of a Content-Encoding header.
func parseEncoding(values []string) (Encoding, error) {
	word := strings.ToLower(strings.TrimSpace(strings.Join(values, ",")))
	switch word {
	case "", "identity":
		return Plain, nil
	case "gzip", "x-gzip":
		return Gzip, nil
	case "zstd", "deflate", "snappy":
		return Encoding(word), nil
	}
	return Plain, fail(ErrUnsupported,
		"Content-Encoding %s is not taken; send one of gzip, zstd, deflate, snappy, identity, and one only", Short(word))
}

// sensed begins an encoding for bodies that tell their compression by the first bytes. The
// encoding of the header is behind it: it counts if they tell nothing.
const sensed = "sensed "

// sense returns the encoding for a form that decides by the first bytes, with the given
// Content-Encoding values behind it. ok is false for Snappy, since the first bytes do not tell it,
// and for unknown values.
func sense(values []string) (e Encoding, ok bool) {
	for word := range strings.SplitSeq(strings.Join(values, ","), ",") {
		one, err := parseEncoding([]string{word})
		if err != nil || one == Snappy {
			return Plain, false
		}
		if e == Plain {
			e = one
		}
	}
	return sensed + e, true
}

// Of returns the encoding of a body on the wire. It is that of the first bytes if the form is one
// of [NewSensedForm].
func (e Encoding) Of(wire []byte) Encoding {
	said, ok := strings.CutPrefix(string(e), sensed)
	if !ok {
		return e
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(wire, []byte("\xef\xbb\xbf")), " \t\r\n")
	switch {
	case bytes.HasPrefix(wire, []byte(gzipMagic)):
		return Gzip
	case bytes.HasPrefix(wire, []byte(zstdMagic)):
		return Zstd
	case isZlib(bytes.NewReader(wire)):
		return Deflate
	case len(text) == 0 || text[0] == '{' || text[0] == '[':
		return Plain
	}
	return Encoding(said)
}

// The first bytes of compressed data.
const (
	gzipMagic = "\x1f\x8b"
	zstdMagic = "\x28\xb5\x2f\xfd"
)

// WireLimit is the length of the longest body of this encoding, still compressed.
func (e Encoding) WireLimit() int64 {
	if e == Plain || strings.HasPrefix(string(e), sensed) {
		return MaxDecoded
	}
	return MaxWire
}

// TooLarge is the error for a body over the wire limit.
func (e Encoding) TooLarge() error {
	what := strings.TrimSpace(strings.TrimPrefix(string(e), sensed) + " body")
	return fail(ErrTooLarge, "the %s is over %d MiB; send it in several", what, e.WireLimit()>>20)
}

// Grow returns a buffer with room for n bytes in total that begins with those of buf.
// It takes ownership of buf. Its error ends the decompression.
type Grow func(buf []byte, n int) ([]byte, error)

// A Decompressor removes encodings. It works on bytes that have arrived, so that a
// window of 8 MiB is held only while a core works on it, not while a client sends
// slowly. Its places limit the number of windows. Any number of goroutines may use
// it.
type Decompressor struct {
	places chan struct{} // one for each body being decompressed

	// Decompressors for the next body: each is tens of KiB or more.
	idle map[Encoding]*sync.Pool
}

// NewDecompressor makes a Decompressor that handles up to places bodies at once.
func NewDecompressor(places int) *Decompressor {
	d := &Decompressor{places: make(chan struct{}, places), idle: map[Encoding]*sync.Pool{}}
	for _, enc := range []Encoding{Gzip, Zstd, Deflate, rawDeflate, Snappy} {
		d.idle[enc] = new(sync.Pool)
	}
	return d
}

// Decompress decodes wire into buffers from grow; the first call of grow has a nil
// buffer. The result is the caller's, also with an error. The error is an [*Error],
// that of grow or that of ctx.
func (d *Decompressor) Decompress(ctx context.Context, enc Encoding, wire []byte, grow Grow) ([]byte, error) {
	select {
	case d.places <- struct{}{}:
		defer func() { <-d.places }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	out := output{grow: grow, wire: len(wire)}
	var err error
	if enc == Snappy && !bytes.HasPrefix(wire, []byte(snappyStream)) {
		err = out.snappyBlock(wire)
	} else {
		src := bytes.NewReader(wire)
		err = d.stream(enc, src, &out)
		if err == nil && src.Len() > 0 {
			err = errors.New("more bytes after the end of the compressed data")
		}
		src.Reset(nil) // a decompressor in the pool must not keep the body
	}
	switch {
	case err == nil:
		return out.buf, nil
	case out.err != nil:
		return out.buf, out.err
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return out.buf, fail(ErrTooLarge, "the zstd body wants a window over %d MiB; compress it with a smaller one", maxWindow>>20)
	}
	return out.buf, fail(nil, "the body is not valid %s (%v)%s; nothing of it was taken", enc, err, instead(enc, wire, err))
}

const (
	maxWindow = 8 << 20
	// snappyStream begins the framed format. Shippers send both formats under the same
	// name, the block format more often.
	snappyStream = "\xff\x06\x00\x00sNaPpY"
)

// stream decompresses all encodings but snappy blocks.
func (d *Decompressor) stream(enc Encoding, src *bytes.Reader, out *output) error {
	if enc == Deflate && !isZlib(src) {
		enc = rawDeflate
	}
	z, err := enc.open(d.idle[enc].Get(), src)
	if err != nil {
		return err
	}
	defer d.idle[enc].Put(z)
	return out.fill(z)
}

// rawDeflate is the data that many clients send as deflate, without the zlib format
// that is the standard.
const rawDeflate Encoding = "raw deflate"

// isZlib reports whether src begins with a header of zlib.
func isZlib(src *bytes.Reader) bool {
	var head [2]byte
	n, _ := src.ReadAt(head[:], 0)
	return n == 2 && head[0]&0x0f == 8 && (uint(head[0])<<8|uint(head[1]))%31 == 0
}

// open returns a decompressor of src: old, unless that is nil.
func (e Encoding) open(old any, src *bytes.Reader) (z io.Reader, err error) {
	switch z := old.(type) {
	case *gzip.Reader:
		return z, z.Reset(src)
	case zlib.Resetter: // of flate too
		return old.(io.Reader), z.Reset(src, nil)
	case *s2.Reader:
		z.Reset(src)
		return z, nil
	case *zstd.Decoder:
		return z, z.Reset(src)
	}
	switch e {
	case Gzip:
		return gzip.NewReader(src)
	case Deflate:
		return zlib.NewReader(src)
	case rawDeflate:
		return flate.NewReader(src), nil
	case Snappy:
		return s2.NewReader(src, s2.ReaderAllocBlock(64<<10)), nil
	}
	return zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(MaxDecoded+Spare), zstd.WithDecodeBuffersBelow(0))
}

// output collects decompressed bytes, within the limits.
type output struct {
	buf  []byte
	grow Grow
	wire int   // bytes of compressed input
	err  error // the reason it ended, unless the bytes are invalid
}

// allowed is the most bytes of output.
func (o *output) allowed() int { return min(MaxDecoded, 1<<20+MaxRatio*o.wire) }

func (o *output) tooLarge() error {
	if o.allowed() == MaxDecoded {
		o.err = fail(ErrTooLarge, "the decompressed body is over %d MiB; send it in several", MaxDecoded>>20)
	} else {
		o.err = fail(ErrTooLarge, "the body expands to more than %d times its size; send it less compressed", MaxRatio)
	}
	return o.err
}

// reserve makes room for n bytes in total.
func (o *output) reserve(n int) error {
	if n <= cap(o.buf) {
		return nil
	}
	var more []byte
	if more, o.err = o.grow(o.buf, n); o.err == nil {
		o.buf = more
	}
	return o.err
}

func (o *output) fill(z io.Reader) error {
	allowed := o.allowed()
	room := min(max(64<<10, 4*o.wire), allowed+Spare)
	if err := o.reserve(room); err != nil {
		return err
	}
	for {
		if len(o.buf) == room {
			room = min(2*room, allowed+Spare)
			if err := o.reserve(room); err != nil {
				return err
			}
		}
		n, err := z.Read(o.buf[len(o.buf):room])
		o.buf = o.buf[:len(o.buf)+n]
		switch {
		case len(o.buf) > allowed:
			return o.tooLarge()
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

func (o *output) snappyBlock(wire []byte) error {
	n, err := s2.DecodedLen(wire)
	if err != nil {
		return err
	}
	if n > o.allowed() {
		return o.tooLarge()
	}
	if err := o.reserve(n); err != nil {
		return err
	}
	_, err = s2.Decode(o.buf[:n], wire)
	o.buf = o.buf[:n]
	return err
}
