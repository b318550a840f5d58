package blobfmt

import (
	"blobtail/record"

	"github.com/klauspost/compress/zstd"
)

// EncoderOptions tune an [Encoder]. The zero value is what ingest uses.
type EncoderOptions struct {
	Level     zstd.EncoderLevel // 0: SpeedFastest
	BlockSize int               // bytes of lines in a block, at most 4 MiB; 0: 1 MiB
}

// An Encoder makes blobs, one after another, and keeps its buffers between them.
// It is for one goroutine.
type Encoder struct{}

// NewEncoder returns an Encoder that is ready for its first blob.
func NewEncoder(o EncoderOptions) (*Encoder, error) { panic("todo") }

// Reset forgets everything added and starts a new blob. The body that Finish
// returned is overwritten.
func (e *Encoder) Reset() { panic("todo") }

// Replaces says that the blob stands for these batches (compaction).
func (e *Encoder) Replaces(ids ...BatchID) { panic("todo") }

// Add appends a canonical line with its newline. t is the line's time. Lines come
// in strictly ascending order of (t, origin, index); one that does not, or that
// is malformed, is refused and leaves the Encoder as it was.
func (e *Encoder) Add(line []byte, t int64, origin record.Origin, index uint32) error {
	panic("todo")
}

// Raw is how many bytes of lines were added since the last Reset.
func (e *Encoder) Raw() int64 { panic("todo") }

// Finish completes the blob. body is valid until Reset. A blob without lines is
// an error, and so is a second Finish.
func (e *Encoder) Finish(batch BatchID) (body []byte, m Meta, err error) { panic("todo") }
