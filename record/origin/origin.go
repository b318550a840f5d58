// Package origin makes the origins of requests: from a key, a body, a place in the log or a
// place in a stream. Only ingesters do that. It is apart from package record because its
// hash would cost each start of a reader a twentieth of its time.
package origin

import (
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/zeebo/xxh3"

	"blobtail/record"
)

// KeyTime returns the time in an idempotency key that is a UUIDv7 (with or
// without its dashes) or a ULID, in Unix milliseconds.
func KeyTime(key string) (ms int64, ok bool) {
	switch len(key) {
	case 26:
		return ulidTime(key)
	case 36:
		if key[8] != '-' || key[13] != '-' || key[18] != '-' || key[23] != '-' {
			return 0, false
		}
		return uuidTime(key[:8] + key[9:13] + key[14:18] + key[19:23] + key[24:])
	case 32:
		return uuidTime(key)
	}
	return 0, false
}

// uuidTime parses the 32 hex digits of a UUID.
func uuidTime(digits string) (ms int64, ok bool) {
	id, err := hex.DecodeString(digits)
	if err != nil || id[6]>>4 != 7 || id[8]>>6 != 2 {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(id) >> 16), true
}

// ulidTime parses the 26 digits, in Crockford's base 32, of a ULID.
func ulidTime(key string) (ms int64, ok bool) {
	const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	// Six zeros make whole bytes of it: 160 bits; the last 128 are the ULID.
	id, err := base32.NewEncoding(digits).DecodeString("000000" + strings.ToUpper(key))
	if err != nil || len(id) != 20 || id[3] != 0 {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(id[2:]) & (1<<48 - 1)), true
}

// OfKey is the origin of a request with an idempotency key. Its time is the
// key's. If the key has none, it is that of the earliest record with its own time
// (Unix nanoseconds), if there is one. The last 10 bytes depend on client, key and
// part alone. Client is the client's id, never its token. Part counts the parts of a
// long body.
func OfKey(client, key string, part int, earliest int64, hasEarliest bool) record.Origin {
	ms, ok := KeyTime(key)
	if !ok && hasEarliest {
		ms = millis(earliest)
	}
	var buf [256]byte
	b := append(buf[:0], client...)
	b = append(b, 0)
	b = append(b, key...)
	b = appendPart(b, part)
	return hashOrigin(ms, xxh3.Hash128(b))
}

// OfBody is the origin of a request without a key if all its records have their
// own times: a shipper that sends the body again sends the same records. The first of
// the times is earliest (Unix nanoseconds). Sender is the address that the body came
// from, without a port, since two hosts may have equal events.
func OfBody(sender, path string, part int, body []byte, earliest int64) record.Origin {
	var buf [256]byte
	b := append(buf[:0], sender...)
	b = append(b, 0)
	b = append(b, path...)
	b = append(b, 0)
	h := xxh3.New128()
	// Writing to a hash never fails.
	_, _ = h.Write(b)
	_, _ = h.Write(body)
	_, _ = h.Write(appendPart(b[:0], part))
	return hashOrigin(millis(earliest), h.Sum128())
}

// OfLog is the origin of a request that has no better one: its place in a log.
// The segment of the log was created at createdMs and has these random bits. Offset
// counts bytes in the segment; its low 40 bits are used.
func OfLog(createdMs int64, random [5]byte, offset uint64) record.Origin {
	o := timeOrigin(createdMs)
	copy(o[6:11], random[:])
	var be [8]byte
	binary.BigEndian.PutUint64(be[:], offset)
	copy(o[11:], be[3:])
	return o
}

// OfStream is the origin of a message of a JetStream stream. The time is the
// creation of the stream: a recreated stream counts from 1 again.
func OfStream(created time.Time, stream string, seq uint64) record.Origin {
	o := timeOrigin(created.UnixMilli())
	binary.BigEndian.PutUint16(o[6:], uint16(xxh3.HashString(stream)>>48))
	binary.BigEndian.PutUint64(o[8:], seq)
	return o
}

// appendPart appends nothing for the first part, so that a body that was never cut
// and the first part of one have the same rule.
func appendPart(b []byte, part int) []byte {
	if part <= 0 {
		return b
	}
	b = append(b, "\x00part"...)
	return strconv.AppendInt(b, int64(part), 10)
}

func hashOrigin(ms int64, h xxh3.Uint128) record.Origin {
	o := timeOrigin(ms)
	sum := h.Bytes()
	copy(o[6:], sum[:])
	return o
}

// timeOrigin sets the first 48 bits, and clamps a time that does not fit.
func timeOrigin(ms int64) (o record.Origin) {
	ms = min(max(ms, 0), 1<<48-1)
	binary.BigEndian.PutUint64(o[:], uint64(ms)<<16)
	return o
}

// millis rounds down.
func millis(ns int64) int64 {
	ms := ns / 1e6
	if ns%1e6 < 0 {
		ms--
	}
	return ms
}
