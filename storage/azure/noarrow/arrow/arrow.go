// Package arrow has the names of Apache Arrow that azblob needs to compile.
package arrow

import "time"

type (
	// Array is a column.
	Array any
	// RecordBatch has rows. There is none.
	RecordBatch interface {
		NumRows() int64
		Column(int) Array
	}
	// Schema has no column.
	Schema struct{}
	// Field is a column's name.
	Field struct{ Name string }
	// Metadata is empty.
	Metadata struct{}
	// TimeUnit is of a TimestampType.
	TimeUnit int
	// TimestampType is the kind of a column of times.
	TimestampType struct{ Unit TimeUnit }
	// Timestamp is a time.
	Timestamp int64
)

// Metadata is empty.
func (*Schema) Metadata() Metadata { return Metadata{} }

// Fields are none.
func (*Schema) Fields() []Field { return nil }

// Len is 0.
func (Metadata) Len() int { return 0 }

// FindKey finds none.
func (Metadata) FindKey(string) int { return -1 }

// Values are none.
func (Metadata) Values() []string { return nil }

// ToTime is zero.
func (Timestamp) ToTime(TimeUnit) time.Time { return time.Time{} }
