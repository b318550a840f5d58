package blobfmt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

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

	blob    blobReader
	origins entry
}

// ReadIndex reads the index of a blob of the given size. It reads the last 64 KiB at
// once, and then only missing parts. The error is a [*CorruptError] if the index is
// damaged, [ErrNewer] if its format is newer, and otherwise the error of read.
func ReadIndex(key string, size int64, read ReadFunc) (*Index, error) {
	blob := blobReader{key: key, size: size, read: read, castagnoli: crc32.MakeTable(crc32.Castagnoli)}
	if err := blob.readTail(); err != nil {
		return nil, err
	}
	f, err := blob.footer()
	if err != nil {
		return nil, err
	}
	entries, err := blob.entries(f)
	if err != nil {
		return nil, err
	}
	x := &Index{CRC: f.linesCRC, Offset: size - int64(f.indexLen) - skippableHeader}
	if x.origins, err = blob.find(entries, sectionOrigins); err != nil {
		return nil, err
	}
	if err := x.readBlocks(&blob, entries); err != nil {
		return nil, err
	}
	if err := x.readReplaces(&blob, entries); err != nil {
		return nil, err
	}
	// Only the origins may still be needed of the tail; the rest is released.
	blob.keep(x.origins)
	x.blob = blob
	return x, nil
}

// Origins reads the origins of the records. Each call parses them again. It also reads
// again if that part of the index is not in the blob's last 64 KiB.
func (x *Index) Origins() (*Origins, error) {
	section, err := x.blob.section(x.origins)
	if err != nil {
		return nil, err
	}
	o, err := parseOrigins(section, x.Blocks)
	if err != nil {
		return nil, x.blob.corruptEntry(x.origins, "origins: "+err.Error())
	}
	return o, nil
}

func (x *Index) readBlocks(blob *blobReader, entries []entry) error {
	e, err := blob.find(entries, sectionBlocks)
	if err != nil {
		return err
	}
	section, err := blob.section(e)
	if err != nil {
		return err
	}
	r := sectionReader{rest: section}
	x.Blocks = parseBlocks(&r, blob.key)
	if len(x.Blocks) == 0 {
		r.fail("no blocks")
	}
	if err := r.end(); err != nil {
		return blob.corruptEntry(e, "blocks: "+err.Error())
	}
	if b := x.Blocks[len(x.Blocks)-1]; b.Offset+b.Stored != x.Offset {
		return blob.corruptEntry(e, "blocks: they do not fill the space before the index")
	}
	return nil
}

func (x *Index) readReplaces(blob *blobReader, entries []entry) error {
	e, err := blob.find(entries, sectionReplaces)
	if err != nil {
		return nil // most blobs replace nothing
	}
	section, err := blob.section(e)
	if err != nil {
		return err
	}
	r := sectionReader{rest: section}
	x.Replaces = make([]BatchID, r.count(len(BatchID{})))
	for i := range x.Replaces {
		copy(x.Replaces[i][:], r.bytes(len(BatchID{})))
		if i > 0 && bytes.Compare(x.Replaces[i-1][:], x.Replaces[i][:]) >= 0 {
			r.fail("ids are not in order")
			break
		}
	}
	if err := r.end(); err != nil {
		return blob.corruptEntry(e, "replaces: "+err.Error())
	}
	return nil
}

// minBlock is the least number of bytes of a block in its section.
const minBlock = 4 + 5 + record.NumLevels + 1 + 3

