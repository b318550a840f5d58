// Package ipc reads no Arrow.
package ipc

import (
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
)

// Reader is never made.
type Reader struct{}

// NewReader always fails.
func NewReader(io.Reader, ...struct{}) (*Reader, error) {
	return nil, errors.New("this program reads lists of blobs as XML only (storage/azure/noarrow)")
}

// WithAllocator does nothing.
func WithAllocator(int) struct{} { return struct{}{} }

// Release does nothing.
func (*Reader) Release() {}

// Schema is empty.
func (*Reader) Schema() *arrow.Schema { return &arrow.Schema{} }

// Next is false: there are no rows.
func (*Reader) Next() bool { return false }

// RecordBatch is none.
func (*Reader) RecordBatch() arrow.RecordBatch { return nil }

// Err is none.
func (*Reader) Err() error { return nil }
