package origin_test

import (
	"bytes"
	"testing"
	"time"

	"blobtail/record"
	"blobtail/record/origin"
	"github.com/zeebo/xxh3"
)

const (
	uuid7   = "01937b6c-4d5e-7abc-8def-0123456789ab" // 01937b6c4d5e hex
	uuid7Ms = 0x01937b6c4d5e
	ulid    = "01ARYZ6S41TSV4RRFFQ69G5FAV" // the example of its specification
	ulidMs  = 1469918176385
)

func TestKeyTime(t *testing.T) {
	for _, row := range []struct {
		key string
		ms  int64
		ok  bool
	}{
		{uuid7, uuid7Ms, true},
		{"01937B6C-4D5E-7ABC-8DEF-0123456789AB", uuid7Ms, true},
		{"01937b6c4d5e7abc8def0123456789ab", uuid7Ms, true},
		{ulid, ulidMs, true},
		{"01aryz6s41tsv4rrffq69g5fav", ulidMs, true},
		{"7ZZZZZZZZZZZZZZZZZZZZZZZZZ", 1<<48 - 1, true},
		{"8ZZZZZZZZZZZZZZZZZZZZZZZZZ", 0, false},           // more than 128 bits
		{"01ARYZ6S41TSV4RRFFQ69G5FAU", 0, false},           // no U in the alphabet
		{"01937b6c-4d5e-4abc-8def-0123456789ab", 0, false}, // version 4
		{"01937b6c-4d5e-7abc-cdef-0123456789ab", 0, false}, // another variant
		{"01937b6c-4d5e-7abc-8def-0123456789ag", 0, false},
		{"01937b6c04d5e07abc08def00123456789ab", 0, false},
		{"", 0, false},
		{"order-17", 0, false},
	} {
		if ms, ok := origin.KeyTime(row.key); ms != row.ms || ok != row.ok {
			t.Errorf("KeyTime(%q) = %d, %v; want %d, %v", row.key, ms, ok, row.ms, row.ok)
		}
	}
}

// expected builds an expected origin from its two halves.
func expected(ms uint64, rest []byte) (o record.Origin) {
	for i := range 6 {
		o[i] = byte(ms >> (40 - 8*i))
	}
	copy(o[6:], rest)
	return o
}

func hash80(s string) []byte {
	h := xxh3.Hash128([]byte(s)).Bytes()
	return h[:10]
}

func TestOrigins(t *testing.T) {
	const ms = 1795187045123
	ns := int64(ms*1e6 + 999999)
	body := bytes.Repeat([]byte("body"), 1000)
	created := time.UnixMilli(ms)
	for _, row := range []struct {
		name      string
		got, want record.Origin
	}{
		{"key with a time", origin.OfKey("c", uuid7, 0, ns, true), expected(uuid7Ms, hash80("c\x00"+uuid7))},
		{"key and the earliest record", origin.OfKey("c", "k", 0, ns, true), expected(ms, hash80("c\x00k"))},
		{"key alone", origin.OfKey("c", "k", 0, ns, false), expected(0, hash80("c\x00k"))},
		{"key, second part", origin.OfKey("c", "k", 1, ns, true), expected(ms, hash80("c\x00k\x00part1"))},
		{"body", origin.OfBody("c", "/ingest", 0, body, ns), expected(ms, hash80("c\x00/ingest\x00"+string(body)))},
		{"body, twelfth part", origin.OfBody("c", "/ingest", 11, body, ns), expected(ms, hash80("c\x00/ingest\x00"+string(body)+"\x00part11"))},
		{"body before 1970", origin.OfBody("c", "/p", 0, nil, -1), expected(0, hash80("c\x00/p\x00"))},
		{"log", origin.OfLog(ms, [5]byte{1, 2, 3, 4, 5}, 0x060708090a), expected(ms, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})},
		{"log before 1970", origin.OfLog(-5, [5]byte{}, 1), expected(0, []byte{9: 1})},
		{"stream", origin.OfStream(created, "LOGS", 258), expected(ms, append(streamHash("LOGS"), 0, 0, 0, 0, 0, 0, 1, 2))},
	} {
		if row.got != row.want {
			t.Errorf("%s: %s, want %s", row.name, row.got, row.want)
		}
	}
	if !(record.Origin{}).IsZero() || origin.OfLog(ms, [5]byte{}, 0).IsZero() {
		t.Error("IsZero is wrong")
	}
	if s := (record.Origin{0: 0xab, 15: 1}).String(); s != "ab000000000000000000000000000001" {
		t.Errorf("String = %s", s)
	}
}

func streamHash(name string) []byte {
	h := xxh3.HashString(name)
	return []byte{byte(h >> 56), byte(h >> 48)}
}

// Keys that are alike only when joined have different origins.
func TestOriginsAreApart(t *testing.T) {
	seen := map[record.Origin]string{}
	for name, o := range map[string]record.Origin{
		"ab c":   origin.OfKey("ab", "c", 0, 0, false),
		"a bc":   origin.OfKey("a", "bc", 0, 0, false),
		"part 1": origin.OfKey("a", "bc", 1, 0, false),
		"part 2": origin.OfKey("a", "bc", 2, 0, false),
		"body":   origin.OfBody("a", "bc", 0, nil, 0),
		"path":   origin.OfBody("a", "b", 0, []byte("c"), 0),
	} {
		if other, ok := seen[o]; ok {
			t.Errorf("%s and %s have one origin", name, other)
		}
		seen[o] = name
	}
}
