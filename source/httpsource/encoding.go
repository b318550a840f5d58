package httpsource

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// An encoding is the one layer of compression that a body may have.
type encoding string

const (
	plain     encoding = ""
	gzipped   encoding = "gzip"
	zstandard encoding = "zstd"
	deflated  encoding = "deflate"
	snappy    encoding = "snappy"
)

func encodingOf(h http.Header) (encoding, error) {
	word := strings.ToLower(strings.TrimSpace(strings.Join(h.Values("Content-Encoding"), ",")))
	switch word {
	case "", "identity":
		return plain, nil
	case "gzip", "x-gzip":
		return gzipped, nil
	case "zstd", "deflate", "snappy":
		return encoding(word), nil
	}
	return plain, refuse(http.StatusUnsupportedMediaType,
		"Content-Encoding %s is not taken; send one of gzip, zstd, deflate, snappy, identity, and one only", short(word))
}

func (e encoding) wireLimit() int64 {
	if e == plain {
		return maxDecoded
	}
	return maxWire
}

func tooLarge(e encoding, limit int64) error {
	what := "body"
	if e != plain {
		what = string(e) + " body"
	}
	return refuse(http.StatusRequestEntityTooLarge, "the %s is over %d MiB; send it in several requests", what, limit>>20)
}

// codecs keeps decompressors for the next request: each is tens of KiB or more.
type codecs struct {
	gzip, zlib, flate, zstd, snappy sync.Pool
}

// decompress decodes wire. The buffer is the caller's, also with an error.
//
// It works on bytes that are there already, so that a window of 8 MiB is held
// only while a core works on it, not while a client takes its time; the places
// in decoding bound how many there are.
func (s *Source) decompress(ctx context.Context, enc encoding, wire []byte, h *hold) ([]byte, error) {
	select {
	case s.decoding <- struct{}{}:
		defer func() { <-s.decoding }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	out := output{from: &s.buffers, wire: len(wire), hold: h, held: h.n}
	var err error
	if enc == snappy && !bytes.HasPrefix(wire, []byte(snappyStream)) {
		err = out.snappyBlock(wire)
	} else {
		src := bytes.NewReader(wire)
		err = s.codecs.stream(enc, src, &out)
		if err == nil && src.Len() > 0 {
			err = errors.New("more bytes after the end of the compressed data")
		}
		src.Reset(nil) // a decompressor that is kept must not keep the body
	}
	var f *refusal
	switch {
	case err == nil:
		return out.buf, nil
	case errors.As(err, &f):
		return out.buf, f
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return out.buf, refuse(http.StatusRequestEntityTooLarge, "the zstd body wants a window over %d MiB; compress it with a smaller one", maxWindow>>20)
	}
	return out.buf, refuse(http.StatusBadRequest, "the body is not valid %s (%v); nothing of it was taken", enc, err)
}

const (
	maxWindow = 8 << 20
	// snappyStream begins the framed format; shippers send either, the block
	// format more often, under the same name.
	snappyStream = "\xff\x06\x00\x00sNaPpY"
)

// stream decompresses everything but snappy blocks.
func (c *codecs) stream(enc encoding, src *bytes.Reader, out *output) error {
	switch enc {
	case gzipped:
		z, ok := c.gzip.Get().(*gzip.Reader)
		if !ok {
			z = new(gzip.Reader)
		}
		defer c.gzip.Put(z)
		if err := z.Reset(src); err != nil {
			return err
		}
		return out.fill(z)
	case zstandard:
		z, ok := c.zstd.Get().(*zstd.Decoder)
		if !ok {
			var err error
			z, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(maxDecoded+spare), zstd.WithDecodeBuffersBelow(0))
			if err != nil {
				return err
			}
		}
		defer c.zstd.Put(z)
		if err := z.Reset(src); err != nil {
			return err
		}
		return out.fill(z)
	case snappy:
		z, ok := c.snappy.Get().(*s2.Reader)
		if !ok {
			z = s2.NewReader(nil, s2.ReaderAllocBlock(64<<10))
		}
		defer c.snappy.Put(z)
		z.Reset(src)
		return out.fill(z)
	default:
		return c.deflate(src, out)
	}
}

// deflate takes both things that go by that name: zlib, as the standard has it,
// and the raw data that many clients send.
func (c *codecs) deflate(src *bytes.Reader, out *output) error {
	var head [2]byte
	n, _ := src.ReadAt(head[:], 0)
	if n == 2 && head[0]&0x0f == 8 && (uint(head[0])<<8|uint(head[1]))%31 == 0 {
		z, ok := c.zlib.Get().(io.ReadCloser)
		if !ok {
			var err error
			if z, err = zlib.NewReader(src); err != nil {
				return err
			}
		} else if err := z.(zlib.Resetter).Reset(src, nil); err != nil {
			return err
		}
		defer c.zlib.Put(z)
		return out.fill(z)
	}
	z, ok := c.flate.Get().(io.ReadCloser)
	if !ok {
		z = flate.NewReader(src)
	} else if err := z.(flate.Resetter).Reset(src, nil); err != nil {
		return err
	}
	defer c.flate.Put(z)
	return out.fill(z)
}

// output is where decompressed bytes go, within the limits.
type output struct {
	buf  []byte
	from *buffers
	wire int // bytes that they come from
	hold *hold
	held int64 // bytes of hold that are the wire's
}

// allowed says how many bytes may come out.
func (o *output) allowed() int { return min(maxDecoded, 1<<20+maxRatio*o.wire) }

func (o *output) refuse() error {
	if o.allowed() == maxDecoded {
		return refuse(http.StatusRequestEntityTooLarge, "the decompressed body is over %d MiB; send it in several requests", maxDecoded>>20)
	}
	return refuse(http.StatusRequestEntityTooLarge, "the body expands to more than %d times its size; send it less compressed", maxRatio)
}

// reserve makes room for n bytes in all.
func (o *output) reserve(n int) error {
	if n <= cap(o.buf) {
		return nil
	}
	if err := o.hold.atLeast(o.held + int64(sizeFor(n))); err != nil {
		return err
	}
	o.buf = o.from.grow(o.buf, n)
	return nil
}

func (o *output) fill(z io.Reader) error {
	allowed := o.allowed()
	room := min(max(64<<10, 4*o.wire), allowed+spare)
	if err := o.reserve(room); err != nil {
		return err
	}
	for {
		if len(o.buf) == room {
			room = min(2*room, allowed+spare)
			if err := o.reserve(room); err != nil {
				return err
			}
		}
		n, err := z.Read(o.buf[len(o.buf):room])
		o.buf = o.buf[:len(o.buf)+n]
		switch {
		case len(o.buf) > allowed:
			return o.refuse()
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
		return o.refuse()
	}
	if err := o.reserve(n); err != nil {
		return err
	}
	_, err = s2.Decode(o.buf[:n], wire)
	o.buf = o.buf[:n]
	return err
}
