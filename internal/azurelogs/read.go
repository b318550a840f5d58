package azurelogs

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"math"
	"path"
	"strconv"
	"strings"

	"blobtail/internal/azurelogs/formats"
	"blobtail/record"
)

// A chunk ends with its 4096th entry, or with the one that fills 4 MiB of the blob. Both are
// part of the identity of records: imports of all versions must cut alike.
const (
	chunkEntries = 4096
	chunkBytes   = 4 << 20
)

// A Chunk is the records of consecutive entries of a blob.
type Chunk struct {
	// Request has the canonical lines in the order of the blob. Their indexes are the places
	// of their entries in the chunk.
	record.Request
	// Malformed are the entries without a line.
	Malformed []*LineError
	// Copies counts the entries that were left out, because they repeat others.
	Copies int
	// Unfinished is the line of a classic log at which an entry begins that was left out,
	// because the blob ends within it; 0: there is none. Only the last chunk of a blob, which
	// may have no records then, tells it. Resource logs end so while they grow, and do not.
	Unfinished int
}

// Line returns the canonical line of a number.
func (c *Chunk) Line(i int) []byte {
	l := &c.Lines[i]
	return c.Data[l.Off : l.Off+l.Len]
}

// LineError is a line of a blob that is no log record.
type LineError struct {
	Blob string // container and key
	Line int    // from 1
	// Element is the number in an array of records, which may be a single line; from 1, or 0
	// outside of one.
	Element int
	Err     error // a [*formats.MalformedError]
}

func (e *LineError) Error() string { return e.Blob + ": " + e.InBlob() }

// InBlob is the error without the name of the blob.
func (e *LineError) InBlob() string {
	if e.Element > 0 {
		return fmt.Sprintf("line %d: record %d: %v", e.Line, e.Element, e.Err)
	}
	return fmt.Sprintf("line %d: %v", e.Line, e.Err)
}

func (e *LineError) Unwrap() error { return e.Err }

// Seen are the events of the blobs of one hour with their places, by which copies are left
// out. Make one with make, and give it to the reads of all blobs of a classic service and hour,
// one after another: an event stays at the place where it was read first, also if that is read
// again. Resource logs repeat records within a blob only.
type Seen map[formats.ID]place

// place is 24 bits of the hash of a key and 24 bits of the number of an entry.
type place [6]byte

// Read reads a blob up to its listed size. A chunk is valid until the next one. seen may be
// nil for a blob whose copies do not matter. The sequence ends at its first error, which
// names the blob, after the records before it.
func Read(ctx context.Context, b *Blob, seen Seen) iter.Seq2[*Chunk, error] {
	return func(yield func(*Chunk, error) bool) {
		body, err := b.from.Get(ctx, b.Key, 0, b.Size)
		if err != nil {
			yield(nil, fmt.Errorf("read %s: %w", b.Path(), err))
			return
		}
		defer body.Close()
		c := chunker{
			blob: b, seen: seen, splitter: formats.NewSplitter(b.Kind), translator: formats.NewTranslator(b.Kind, b.Service),
		}
		c.chunk.Services = []string{b.Service}
		left := &io.LimitedReader{R: body, N: b.Size}
		scanner := bufio.NewScanner(left)
		scanner.Buffer(make([]byte, 64<<10), formats.MaxBuffer)
		scanner.Split(c.splitter.Split)
		for scanner.Scan() {
			c.add(scanner.Bytes())
			if c.full() && !c.flush(yield) {
				return
			}
		}
		err = scanner.Err()
		if err == nil && left.N > 0 {
			err = fmt.Errorf("it has become shorter by %d bytes since it was listed", left.N)
		}
		if err != nil {
			err = fmt.Errorf("read %s: %w", b.Path(), err)
		}
		if b.Kind == formats.Classic {
			c.chunk.Unfinished = c.splitter.Unfinished
		}
		if c.flush(yield) && err != nil {
			yield(nil, err)
		}
	}
}

// A chunker gathers the entries of a blob in chunks.
type chunker struct {
	blob       *Blob
	seen       Seen
	splitter   *formats.Splitter
	translator *formats.Translator
	chunk      Chunk
	origin     record.Origin // of the blob
	number     int           // of the chunk
	entries    int           // of the chunk so far
	passed     int           // entries of the chunks before
	bytes      int
}

func (c *chunker) full() bool { return c.entries >= chunkEntries || c.bytes >= chunkBytes }

// add adds an entry.
func (c *chunker) add(entry []byte) {
	if c.number == 0 && c.entries == 0 {
		c.origin = c.blob.origin(entry)
	}
	index, from := c.entries, len(c.chunk.Data)
	c.entries++
	c.bytes += len(entry)
	data, stamp, err := c.translator.Append(c.chunk.Data, entry)
	if err != nil {
		c.chunk.Malformed = append(c.chunk.Malformed, &LineError{Blob: c.blob.Path(), Line: c.splitter.Line, Element: c.splitter.Element, Err: err})
		return
	}
	if id, ok := c.translator.ID(); ok && c.seen != nil {
		number := c.passed + index
		here := place{c.origin[8], c.origin[9], c.origin[10], byte(number >> 16), byte(number >> 8), byte(number)}
		if first, known := c.seen[id]; known && first != here {
			c.chunk.Copies++
			return
		}
		c.seen[id] = here
	}
	c.chunk.Data = data
	c.chunk.Lines = append(c.chunk.Lines, record.Line{
		Time: stamp.Time, Off: uint32(from), Len: uint32(len(data) - from), Shift: int32(index - len(c.chunk.Lines)),
	})
}

// flush yields the chunk, unless it has nothing to tell, and begins the next.
func (c *chunker) flush(yield func(*Chunk, error) bool) bool {
	if c.entries == 0 && c.chunk.Unfinished == 0 {
		return true
	}
	r := &c.chunk.Request
	r.Origin = c.origin
	r.Origin[13], r.Origin[14], r.Origin[15] = byte(c.number>>16), byte(c.number>>8), byte(c.number)
	r.Outcome = record.Outcome{
		Accepted: uint32(len(r.Lines)), Rejected: uint32(len(c.chunk.Malformed) + c.chunk.Copies), Sum: sumOf(r.Data),
	}
	if !yield(&c.chunk, nil) {
		return false
	}
	c.number++
	c.passed += c.entries
	c.entries, c.bytes = 0, 0
	r.Lines, r.Data = r.Lines[:0], r.Data[:0]
	c.chunk.Malformed, c.chunk.Copies = nil, 0
	return true
}

// sumOf is a checksum of lines.
func sumOf(data []byte) uint64 {
	sum := sha256.Sum256(data)
	return binary.BigEndian.Uint64(sum[:])
}

// origin is the origin of the chunks of a blob, but for their number in the last three bytes:
// the hour of the blob in ms, its counter, and a hash of service, key and first entry. So
// records of equal times keep the order of their blob, and of the blobs of a classic hour. The
// container has no part in it: copies of a blob elsewhere have the same records. But blobs of
// one key in two accounts differ in their first entry.
func (b *Blob) origin(first []byte) (o record.Origin) {
	binary.BigEndian.PutUint64(o[:], uint64(b.Hour.UnixMilli())<<16)
	counter, _ := strconv.Atoi(strings.TrimSuffix(path.Base(b.Key), ".log")) // PT1H.json has none
	binary.BigEndian.PutUint16(o[6:], uint16(min(max(counter, 0), math.MaxUint16)))
	sum := sha256.Sum256(append([]byte(b.Service+"\x00"+b.Key+"\x00"), bytes.TrimRight(first, "\r\n")...))
	copy(o[8:13], sum[:])
	return o
}
