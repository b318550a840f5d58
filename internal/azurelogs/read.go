package azurelogs

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"iter"
	"math"
	"path"
	"strconv"
	"strings"
	"time"

	"blobtail/internal/azurelogs/formats"
	"blobtail/record"
	"blobtail/storage"
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
	// may have no records then, tells it. Resource logs end so while they grow, and do not: when
	// their hour is over, the line is malformed.
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

// Read reads a blob. It takes a classic log up to its listed size, since a later line may be
// a copy of one in another blob of that listing. It takes a resource log as it is when it is
// opened, because Azure may have written all of it anew since it was listed: then its listed size
// is a place within some record. A chunk is valid until the next one. seen may be nil if copies in
// the blob do not matter. The sequence ends at its first error, which names the blob, after the
// records before it.
//
// All chunks are of one state of the blob. If it changes while it is read, Read reads its new
// state, and goes on behind the chunks that it has yielded if they are the same there. Else,
// or if the blob changes again and again, the sequence ends with an error.
func Read(ctx context.Context, b *Blob, seen Seen) iter.Seq2[*Chunk, error] {
	return func(yield func(*Chunk, error) bool) {
		c := chunker{blob: b, seen: seen, translator: formats.NewTranslator(b.Kind, b.Service, b.Hour), yield: yield, seed: maphash.MakeSeed()}
		c.chunk.Services = []string{b.Service}
		err := ErrOdd
		if !b.odd {
			err = c.read(ctx)
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, fmt.Errorf("read %s: %w", b.Path(), err))
		}
	}
}

// Pauses before a blob that has changed is read again: its writer may not be done.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = 320 * time.Millisecond
)

// errStopped says that the caller of [Read] wants no more chunks.
var errStopped = errors.New("stopped")

// errOther says that a blob is not as it was at the first chunks.
var errOther = errors.New("it was written anew with other records while it was read; read it again")

// open opens the blob, to be read up to its listed size or whole.
func (b *Blob) open(ctx context.Context) (io.ReadCloser, error) {
	n := b.Size
	if b.Kind == formats.Resource && !b.head {
		n = -1
	}
	return b.from.Get(ctx, b.Key, 0, n)
}

// A chunker gathers the entries of a blob in chunks.
type chunker struct {
	blob       *Blob
	seen       Seen
	splitter   *formats.Splitter
	translator *formats.Translator
	yield      func(*Chunk, error) bool
	steady     func() error // of the body
	anew       bool         // the body is of another state than the listed one
	last       bool         // there is no pass behind this one
	chunk      Chunk
	origin     record.Origin // of the blob
	number     int           // of the chunk
	entries    int           // of the chunk so far
	passed     int           // entries of the chunks before
	bytes      int
	fresh      []formats.ID // in seen since the last chunk

	seed  maphash.Seed
	hash  maphash.Hash // of the entries of this pass
	again int          // entries of this pass that are still to be compared with chunks that were yielded
	sum   uint64       // of the entries of those
}

