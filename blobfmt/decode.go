package blobfmt

import "iter"

// A Decoder decompresses blocks. It keeps its buffers and is for one goroutine.
type Decoder struct{}

// NewDecoder returns a Decoder. It needs no closing.
func NewDecoder() (*Decoder, error) { panic("todo") }

// Block appends the lines of block b to dst. stored is what stands in the blob at
// b.Offset, b.Stored bytes long. A block that is not what the index says is a
// [*CorruptError].
func (d *Decoder) Block(dst, stored []byte, b Block) ([]byte, error) { panic("todo") }

// A Frame is a block found by [Decoder.Walk].
type Frame struct {
	Offset, Stored int64
	Lines          []byte // valid until the next step
}

// Walk goes through a whole blob without its index and yields every block that
// decodes. A damaged span is yielded as a [*CorruptError] with a zero Frame, and
// the walk goes on behind it.
func (d *Decoder) Walk(key string, body []byte) iter.Seq2[Frame, error] { panic("todo") }