// parseBlocks is the inverse of appendBlocks.
func parseBlocks(r *sectionReader, key string) []Block {
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

// A blobReader reads the parts of an index.
type blobReader struct {
	key        string
	size       int64
	read       ReadFunc
	castagnoli *crc32.Table
	tail       []byte // the bytes of the blob in memory, from tailAt on
	tailAt     int64
}

func (r *blobReader) corrupt(off, n int64, reason string) error {
	return &CorruptError{Blob: r.key, Offset: off, Length: n, Reason: reason}
}

func (r *blobReader) corruptEntry(e entry, reason string) error {
	return r.corrupt(e.offset, int64(e.stored), "index: "+reason)
}

func (r *blobReader) readTail() error {
	n := min(r.size, tailRead)
	if n < skippableHeader+footerSize {
		return r.corrupt(0, max(r.size, 0), "too short for an index")
	}
	tail, err := r.read(r.size-n, n)
	if err != nil {
		return err
	}
	if int64(len(tail)) != n {
		return r.corrupt(r.size-n, n, fmt.Sprintf("only %d bytes could be read", len(tail)))
	}
	r.tail, r.tailAt = tail, r.size-n
	return nil
}

// footer checks and parses the footer. The tail has all of it.
func (r *blobReader) footer() (footer, error) {
	damaged := func(reason string) (footer, error) {
		return footer{}, r.corrupt(r.size-footerSize, footerSize, "index: "+reason)
	}
	fixed := r.tail[len(r.tail)-footerFixed:]
	if string(fixed[8:]) != footerMagic {
		return damaged("the blob does not end in a footer")
	}
	version := binary.LittleEndian.Uint16(fixed)
	length := int(binary.LittleEndian.Uint16(fixed[2:]))
	if length < footerFixed || length > len(r.tail) {
		return damaged("the footer is damaged")
	}
	b := r.tail[len(r.tail)-length:]
	if crc32.Checksum(b[:length-12], r.castagnoli) != binary.LittleEndian.Uint32(fixed[4:]) {
		return damaged("the footer's checksum is wrong")
	}
	if version > footerVersion {
		return footer{}, fmt.Errorf("blob %s: index version %d: %w", r.key, version, ErrNewer)
	}
	if version != footerVersion || length != footerSize {
		return damaged("the footer is not valid")
	}
	f := footer{
		tableLen: binary.LittleEndian.Uint32(b),
		tableCRC: binary.LittleEndian.Uint32(b[4:]),
		indexLen: binary.LittleEndian.Uint32(b[8:]),
		linesCRC: binary.LittleEndian.Uint32(b[12:]),
	}
	if int64(f.indexLen) > r.size-skippableHeader || f.tableLen > maxSections*entrySize ||
		f.tableLen%entrySize != 0 || int64(f.tableLen)+footerSize > int64(f.indexLen) {
		return damaged("the footer's lengths are not valid")
	}
	return f, nil
}

// entries checks and parses the section table. The table is always in the tail, which is
// larger than the largest table and its footer.
func (r *blobReader) entries(f footer) ([]entry, error) {
	start := r.size - int64(f.indexLen) - skippableHeader
	if start >= r.tailAt {
		head := r.tail[start-r.tailAt:]
		if binary.LittleEndian.Uint32(head) != indexMagic || binary.LittleEndian.Uint32(head[4:]) != f.indexLen {
			return nil, r.corrupt(start, skippableHeader, "index: its frame does not begin where the footer says")
		}
	}
	end := int64(len(r.tail)) - footerSize
	table := r.tail[end-int64(f.tableLen) : end]
	at := r.tailAt + end - int64(len(table))
	damaged := func(reason string) ([]entry, error) {
		return nil, r.corrupt(at, int64(len(table)), "index: "+reason)
	}
	if crc32.Checksum(table, r.castagnoli) != f.tableCRC {
		return damaged("the section table's checksum is wrong")
	}
	entries := make([]entry, 0, len(table)/entrySize)
	offset := start + skippableHeader
	for b := table; len(b) > 0; b = b[entrySize:] {
		e := parseEntry(b)
		e.offset = offset
		offset += int64(e.stored)
		entries = append(entries, e)
	}
	if offset != at {
		return damaged("the sections do not fill the index")
	}
	return entries, nil
}

func (r *blobReader) find(entries []entry, id uint16) (entry, error) {
	for _, e := range entries {
		if e.id == id {
			return e, nil
		}
	}
	return entry{}, r.corrupt(r.size-footerSize, footerSize, fmt.Sprintf("index: section %d is missing", id))
}

// section returns the content of a section.
func (r *blobReader) section(e entry) ([]byte, error) {
	stored, err := r.stored(e)
	if err != nil {
		return nil, err
	}
	if crc32.Checksum(stored, r.castagnoli) != e.crc {
		return nil, r.corruptEntry(e, "a section's checksum is wrong")
	}
	switch e.codec {
	case codecRaw:
		if e.raw != e.stored {
			return nil, r.corruptEntry(e, "a section's lengths differ")
		}
		return stored, nil
	case codecZstd:
		d, err := NewDecoder()
		if err != nil {
			return nil, err
		}
		raw, err := d.decode(nil, stored, int64(e.raw))
		if err != nil {
			return nil, r.corruptEntry(e, "a section does not decompress: "+err.Error())
		}
		return raw, nil
	}
	return nil, fmt.Errorf("blob %s: index section %d has codec %d: %w", r.key, e.id, e.codec, ErrNewer)
}

func (r *blobReader) stored(e entry) ([]byte, error) {
	n := int64(e.stored)
	if n == 0 {
		return nil, nil
	}
	if off := e.offset - r.tailAt; off >= 0 && off+n <= int64(len(r.tail)) {
		return r.tail[off : off+n], nil
	}
	stored, err := r.read(e.offset, n)
	if err != nil {
		return nil, err
	}
	if int64(len(stored)) != n {
		return nil, r.corruptEntry(e, fmt.Sprintf("only %d bytes could be read", len(stored)))
	}
	return stored, nil
}

// keep releases the tail except for one section.
func (r *blobReader) keep(e entry) {
	off := e.offset - r.tailAt
	if off < 0 {
		r.tail, r.tailAt = nil, r.size
		return
	}
	r.tail = bytes.Clone(r.tail[off : off+int64(e.stored)])
	r.tailAt = e.offset
}
