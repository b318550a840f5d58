package blobfmt

import (
	"errors"
	"fmt"
)

var (
	// ErrForeign is the error of [ParseMeta] for an object that this package did
	// not write.
	ErrForeign = errors.New("not a blob of blobtail")
	// ErrNewer is the error for a blob in a format newer than this program knows.
	// The blob is not damaged; a newer program reads it.
	ErrNewer = errors.New("written in a newer format")
)

// A CorruptError reports that a span of a blob is damaged.
type CorruptError struct {
	Blob   string // its key, as given by the caller
	Offset int64
	Length int64 // as far as known; 0: unknown
	Reason string
}

// Error names the blob and the span.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("blob %s: damaged at offset %d, length %d: %s", e.Blob, e.Offset, e.Length, e.Reason)
}
