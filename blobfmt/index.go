package blobfmt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"blobtail/record"
)

// A ReadFunc reads n bytes of a blob from offset off. It may return fewer only with an
// error.
type ReadFunc func(off, n int64) ([]byte, error)

// A Block is the index's description of one block.
type Block struct {
	Offset, Stored int64  // of its zstd frame in the blob
	CRC            uint32 // CRC-32C of the frame as stored
	Raw            int64  // length of its lines
	First, Last    int64  // times of its first and last record
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

// An Index describes the contents of a blob's blocks. Many goroutines may use it
// concurrently.
type Index struct {
	Blocks   []Block
	Replaces []BatchID // batches that this blob replaces, ascending
	CRC      uint32    // CRC-32C of all lines
	Offset   int64     // start of the index, which is the end of the blocks

	key     string
	size    int64
	read    ReadFunc
	decoder *Decoder
	tail    []byte // the bytes of the blob in memory, from tailAt on
	tailAt  int64
	origins section
	filters section // of words
	ids     section
	dict    []record.Origin // of a detached index; nil: it is not kept
}

// ReadIndex reads the index of a blob of the given size. It reads the last 64 KiB at
// once, and then only missing parts. The error is a [*CorruptError] if the index is
// damaged, [ErrNewer] if its format is newer, and otherwise the error of read.
func ReadIndex(key string, size int64, read ReadFunc) (*Index, error) {
	return NewDecoder(1).readIndex(key, size, tailRead, read)
}

// ReadIndex is [ReadIndex] for a reader of many blobs. The index uses d for its sections. It
// begins with the last 2 KiB: the reader knows best how much more to read at once.
func (d *Decoder) ReadIndex(key string, size int64, read ReadFunc) (*Index, error) {
	return d.readIndex(key, size, leastTail, read)
}

func (d *Decoder) readIndex(key string, size, tail int64, read ReadFunc) (*Index, error) {
	x := &Index{key: key, size: size, read: read, decoder: d}
	sections, err := x.open(tail)
	if err != nil {
		return nil, err
	}
	for _, id := range []uint16{sectionOrigins, sectionBlocks, sectionReplaces, sectionFilters, sectionIDs} {
		i := slices.IndexFunc(sections, func(s section) bool { return s.ID == id })
		switch {
		case i < 0 && id != sectionOrigins && id != sectionBlocks: // most blobs replace nothing, old ones have no filters
		case i < 0:
			return nil, x.corrupt(size-footerSize, footerSize, fmt.Sprintf("index: section %d is missing", id))
		case id == sectionOrigins:
			x.origins = sections[i]
		case id == sectionFilters:
			x.filters = sections[i]
		case id == sectionIDs:
			x.ids = sections[i]
		case id == sectionBlocks:
			err = x.parse(sections[i], "blocks: ", func(s *sectionReader) { x.Blocks = parseBlocks(s, key, x.Offset) })
		case id == sectionReplaces:
			err = x.parse(sections[i], "replaces: ", func(s *sectionReader) { x.Replaces = parseReplaces(s) })
		}
		if err != nil {
			return nil, err
		}
	}
	if len(x.Blocks) == 0 && len(x.Replaces) == 0 {
		return nil, x.corrupt(size-footerSize, footerSize, "index: no blocks")
	}
	// Only the origins may still be needed of the tail; the rest is released.
	x.tail, x.tailAt = bytes.Clone(x.inTail(x.origins.offset, int64(x.origins.Stored))), x.origins.offset
	return x, nil
}

// Origins reads the origins of the records. Each call parses them again. It also reads again if
// the first read did not have that part of the index.
func (x *Index) Origins() (o *Origins, err error) {
	err = x.parse(x.origins, "origins: ", func(s *sectionReader) { o = parseOrigins(s, x.Blocks) })
	return o, err
}

// Dict reads the origins of the blob alone, ascending, at a fraction of the cost of Origins.
// The result must not be changed.
func (x *Index) Dict() (dict []record.Origin, err error) {
	if x.dict != nil {
		return x.dict, nil
	}
	stored, err := x.checked(x.origins)
	if err != nil {
		return nil, err
	}
	// They are at the start of the section, and the spans behind them are much longer.
	if x.origins.Codec == codecZstd {
		if head := x.decoder.head(stored); head != nil {
			r := sectionReader{all: head}
			if dict = parseDict(&r); r.err == nil {
				return dict, nil
			}
		}
	}
	err = x.parse(x.origins, "origins: ", func(s *sectionReader) {
		dict = parseDict(s)
		s.drop() // the spans
	})
	return dict, err
}

func parseReplaces(r *sectionReader) []BatchID {
	ids := make([]BatchID, r.count(len(BatchID{})))
	for i := range ids {
		copy(ids[i][:], r.bytes(len(BatchID{})))
		if i > 0 && bytes.Compare(ids[i-1][:], ids[i][:]) >= 0 {
			r.fail("ids are not in order")
			break
		}
	}
	return ids
}

// minBlock is the least number of bytes of a block in its section.
const minBlock = 4 + 5 + record.NumLevels + 1 + 3

// parseBlocks is the inverse of appendBlocks. end is the end of the last block.
func parseBlocks(r *sectionReader, key string, end int64) []Block {
	blocks := make([]Block, r.count(minBlock))
	offset, last := int64(0), int64(0)
	for i := range blocks {
		b := &blocks[i]
		b.blob, b.Offset = key, offset
		b.Stored = int64(r.upTo(math.MaxUint32))
		offset += b.Stored
		b.CRC = binary.LittleEndian.Uint32(r.bytes(4))
		b.Raw = int64(r.upTo(maxRaw))
		first := r.time()
		b.First = last + first
		b.Last = b.First + int64(r.upTo(uint64(nsPerHour)))
		// The sums wrap around at the end of int64; then they are not in order.
		if i > 0 && first < 0 || (first < 0) != (b.First < last) || b.Last < b.First || b.Last > lastOfHour(blocks[0].First) {
			r.fail("a block's times are out of range")
		}
		last = b.Last
		b.Records = int(r.upTo(uint64(b.Raw) / uint64(minLine)))
		left := b.Records
		for l := range b.Levels {
			b.Levels[l] = int(r.upTo(uint64(left)))
			left -= b.Levels[l]
		}
		if b.Records == 0 || left != 0 {
			r.fail("a block's levels do not add up to its records")
		}
		b.Minutes = parseMinutes(r, *b)
		if r.err != nil {
			return nil
		}
	}
	if offset != end {
		r.fail("they do not fill the space before the index")
	}
	return blocks
}

// parseMinutes reads the counts of a block. They must add up to its levels.
func parseMinutes(r *sectionReader, b Block) []MinuteCount {
	n := r.count(3)
	if n > int(nsPerHour/nsPerMinute) {
		r.fail("a block has too many minutes")
		return nil
	}
	minutes := make([]MinuteCount, n)
	left := b.Levels
	at, end := minuteOf(b.First), minuteOf(b.Last)
	for i := range minutes {
		step := int64(r.upTo(uint64(end - at)))
		if (step == 0) != (i == 0) {
			r.fail("a block's minutes are not in order")
		}
		at += step
		minutes[i].Minute = at
		mask := r.bytes(1)[0]
		if mask == 0 || mask >= 1<<record.NumLevels {
			r.fail("a minute's levels are not valid")
		}
		for l := range left {
			if mask>>l&1 == 1 {
				c := int(r.upTo(uint64(left[l])))
				minutes[i].Levels[l] = c
				left[l] -= c
			}
		}
		if r.err != nil {
			return nil
		}
	}
	if at != end || left != [record.NumLevels]int{} {
		r.fail("a block's minutes do not add up to its levels")
	}
	return minutes
}

// A section is an entry with the place of its bytes in the blob.
type section struct {
	entry
	offset int64
}

func (x *Index) corrupt(off, n int64, reason string) error {
	return &CorruptError{Blob: x.key, Offset: off, Length: n, Reason: reason}
}

// open reads the tail with the footer and the section table.
func (x *Index) open(tail int64) (sections []section, err error) {
	n := min(x.size, tail)
	if n < skippableHeader+footerSize {
		return nil, x.corrupt(0, max(x.size, 0), "too short for an index")
	}
	x.tailAt = x.size - n
	if x.tail, err = x.bytes(x.tailAt, n, ""); err != nil {
		return nil, err
	}
	f, err := x.footer()
	if err != nil {
		return nil, err
	}
	x.CRC, x.Offset = f.LinesCRC, x.size-int64(f.IndexLen)-skippableHeader
	return x.sections(f)
}

// footer checks and parses the footer. The tail has all of it.
func (x *Index) footer() (f footer, err error) {
	damaged := func(reason string) (footer, error) {
		return footer{}, x.corrupt(x.size-footerSize, footerSize, "index: "+reason)
	}
	fixed := x.tail[len(x.tail)-footerFixed:]
	if string(fixed[8:]) != footerMagic {
		return damaged("the blob does not end in a footer")
	}
	version := binary.LittleEndian.Uint16(fixed)
	length := int(binary.LittleEndian.Uint16(fixed[2:]))
	if length < footerFixed || length > len(x.tail) {
		return damaged("the footer is damaged")
	}
	b := x.tail[len(x.tail)-length:]
	if checksum(0, b[:length-12]) != binary.LittleEndian.Uint32(fixed[4:]) {
		return damaged("the footer's checksum is wrong")
	}
	if version > footerVersion {
		return footer{}, fmt.Errorf("blob %s: index version %d: %w", x.key, version, ErrNewer)
	}
	if version != footerVersion || length != footerSize {
		return damaged("the footer is not valid")
	}
	_, _ = binary.Decode(b, binary.LittleEndian, &f) // it is long enough
	if int64(f.IndexLen) > x.size-skippableHeader || f.TableLen > maxSections*entrySize ||
		f.TableLen%entrySize != 0 || int64(f.TableLen)+footerSize > int64(f.IndexLen) {
		return damaged("the footer's lengths are not valid")
	}
	return f, nil
}

// sections checks and parses the section table. The table is always in the tail, which is
// larger than the largest table and its footer.
func (x *Index) sections(f footer) ([]section, error) {
	start := x.Offset
	if start >= x.tailAt {
		head := x.tail[start-x.tailAt:]
		if binary.LittleEndian.Uint32(head) != indexMagic || binary.LittleEndian.Uint32(head[4:]) != f.IndexLen {
			return nil, x.corrupt(start, skippableHeader, "index: its frame does not begin where the footer says")
		}
	}
	end := len(x.tail) - footerSize
	table := x.tail[end-int(f.TableLen) : end]
	at := x.size - footerSize - int64(len(table))
	if checksum(0, table) != f.TableCRC {
		return nil, x.corrupt(at, int64(len(table)), "index: the section table's checksum is wrong")
	}
	entries := make([]entry, len(table)/entrySize)
	_, _ = binary.Decode(table, binary.LittleEndian, entries) // it has exactly that size
	sections := make([]section, len(entries))
	offset := start + skippableHeader
	for i, e := range entries {
		sections[i] = section{e, offset}
		offset += int64(e.Stored)
	}
	if offset != at {
		return nil, x.corrupt(at, int64(len(table)), "index: the sections do not fill the index")
	}
	return sections, nil
}

// parse reads a section and passes its contents to parse.
func (x *Index) parse(s section, name string, parse func(*sectionReader)) error {
	content, err := x.content(s)
	if err != nil {
		return err
	}
	reader := sectionReader{all: content}
	parse(&reader)
	if err := reader.end(); err != nil {
		return x.corrupt(s.offset, int64(s.Stored), "index: "+name+err.Error())
	}
	return nil
}

// content returns the bytes of a section, decompressed.
func (x *Index) content(s section) ([]byte, error) {
	stored, err := x.checked(s)
	if err != nil {
		return nil, err
	}
	damaged := func(reason string) ([]byte, error) {
		return nil, x.corrupt(s.offset, int64(s.Stored), "index: "+reason)
	}
	switch {
	case s.Codec == codecRaw && s.Raw != s.Stored:
		return damaged("a section's lengths differ")
	case s.Codec == codecRaw:
		return stored, nil
	case s.Codec != codecZstd:
		return nil, fmt.Errorf("blob %s: index section %d has codec %d: %w", x.key, s.ID, s.Codec, ErrNewer)
	}
	raw, err := x.decoder.decode(nil, stored, int64(s.Raw))
	if err != nil {
		return damaged("a section does not decompress: " + err.Error())
	}
	return raw, nil
}

// checked returns the bytes of a section as they are stored.
func (x *Index) checked(s section) ([]byte, error) {
	stored, err := x.bytes(s.offset, int64(s.Stored), "index: ")
	if err == nil && checksum(0, stored) != s.CRC {
		err = x.corrupt(s.offset, int64(s.Stored), "index: a section's checksum is wrong")
	}
	return stored, err
}

// bytes returns n bytes of the blob, from the tail if it has them.
func (x *Index) bytes(off, n int64, in string) ([]byte, error) {
	if b := x.inTail(off, n); b != nil || n == 0 {
		return b, nil
	}
	b, err := x.read(off, n)
	if err != nil {
		return nil, err
	}
	if int64(len(b)) != n {
		return nil, x.corrupt(off, n, fmt.Sprintf("%sonly %d bytes could be read", in, len(b)))
	}
	return b, nil
}

// inTail returns n bytes of the blob if the tail has them.
func (x *Index) inTail(off, n int64) []byte {
	if at := off - x.tailAt; at >= 0 && at+n <= int64(len(x.tail)) {
		return x.tail[at : at+n]
	}
	return nil
}
