package blobfmt

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"
	"slices"

	"blobtail/blobfmt/filter"
	"blobtail/blobfmt/linezstd"
	"blobtail/record"

	"github.com/klauspost/compress/zstd"
)

// EncoderOptions tune an [Encoder]. Ingesters use the zero value.
type EncoderOptions struct {
	Level     zstd.EncoderLevel // 0: SpeedFastest, by linezstd for all but small blocks
	Slow      bool              // by linezstd's slow mode, at any level: for blobs that are kept long
	BlockSize int               // bytes of lines in a block, at most 4 MiB; 0: 512 KiB
	// FilterPercent bounds the list of words, and the ids, by which a search rules out blocks:
	// each is left out if it takes more than this share of the blocks' bytes. 0: 3 % for words
	// and 8 % for ids. Below 0 there are no filters, which saves an eighth of the CPU and a
	// twentieth of the bytes.
	FilterPercent int
}

const (
	defaultBlockSize = 512 << 10
	maxBlockSize     = 4 << 20
)

// A line begins with its time, which is 30 bytes long, and the time is followed
// by a quote.
const (
	linePrefix = `{"ts":"`
	lineSuffix = "}\n"
	timeLen    = 30
	minLine    = len(linePrefix) + timeLen + 1 + len(lineSuffix)
)

var errFinished = errors.New("blobfmt: the encoder has finished its blob; Reset it first")

// An Encoder makes blobs, one after another, and keeps its buffers between them. Only one
// goroutine may use it.
//
// Its memory is the lines of one block, the compressed body and the parts of the index,
// plus 1.2 MiB for zstd (6 MiB at better compression, and 5 to 21 MiB more if it is slow).
type Encoder struct {
	blockSize int
	zstd      *zstd.Encoder
	linezstd  *linezstd.Encoder // nil at other levels than the fastest
	slow      *linezstd.Slow    // nil if it need not be slow

	finished bool
	lines    []byte // of the open block
	body     []byte // frames of the blocks that are complete
	blocks   []Block
	open     Block // the block that receives lines
	raw      int64
	crc      uint32
	replaces []BatchID
	erased   *int64 // the time of an erased blob if it has no lines; nil: it is another one
	origins  originTable
	filters  *filter.Builder // nil: none
	percent  struct{ words, ids int }

	last    record.Key // of the last line
	hourEnd int64      // last time allowed in this blob: every period lies in one hour
	day     record.DayCache
	scratch []byte // section under construction
}

// NewEncoder returns an Encoder that is ready for its first blob.
func NewEncoder(o EncoderOptions) (*Encoder, error) {
	if o.Level == 0 {
		o.Level = zstd.SpeedFastest
	}
	if o.BlockSize == 0 {
		o.BlockSize = defaultBlockSize
	}
	if o.BlockSize < 0 || o.BlockSize > maxBlockSize {
		return nil, fmt.Errorf("blobfmt: block size %d is not between 1 and %d", o.BlockSize, maxBlockSize)
	}
	e := &Encoder{blockSize: o.BlockSize}
	window := max(zstd.MinWindowSize, 1<<bits.Len(uint(o.BlockSize-1))) // it covers a block
	switch {
	case o.Slow:
		e.slow = linezstd.NewSlow()
	case o.Level == zstd.SpeedFastest:
		e.linezstd = linezstd.NewEncoder()
		window = min(window, linezstd.MinSize)
	}
	z, err := zstd.NewWriter(nil,
		zstd.WithEncoderLevel(o.Level),
		zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(window),
		zstd.WithSingleSegment(true), // so that every frame contains its content's length
		zstd.WithEncoderCRC(true),
		zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("blobfmt: new encoder: %w", err)
	}
	e.zstd = z
	if o.FilterPercent >= 0 {
		e.filters = filter.NewBuilder()
		e.percent.words, e.percent.ids = cmp.Or(o.FilterPercent, wordsPercent), cmp.Or(o.FilterPercent, idsPercent)
	}
	e.Reset()
	return e, nil
}

// Reset starts a new blob and drops all added lines. It overwrites the body that Finish
// returned.
func (e *Encoder) Reset() {
	e.finished, e.raw, e.crc = false, 0, 0
	e.lines, e.body = e.lines[:0], e.body[:0]
	e.blocks, e.replaces, e.erased = e.blocks[:0], e.replaces[:0], nil
	e.openBlock()
	e.origins.reset()
	if e.filters != nil {
		e.filters.Reset()
	}
}

// openBlock opens the next block, with the memory of an earlier one's minutes.
func (e *Encoder) openBlock() {
	e.open = Block{}
	if n := len(e.blocks); n < cap(e.blocks) {
		e.open.Minutes = e.blocks[:n+1][n].Minutes[:0]
	}
}

// Replaces notes that the blob replaces these batches (compaction).
func (e *Encoder) Replaces(ids ...BatchID) { e.replaces = append(e.replaces, ids...) }

// Erased notes that the blob lacks records of the batches that it replaces. It may have no lines, and has
// the time at then, which has to be in its hour.
func (e *Encoder) Erased(at int64) { e.erased = &at }