// read reads the blob, again if it changes, as long as that yields chunks.
func (c *chunker) read(ctx context.Context) error {
	pause, chunks := firstPause, 0
	for {
		err := c.pass(ctx)
		if !errors.Is(err, storage.ErrChanged) {
			return err
		}
		if c.number > chunks {
			pause, chunks, c.last = firstPause, c.number, false
		}
		if c.last {
			return fmt.Errorf("it %w, again and again while it was read; read it when nobody writes it", storage.ErrChanged)
		}
		c.discard()
		select {
		case <-time.After(pause):
			c.last = pause == lastPause
			pause *= 2
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// pass reads the blob once from its start. It yields the chunks behind those that earlier passes
// have yielded. [storage.ErrChanged] says that the rest has to come from another pass.
func (c *chunker) pass(ctx context.Context) error {
	body, err := c.blob.open(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	c.splitter = formats.NewSplitter(c.blob.Kind)
	c.steady = func() error { return nil }
	c.anew = false
	if s, ok := body.(steadier); ok {
		c.steady = func() error { return s.Steady(!c.splitter.Array) }
		c.anew = s.Version() != c.blob.Version
	}
	c.again = c.passed
	c.hash.SetSeed(c.seed)
	in := &counter{r: body}
	scanner := bufio.NewScanner(in)
	scanner.Buffer(make([]byte, 64<<10), formats.MaxBuffer)
	scanner.Split(c.splitter.Split)
	for scanner.Scan() {
		if err := c.take(scanner.Bytes()); err != nil {
			return err
		}
	}
	err = scanner.Err()
	if errors.Is(err, storage.ErrChanged) {
		return err
	}
	return c.end(in.n, err)
}

// A steadier is the body of a blob that may change while it is read, as a file may. The bodies
// of Azure are of one state, or fail with [storage.ErrChanged].
type steadier interface {
	// Version is that of the state in which the blob was opened.
	Version() string
	// Steady returns [storage.ErrChanged] if the bytes so far may be of different states. If
	// the blob may grow, those before its end stay as they are when it does.
	Steady(mayGrow bool) error
}

// counter counts the bytes that are read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// take takes an entry. Those of earlier chunks are only compared.
func (c *chunker) take(entry []byte) error {
	text := formats.TrimEnd(entry)
	maphash.WriteComparable(&c.hash, len(text))
	c.hash.Write(text)
	if c.again > 0 {
		if c.again--; c.again == 0 && c.hash.Sum64() != c.sum {
			return errOther
		}
		return nil
	}
	c.add(entry)
	if c.entries < chunkEntries && c.bytes < chunkBytes {
		return nil
	}
	return c.flush()
}

// settled is the age of an hour at which Azure writes its resource logs no more.
const settled = 3 * time.Hour

// end ends a pass of so many bytes, perhaps with an error after them.
func (c *chunker) end(read int64, failed error) error {
	whole := failed == nil && !c.blob.head
	shorter := whole && !c.splitter.Array && read < c.blob.Size
	switch {
	case failed != nil:
	case c.anew && !c.last && (shorter || whole && !c.splitter.Whole()):
		return storage.ErrChanged // its writer may not be done
	case c.again > 0:
		return cmp.Or(c.steady(), errOther)
	case whole && c.splitter.Open():
		c.chunk.Malformed = append(c.chunk.Malformed, &LineError{Blob: c.blob.Path(), Line: max(c.splitter.Line, 1), Element: c.splitter.Element,
			Err: &formats.MalformedError{Reason: "the blob ends here, and its array of records does not: some may be missing"}})
	case shorter:
		failed = fmt.Errorf("it has become shorter by %d bytes since it was listed", c.blob.Size-read)
	}
	switch n := c.splitter.Unfinished; {
	case c.blob.Kind == formats.Classic:
		c.chunk.Unfinished = n
	case whole && !shorter && n > 0 && time.Since(c.blob.Hour) > settled:
		c.chunk.Malformed = append(c.chunk.Malformed, &LineError{Blob: c.blob.Path(), Line: n,
			Err: &formats.MalformedError{Reason: "the blob ends within this line, and its hour is over"}})
	}
	if c.again > 0 { // failed before the first new entry
		return failed
	}
	return cmp.Or(c.flush(), failed)
}

// discard drops the entries since the last chunk.
func (c *chunker) discard() {
	for _, id := range c.fresh {
		delete(c.seen, id)
	}
	c.reset()
}

// reset begins a chunk.
func (c *chunker) reset() {
	c.entries, c.bytes, c.fresh = 0, 0, c.fresh[:0]
	c.chunk.Lines, c.chunk.Data = c.chunk.Lines[:0], c.chunk.Data[:0]
	c.chunk.Malformed, c.chunk.Copies, c.chunk.Unfinished = nil, 0, 0
}

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
		first, known := c.seen[id]
		if known && first != here {
			c.chunk.Copies++
			return
		}
		if !known {
			c.seen[id] = here
			c.fresh = append(c.fresh, id)
		}
	}
	c.chunk.Data = data
	c.chunk.Lines = append(c.chunk.Lines, record.Line{
		Time: stamp.Time, Off: uint32(from), Len: uint32(len(data) - from), Shift: int32(index - len(c.chunk.Lines)),
	})
}

// flush yields the chunk, unless it has nothing to tell, and begins the next.
func (c *chunker) flush() error {
	if c.entries == 0 && c.chunk.Unfinished == 0 && len(c.chunk.Malformed) == 0 {
		return c.steady()
	}
	if err := c.steady(); err != nil {
		return err
	}
	r := &c.chunk.Request
	r.Origin = c.origin
	r.Origin[13], r.Origin[14], r.Origin[15] = byte(c.number>>16), byte(c.number>>8), byte(c.number)
	r.Outcome = record.Outcome{
		Accepted: uint32(len(r.Lines)), Rejected: uint32(len(c.chunk.Malformed) + c.chunk.Copies), Sum: sumOf(r.Data),
	}
	if !c.yield(&c.chunk, nil) {
		return errStopped
	}
	c.number++
	c.passed += c.entries
	c.sum = c.hash.Sum64()
	c.reset()
	return nil
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
	sum := sha256.Sum256(append([]byte(b.Service+"\x00"+b.Key+"\x00"), formats.TrimEnd(first)...))
	copy(o[8:13], sum[:])
	return o
}
