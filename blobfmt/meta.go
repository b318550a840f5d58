package blobfmt

import (
	"crypto/sha256"
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

// The values of the metadata key "format": that of most blobs, and that of erased ones. A reader of the
// former alone would show what an erased blob replaces.
const (
	formatVersion = 1
	erasedVersion = 2
)

// A BatchID is the random identity of a batch, and of the blob made from it.
type BatchID [16]byte

// String is the id as 32 hexadecimal digits, lower case.
func (b BatchID) String() string { return hex.EncodeToString(b[:]) }

// MarshalText implements encoding.TextMarshaler by [BatchID.String].
func (b BatchID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, b[:]), nil }

// UnmarshalText is the inverse of [BatchID.MarshalText].
func (b *BatchID) UnmarshalText(text []byte) error {
	id, err := hex.DecodeString(string(text))
	if err == nil && (len(id) != len(b) || copy(b[:], id) != len(b)) {
		err = fmt.Errorf("%q is no batch id", text)
	}
	return err
}

// Meta is the information in a blob's metadata. It is enough to plan a read.
type Meta struct {
	Batch       BatchID
	First, Last int64 // times of the first and the last record, unix ns
	Records     int64
	RawBytes    int64  // length of the uncompressed lines
	CRC         uint32 // CRC-32C of the uncompressed lines, the same at every compression level
	// SHA256 is the hash of the blob's bytes as they are stored; zero: blobs of earlier versions have none.
	SHA256 [sha256.Size]byte
	// Place is [Name.Place] of the name that the blob was stored under; zero: blobs of earlier versions have none.
	Place     [8]byte
	Levels    [record.NumLevels]int64
	Compacted int // how many batches this blob replaces
	// Erased says that the blob, or one that it replaces, lacks records of the batches that it replaces.
	// Such a blob may have no records. Its First and Last are times of its hour then.
	Erased bool
	// Gone has, of a blob that was made to erase records, their number, a dot, and the SHA-256 of the
	// expression that they match.
	Gone string
	IDs  IDs // by which a search rules out blocks before it reads the index
}

// add adds the next block's records.
func (m *Meta) add(b *Block) {
	if m.Records == 0 {
		m.First = b.First
	}
	m.Last = b.Last
	m.Records += int64(b.Records)
	m.RawBytes += b.Raw
	for l, n := range b.Levels {
		m.Levels[l] += int64(n)
	}
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
	keySHA256    = "sha"
	keyPlace     = "place"
	keyLevels    = "levels"
	keyCompacted = "compacted"
	keyErased    = "erased"
	keyGone      = "gone"
	keyFilters   = "filters"
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
	if m.SHA256 != [sha256.Size]byte{} {
		stored[keySHA256] = hex.EncodeToString(m.SHA256[:])
	}
	if m.Place != [8]byte{} {
		stored[keyPlace] = hex.EncodeToString(m.Place[:])
	}
	if m.Erased {
		stored[keyFormat], stored[keyErased] = strconv.Itoa(erasedVersion), strconv.Itoa(m.Compacted)
	} else if m.Compacted > 0 {
		stored[keyCompacted] = strconv.Itoa(m.Compacted)
	}
	if m.Gone != "" {
		stored[keyGone] = m.Gone
	}
	if m.IDs.Buckets > 0 {
		stored[keyFilters] = m.IDs.String()
	}
	return stored
}

// ParseMeta is the strict inverse of [Meta.Map]. It compares keys without case, since
// services change the case, and ignores unknown keys. The error is [ErrForeign] for an
// object that is not ours, and [ErrNewer] for a later format.
func ParseMeta(stored map[string]string) (Meta, error) {
	values := lowered(stored)
	format, hasFormat := values[keyFormat]
	if _, hasBatch := values[keyBatch]; !hasFormat || !hasBatch {
		return Meta{}, fmt.Errorf("metadata: %w", ErrForeign)
	}
	if n, err := strconv.ParseUint(format, 10, 32); err == nil && n > erasedVersion {
		return Meta{}, fmt.Errorf("metadata: format %d: %w", n, ErrNewer)
	}
	m, bad := parseValues(values)
	if bad == "" {
		// Every value must have the one form that Map returns. This detects all values
		// that parseValues could not parse.
		for k, v := range m.Map() {
			if values[k] != v && (bad == "" || k < bad) {
				bad = k
			}
		}
	}
	if bad != "" {
		return Meta{}, fmt.Errorf("metadata: %s %q is not valid", bad, values[bad])
	}
	return m, nil
}

// lowered are metadata with their names in lower case: the same map if they are.
func lowered(stored map[string]string) map[string]string {
	other := false
	for k := range stored {
		other = other || strings.ToLower(k) != k
	}
	if !other {
		return stored
	}
	values := make(map[string]string, len(stored))
	for _, k := range slices.Sorted(maps.Keys(stored)) {
		values[strings.ToLower(k)] = stored[k]
	}
	return values
}

// parseValues returns the key of a value that contradicts the others, or is out of range.
func parseValues(values map[string]string) (m Meta, bad string) {
	number := func(text string, bits int) int64 {
		n, _ := strconv.ParseInt(text, 10, bits)
		return n
	}
	id, _ := hex.DecodeString(values[keyBatch])
	copy(m.Batch[:], id)
	m.First, _ = record.ParseCanonicalTime([]byte(values[keyFirst]))
	m.Last, _ = record.ParseCanonicalTime([]byte(values[keyLast]))
	m.Records, m.RawBytes = number(values[keyRecords], 64), number(values[keyRawBytes], 64)
	crc, _ := strconv.ParseUint(values[keyCRC], 16, 32)
	m.CRC = uint32(crc)
	hash, hashed := values[keySHA256]
	sum, _ := hex.DecodeString(hash)
	copy(m.SHA256[:], sum)
	at, placed := values[keyPlace]
	place, _ := hex.DecodeString(at)
	copy(m.Place[:], place)
	compacted, isCompacted := values[keyCompacted]
	if erased, ok := values[keyErased]; ok {
		compacted, isCompacted, m.Erased = erased, true, true
	}
	m.Compacted, m.Gone = int(number(compacted, 32)), values[keyGone]
	m.IDs = parseIDs(values[keyFilters])
	empty := m.Erased && m.Records == 0
	if m.Records < 1 && !empty {
		return m, keyRecords
	}
	left := m.Records
	for i, text := range strings.SplitN(values[keyLevels], ".", len(m.Levels)) {
		n := number(text, 64)
		if n < 0 || n > left {
			return m, keyLevels
		}
		m.Levels[i] = n
		left -= n
	}
	switch {
	case m.RawBytes < 1 && !empty, empty && m.RawBytes != 0:
		return m, keyRawBytes
	case isCompacted && m.Compacted < 1:
		return m, keyCompacted
	case hashed && m.SHA256 == [sha256.Size]byte{}:
		return m, keySHA256
	case placed && m.Place == [8]byte{}:
		return m, keyPlace
	case left != 0:
		return m, keyLevels
	case m.Last < m.First:
		return m, keyLast
	}
	return m, ""
}
