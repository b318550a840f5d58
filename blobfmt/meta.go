package blobfmt

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"blobtail/record"
)

const (
	// ContentType is the type of a decompressed blob.
	ContentType = "application/x-ndjson"
	// ContentEncoding is the compression of a blob.
	ContentEncoding = "zstd"
)

// formatVersion is the value of the metadata key "format".
const formatVersion = 1

// A BatchID is the random identity of a batch, and of the blob made from it.
type BatchID [16]byte

// String is the id as 32 hexadecimal digits, lower case.
func (b BatchID) String() string { return hex.EncodeToString(b[:]) }

// ParseBatchID is the strict inverse of [BatchID.String].
func ParseBatchID(s string) (BatchID, error) {
	var b BatchID
	if len(s) == hex.EncodedLen(len(b)) {
		if _, err := hex.Decode(b[:], []byte(s)); err == nil && b.String() == s {
			return b, nil
		}
	}
	return BatchID{}, fmt.Errorf("batch id %q: not 32 lower-case hexadecimal digits", s)
}

// Meta is the information in a blob's metadata. It is enough to plan a read.
type Meta struct {
	Batch       BatchID
	First, Last int64 // times of the first and the last record, unix ns
	Records     int64
	RawBytes    int64  // length of the uncompressed lines
	CRC         uint32 // CRC-32C of the uncompressed lines, the same at every compression level
	Levels      [record.NumLevels]int64
	Compacted   int // how many batches this blob replaces
}

// Keys of the metadata. Services restrict letters in some places and change their case in
// others. So keys are lower case without separators.
const (
	keyFormat    = "format"
	keyBatch     = "batch"
	keyFirst     = "firsttimestamp"
	keyLast      = "lasttimestamp"
	keyRecords   = "records"
	keyRawBytes  = "rawbytes"
	keyCRC       = "crc"
	keyLevels    = "levels"
	keyCompacted = "compacted"
)

// Map returns the metadata in their stored form.
func (m Meta) Map() map[string]string {
	levels := make([]string, len(m.Levels))
	for i, n := range m.Levels {
		levels[i] = strconv.FormatInt(n, 10)
	}
	stored := map[string]string{
		keyFormat:   strconv.Itoa(formatVersion),
		keyBatch:    m.Batch.String(),
		keyFirst:    string(record.AppendTime(nil, m.First)),
		keyLast:     string(record.AppendTime(nil, m.Last)),
		keyRecords:  strconv.FormatInt(m.Records, 10),
		keyRawBytes: strconv.FormatInt(m.RawBytes, 10),
		keyCRC:      fmt.Sprintf("%08x", m.CRC),
		keyLevels:   strings.Join(levels, "."),
	}
	if m.Compacted > 0 {
		stored[keyCompacted] = strconv.Itoa(m.Compacted)
	}
	return stored
}

// ParseMeta is the strict inverse of [Meta.Map]. It compares keys without case, since
// services change the case, and ignores unknown keys. The error is [ErrForeign] for an
// object that is not ours, and [ErrNewer] for a later format.
func ParseMeta(stored map[string]string) (Meta, error) {
	p := metaParser{values: make(map[string]string, len(stored))}
	for _, k := range slices.Sorted(maps.Keys(stored)) {
		p.values[strings.ToLower(k)] = stored[k]
	}
	format, hasFormat := p.values[keyFormat]
	if _, hasBatch := p.values[keyBatch]; !hasFormat || !hasBatch {
		return Meta{}, fmt.Errorf("metadata: %w", ErrForeign)
	}
	if n, err := strconv.ParseUint(format, 10, 32); err == nil && n > formatVersion {
		return Meta{}, fmt.Errorf("metadata: format %d: %w", n, ErrNewer)
	}
	m := p.meta()
	if p.err != nil {
		return Meta{}, p.err
	}
	// Every value must have the one form that Map returns.
	for k, v := range m.Map() {
		if p.values[k] != v {
			return Meta{}, metaError(k, p.values[k])
		}
	}
	return m, nil
}

// A metaParser reads values one by one and keeps the first error.
type metaParser struct {
	values map[string]string
	err    error
}

func (p *metaParser) meta() Meta {
	var m Meta
	m.Batch, _ = ParseBatchID(p.values[keyBatch]) // the comparison in ParseMeta detects a malformed id
	m.First, m.Last = p.time(keyFirst), p.time(keyLast)
	m.Records, m.RawBytes = p.count(keyRecords), p.count(keyRawBytes)
	crc, _ := strconv.ParseUint(p.values[keyCRC], 16, 32)
	m.CRC = uint32(crc)
	if _, ok := p.values[keyCompacted]; ok {
		m.Compacted = int(min(p.count(keyCompacted), 1<<31-1))
	}
	levels := strings.Split(p.values[keyLevels], ".")
	left := m.Records
	for i := range m.Levels {
		if i < len(levels) {
			m.Levels[i], _ = strconv.ParseInt(levels[i], 10, 64)
		}
		if m.Levels[i] < 0 || m.Levels[i] > left {
			p.fail(keyLevels)
			break
		}
		left -= m.Levels[i]
	}
	if left != 0 {
		p.fail(keyLevels)
	}
	if m.Last < m.First {
		p.fail(keyLast)
	}
	return m
}

func (p *metaParser) time(key string) int64 {
	ns, ok := record.ParseCanonicalTime([]byte(p.values[key]))
	if !ok {
		p.fail(key)
	}
	return ns
}

// count reads a number that is at least 1.
func (p *metaParser) count(key string) int64 {
	n, err := strconv.ParseInt(p.values[key], 10, 64)
	if err != nil || n < 1 {
		p.fail(key)
	}
	return n
}

func (p *metaParser) fail(key string) {
	if p.err == nil {
		p.err = metaError(key, p.values[key])
	}
}

func metaError(key, value string) error {
	return fmt.Errorf("metadata: %s %q is not valid", key, value)
}
