package record

import (
	"encoding/binary"
	"math"
	"time"

	"blobtail/record/times"
)

// canonicalLen is the length of a canonical time.
const canonicalLen = len("2026-11-20T15:04:05.000000000Z")

const (
	second = 1_000_000_000
	daySec = 86400
)

// MaxAhead is how far the time of a record may be ahead of its arrival.
const MaxAhead = 24 * time.Hour

// ClampTime is t in Unix nanoseconds, or the nearest int64 for a time beyond the
// years 1678 to 2261.
func ClampTime(t time.Time) int64 {
	switch {
	case t.Before(time.Unix(0, math.MinInt64)):
		return math.MinInt64
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	}
	return t.UnixNano()
}

// AppendTime appends the canonical form of a time, which is always 30 bytes:
// "2026-11-20T15:04:05.000000000Z".
func AppendTime(dst []byte, ns int64) []byte {
	t := time.Unix(0, ns).UTC()
	year, month, day := t.Date()
	hour, minute, sec := t.Clock()
	b := [canonicalLen]byte{4: '-', 7: '-', 10: 'T', 13: ':', 16: ':', 19: '.', 29: 'Z'}
	put2(b[0:], uint(year)/100)
	put2(b[2:], uint(year)%100)
	put2(b[5:], uint(month))
	put2(b[8:], uint(day))
	putClock(b[:], uint(hour*3600+minute*60+sec), uint(t.Nanosecond()))
	return append(dst, b[:]...)
}

// putClock writes the time of day into a canonical time: seconds and nanoseconds.
func putClock(b []byte, sec, nano uint) {
	put2(b[11:], sec/3600)
	put2(b[14:], sec/60%60)
	put2(b[17:], sec%60)
	put2(b[20:], nano/10_000_000)
	put2(b[22:], nano/100_000%100)
	put2(b[24:], nano/1000%100)
	put2(b[26:], nano/10%100)
	b[28] = byte('0' + nano%10)
}

// ParseCanonicalTime is the inverse of [AppendTime], and accepts no other form.
func ParseCanonicalTime(b []byte) (ns int64, ok bool) {
	var c DayCache
	return c.Parse(b)
}

// parseTail parses the time of day of a canonical time. The caller has checked the
// fixed bytes, other than the colons.
func parseTail(day int64, b []byte) (ns int64, ok bool) {
	const colons = uint64(0xff)<<16 | uint64(0xff)<<40
	_ = b[canonicalLen-1]
	x := binary.LittleEndian.Uint64(b[11:])
	v, ok := times.Pairs(x ^ colons&(0x0a*lowBits))
	h, m, s := v&0xff, v>>24&0xff, v>>48&0xff
	if !ok || x&colons != ':'*lowBits&colons || h > 23 || m > 59 || s > 59 {
		return 0, false
	}
	f, ok := times.Pairs(binary.LittleEndian.Uint64(b[20:]))
	last := uint64(b[28] - '0')
	if !ok || last > 9 {
		return 0, false
	}
	nano := (f&0xff)*10_000_000 + (f>>16&0xff)*100_000 + (f>>32&0xff)*1000 + (f>>48&0xff)*10 + last
	return times.Join(day+int64(h*3600+m*60+s), int64(nano))
}

// A DayCache parses times and keeps the last date: nearly all records of a request or
// blob are of one day. The zero value is ready for use.
type DayCache struct {
	head uint64 // "2026-11-"
	tail uint16 // "20"
	sec  int64
}

// Parse is [ParseCanonicalTime].
func (c *DayCache) Parse(s []byte) (ns int64, ok bool) {
	if len(s) != canonicalLen || s[10] != 'T' || s[19] != '.' || s[29] != 'Z' {
		return 0, false
	}
	head, tail := binary.LittleEndian.Uint64(s), binary.LittleEndian.Uint16(s[8:])
	if head == 0 || head != c.head || tail != c.tail { // a date of zero bytes is in the zero cache
		sec, ok := times.Day(s)
		if !ok {
			return 0, false
		}
		*c = DayCache{head, tail, sec}
	}
	return parseTail(c.sec, s)
}

func put2(b []byte, v uint) {
	const pairs = "00010203040506070809" + "10111213141516171819" + "20212223242526272829" +
		"30313233343536373839" + "40414243444546474849" + "50515253545556575859" +
		"60616263646566676869" + "70717273747576777879" + "80818283848586878889" +
		"90919293949596979899"
	b[0], b[1] = pairs[v*2], pairs[v*2+1]
}

// IsDigit reports whether a byte is a digit.
func IsDigit(c byte) bool { return c-'0' <= 9 }
