package blobfmt

import "blobtail/record"

// A ReadFunc reads n bytes of a blob from offset off. It returns fewer only with
// an error.
type ReadFunc func(off, n int64) ([]byte, error)

// A Block is what the index says about one block.
type Block struct {
	Offset, Stored int64 // of its zstd frame in the blob
	Raw            int64 // length of its lines
	First, Last    int64 // times of its first and last record
	Records        int
	Levels         [record.NumLevels]int
	Minutes        []MinuteCount // ascending; only minutes with records

	blob string // the blob's key, for errors
}

// A MinuteCount counts the records of one minute by level.
type MinuteCount struct {
	Minute int64 // unix time / 60 s, rounded down
	Levels [record.NumLevels]int
}

// An Index says what the blocks of a blob hold. It may be used by many
// goroutines at once.
type Index struct {
	Blocks   []Block
	Replaces []BatchID // batches that this blob stands for, ascending
	CRC      uint32    // CRC-32C of all lines
	Offset   int64     // where the index begins, which is where the blocks end
}

// ReadIndex reads the index of a blob of the given size. It asks for the last
// 64 KiB in one read, then only for what is missing. The error is a
// [*CorruptError] when the index is damaged, [ErrNewer] when its format is newer,
// else what read returned.
func ReadIndex(key string, size int64, read ReadFunc) (*Index, error) { panic("todo") }

// Origins reads where the records came from. Each call parses anew, and reads
// when that part of the index is not in the blob's last 64 KiB.
func (x *Index) Origins() (*Origins, error) { panic("todo") }

// Origins says for every record which origin it has, and its index there.
type Origins struct {
	Dict   []record.Origin // ascending
	Blocks [][]Span        // for each block, in the order of its records
}

// A Span is a row of records with one origin and consecutive indexes.
type Span struct {
	Origin       int // in Origins.Dict
	First, Count uint32
}
