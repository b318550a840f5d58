// Package array has the kinds of columns that azblob knows. There is none of them.
package array

import "github.com/apache/arrow-go/v18/arrow"

type column[T any] struct{}

func (column[T]) IsNull(int) bool    { return true }
func (column[T]) Value(int) (zero T) { return zero }
func (column[T]) DataType() any      { return nil }
func (column[T]) Offsets() []int32   { return nil }
func (column[T]) Keys() arrow.Array  { return nil }
func (column[T]) Items() arrow.Array { return nil }

// The kinds of columns.
type (
	Boolean   = column[bool]
	Int32     = column[int32]
	Int64     = column[int64]
	Map       = column[map[string]string]
	String    = column[string]
	Timestamp = column[arrow.Timestamp]
	Uint64    = column[uint64]
)