// Add appends a canonical line with its newline. t is the line's time. Lines must come in
// strictly ascending order of (t, origin, index). Add refuses a line out of order, or a
// malformed one, and leaves the Encoder unchanged.
func (e *Encoder) Add(line []byte, t int64, origin record.Origin, index uint32) error {
	if e.finished {
		return errFinished
	}
	if err := e.check(line, t); err != nil {
		return err
	}
	key := record.Key{Time: t, Origin: origin, Index: index}
	switch {
	case e.raw == 0:
		e.hourEnd = lastOfHour(t)
	case key.Compare(&e.last) <= 0:
		return fmt.Errorf("blobfmt: add: record (%s, %s, %d) does not come after the one before",
			record.AppendTime(nil, t), origin, index)
	case t > e.hourEnd:
		return fmt.Errorf("blobfmt: add: time %s is not in the hour of the records before", record.AppendTime(nil, t))
	}
	if len(e.lines)+len(line) > e.blockSize && len(e.lines) > 0 {
		e.cut()
	}
	e.lines = append(e.lines, line...)
	e.raw += int64(len(line))
	e.origins.add(&key, &e.last)
	e.open.count(t, record.LineLevel(line))
	e.last = key
	return nil
}

// check detects the likely mistakes of a caller, at a cost that every record can bear. It
// checks both ends of the line, that it is one line, and that its time is t.
func (e *Encoder) check(line []byte, t int64) error {
	switch {
	case len(line) < minLine || string(line[:len(linePrefix)]) != linePrefix:
		return fmt.Errorf("blobfmt: add: a line does not begin with %s and a time", linePrefix)
	case string(line[len(line)-len(lineSuffix):]) != lineSuffix || bytes.IndexByte(line, '\n') != len(line)-1:
		return errors.New("blobfmt: add: a line does not end in } and its only newline")
	case len(line) > maxRaw:
		return fmt.Errorf("blobfmt: add: a line of %d bytes is longer than %d", len(line), maxRaw)
	}
	ns, canonical := e.day.Parse(line[len(linePrefix):][:timeLen])
	if !canonical || ns != t || line[len(linePrefix)+timeLen] != '"' {
		return fmt.Errorf("blobfmt: add: a line's time is not %s", record.AppendTime(nil, t))
	}
	return nil
}

// count adds a record to the description of a block.
func (b *Block) count(t int64, level record.Level) {
	if b.Records == 0 {
		b.First = t
	}
	b.Last = t
	b.Records++
	b.Levels[level]++
	minute := minuteOf(t)
	if n := len(b.Minutes); n == 0 || b.Minutes[n-1].Minute != minute {
		b.Minutes = append(b.Minutes, MinuteCount{Minute: minute})
	}
	b.Minutes[len(b.Minutes)-1].Levels[level]++
}

// cut turns the open block into a frame.
func (e *Encoder) cut() {
	e.crc = checksum(e.crc, e.lines)
	b := e.open
	b.Offset, b.Raw = int64(len(e.body)), int64(len(e.lines))
	fresh := e.appendFrame(e.lines)
	b.Stored = int64(len(e.body)) - b.Offset
	b.CRC = checksum(0, e.body[b.Offset:])
	e.blocks = append(e.blocks, b)
	e.origins.cut()
	if e.filters != nil {
		e.filters.Block(e.lines, fresh)
	}
	e.lines = e.lines[:0]
	e.openBlock()
}

// appendFrame appends the frame of a block's lines to the body. It returns what
// [linezstd.Encoder.Fresh] does, or nil if that is not known.
func (e *Encoder) appendFrame(lines []byte) []uint64 {
	switch {
	case e.slow != nil:
		e.body = e.slow.Append(e.body, lines)
		return e.slow.Fresh()
	case e.linezstd != nil && len(lines) >= linezstd.MinSize:
		e.body = e.linezstd.Append(e.body, lines)
		return e.linezstd.Fresh()
	}
	e.body = e.zstd.EncodeAll(lines, e.body)
	return nil
}

// checksum continues a CRC-32C, which begins with 0.
func checksum(crc uint32, b []byte) uint32 {
	return crc32.Update(crc, crc32.MakeTable(crc32.Castagnoli), b)
}

// Finish completes the blob. body is valid until Reset. A blob without lines is
// an error unless it is an erased one, and so is a second Finish.
func (e *Encoder) Finish(batch BatchID) (body []byte, m Meta, err error) {
	if e.finished {
		return nil, Meta{}, errFinished
	}
	m = Meta{Batch: batch, Erased: e.erased != nil}
	switch {
	case e.raw > 0:
		e.cut()
	case m.Erased:
		m.First, m.Last = *e.erased, *e.erased
	default:
		return nil, Meta{}, errors.New("blobfmt: finish: a blob needs at least one line")
	}
	e.finished, m.CRC = true, e.crc
	for i := range e.blocks {
		m.add(&e.blocks[i])
	}
	slices.SortFunc(e.replaces, func(a, b BatchID) int { return bytes.Compare(a[:], b[:]) })
	e.replaces = slices.Compact(e.replaces)
	m.Compacted = len(e.replaces)
	if m.IDs, err = e.appendIndex(); err != nil {
		return nil, Meta{}, fmt.Errorf("blobfmt: finish: %w", err)
	}
	m.SHA256 = sha256.Sum256(e.body)
	return e.body, m, nil
}
