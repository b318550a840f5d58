package blobfmt

import "blobtail/record"

const (
	// ContentType is what a blob holds when it is decompressed.
	ContentType = "application/x-ndjson"
	// ContentEncoding is how it is compressed.
	ContentEncoding = "zstd"
)

// A BatchID is the random identity of a batch, and of the blob made from it.
type BatchID [16]byte

// String is the id as 32 hexadecimal digits, lower case.
func (b BatchID) String() string { panic("todo") }

// ParseBatchID is the strict inverse of [BatchID.String].
func ParseBatchID(s string) (BatchID, error) { panic("todo") }

// Meta is what a blob's metadata say about it, enough to plan a read.
type Meta struct {
	Batch       BatchID
	First, Last int64 // times of the first and the last record, unix ns
	Records     int64
	RawBytes    int64  // length of the uncompressed lines
	CRC         uint32 // CRC-32C of the uncompressed lines, the same at every compression level
	Levels      [record.NumLevels]int64
	Compacted   int // how many batches this blob replaces
}

// Map gives the metadata in the form in which they are stored.
func (m Meta) Map() map[string]string { panic("todo") }

// ParseMeta is the strict inverse of [Meta.Map]. Keys are compared without case,
// since services re-case them, and keys it does not know are left alone. The
// error is [ErrForeign] for an object that is not ours, and [ErrNewer] for a
// later format.
func ParseMeta(stored map[string]string) (Meta, error) { panic("todo") }
