package blobfmt

import (
	"encoding/binary"
	"fmt"
	"math"
)

// The index is the payload of a skippable frame: sections, one after another, then the
// table that addresses them, then the footer. All numbers outside sections are little
// endian. A reader skips sections with unknown ids.
const (
	sectionFilters  = 1
	sectionReplaces = 2
	sectionOrigins  = 3
	sectionBlocks   = 4
	sectionIDs      = 5

	codecRaw  = 0
	codecZstd = 1

	entrySize   = 16
	maxSections = 64

	footerSize    = 32
	footerVersion = 1
	footerMagic   = "BLOBTAIL"
	// The last bytes of the footer have the same place in every version, so an old reader
	// can distinguish a newer index from a damaged one.
	footerFixed = 16
	footerSum   = footerSize - 12 // the offset of its checksum

	// tailRead is the size of a reader's first read.
	tailRead = 64 << 10
	// leastTail has the largest section table and its footer.
	leastTail = 2 << 10

	// compressFrom is the least size at which compressing a section is worth setting up a
	// decoder in the reader.
	compressFrom = 1 << 10
)

// An entry of the section table, as stored.
type entry struct {
	ID       uint16
	Codec, _ uint8
	Stored   uint32
	Raw      uint32
	CRC      uint32
}

// A footer is the end of the index, as stored.
type footer struct {
	TableLen uint32
	TableCRC uint32
	IndexLen uint32 // of the skippable frame's payload
	LinesCRC uint32
	Version  uint16
	Length   uint16
	CRC      uint32 // of the fields before it
	Magic    [8]byte
}

// appendIndex completes e.body, and returns the place of the ids.
func (e *Encoder) appendIndex() (ids IDs, err error) {
	start := len(e.body)
	e.body = binary.LittleEndian.AppendUint32(e.body, indexMagic)
	e.body = append(e.body, 0, 0, 0, 0) // the length, below
	var entries []entry
	add := func(id uint16, section []byte) {
		entries = append(entries, e.appendSection(id, section))
		e.scratch = section[:0]
	}
	if e.filters != nil {
		var s entry
		if s, ids.Buckets = e.appendIDs(start); ids.Buckets > 0 {
			ids.Offset, ids.Length = int64(start+skippableHeader), int64(s.Stored)
			entries = append(entries, s)
		}
	}
	if len(e.replaces) > 0 {
		replaced := binary.AppendUvarint(e.scratch[:0], uint64(len(e.replaces)))
		for _, id := range e.replaces {
			replaced = append(replaced, id[:]...)
		}
		add(sectionReplaces, replaced)
	}
	add(sectionOrigins, e.origins.append(e.scratch[:0]))
	if e.filters != nil {
		entries = append(entries, e.appendFilters(start, ids.Buckets))
	}
	add(sectionBlocks, appendBlocks(e.scratch[:0], e.blocks))
	table := len(e.body)
	// Structs of a fixed size are always encoded.
	e.body, _ = binary.Append(e.body, binary.LittleEndian, entries)
	end := len(e.body)
	payload := end + footerSize - start - skippableHeader
	if int64(payload) > math.MaxUint32 {
		return ids, fmt.Errorf("an index of %d bytes is too large", payload)
	}
	f := footer{
		TableLen: uint32(end - table),
		TableCRC: checksum(0, e.body[table:]),
		IndexLen: uint32(payload),
		LinesCRC: e.crc,
		Version:  footerVersion,
		Length:   footerSize,
		Magic:    [8]byte([]byte(footerMagic)),
	}
	e.body, _ = binary.Append(e.body, binary.LittleEndian, f)
	binary.LittleEndian.PutUint32(e.body[end+footerSum:], checksum(0, e.body[end:end+footerSum]))
	binary.LittleEndian.PutUint32(e.body[start+4:], uint32(payload))
	return ids, nil
}

// appendSection appends a section to the body. It compresses the section if that saves
// more than a tenth.
func (e *Encoder) appendSection(id uint16, section []byte) entry {
	start := len(e.body)
	s := entry{ID: id, Codec: codecRaw, Raw: uint32(len(section))}
	if len(section) >= compressFrom && len(section) <= maxRaw {
		if e.slow != nil {
			e.body = e.slow.Append(e.body, section)
		} else {
			e.body = e.zstd.EncodeAll(section, e.body)
		}
		s.Codec = codecZstd
	}
	if stored := len(e.body) - start; s.Codec == codecRaw || stored >= len(section)-len(section)/10 {
		e.body = append(e.body[:start], section...)
		s.Codec = codecRaw
	}
	s.Stored = uint32(len(e.body) - start)
	s.CRC = checksum(0, e.body[start:])
	return s
}

func appendBlocks(dst []byte, blocks []Block) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(blocks)))
	last := int64(0)
	for _, b := range blocks {
		dst = binary.AppendUvarint(dst, uint64(b.Stored))
		dst = binary.LittleEndian.AppendUint32(dst, b.CRC)
		dst = binary.AppendUvarint(dst, uint64(b.Raw))
		dst = binary.AppendVarint(dst, b.First-last)
		dst = binary.AppendUvarint(dst, uint64(b.Last-b.First))
		last = b.Last
		dst = binary.AppendUvarint(dst, uint64(b.Records))
		for _, n := range b.Levels {
			dst = binary.AppendUvarint(dst, uint64(n))
		}
		dst = appendMinutes(dst, b)
	}
	return dst
}

func appendMinutes(dst []byte, b Block) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(b.Minutes)))
	last := minuteOf(b.First)
	for _, m := range b.Minutes {
		dst = binary.AppendUvarint(dst, uint64(m.Minute-last))
		last = m.Minute
		mask := len(dst)
		dst = append(dst, 0)
		for level, n := range m.Levels {
			if n > 0 {
				dst[mask] |= 1 << level
				dst = binary.AppendUvarint(dst, uint64(n))
			}
		}
	}
	return dst
}
