package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strconv"
	"time"
)

// canonicalLen is the length of a canonical time.
const canonicalLen = len("2026-11-20T15:04:05.000000000Z")

const (
	second = 1_000_000_000
	daySec = 86400
)

// ParseTime parses the text of a time, in any of these forms, as Unix
// nanoseconds:
//
//   - RFC 3339 and its variants: "T", "t" or a space between date and time; the
//     seconds may be missing; any number of digits after a point or a comma, of
//     which nine count; "Z", "z", an offset (+01:00, -0730, +05) or nothing, which
//     means UTC; second 60 is the next second;
//   - a date, which is its midnight UTC;
//   - a number, Unix time in seconds below 1e11, milliseconds below 1e14,
//     microseconds below 1e17, else nanoseconds, with fraction and exponent.
//     Fractions of a nanosecond are rounded down.
//
// ok is false for any other text, for a day that does not exist, and outside the years
// that fit (1677 to 2262).
func ParseTime(s []byte) (ns int64, ok bool) {
	if len(s) >= 10 && s[4] == '-' {
		return parseDateTime(s)
	}
	return parseNumber(s)
}

// parseDateTime parses a date with or without a time.
func parseDateTime(s []byte) (ns int64, ok bool) {
	sec, ok := parseDay(s)
	if !ok {
		return 0, false
	}
	if len(s) == 10 {
		return join(sec, 0)
	}
	if c := s[10]; c != 'T' && c != 't' && c != ' ' {
		return 0, false
	}
	sod, nano, ok := parseClock(s[11:])
	if !ok {
		return 0, false
	}
	return join(sec+sod, nano)
}

// parseClock parses the time of day with its zone, as seconds from midnight UTC.
func parseClock(s []byte) (sec, nano int64, ok bool) {
	if len(s) < 5 || s[2] != ':' {
		return 0, 0, false
	}
	h, m := two(s, 0), two(s, 3)
	if h > 23 || m > 59 {
		return 0, 0, false
	}
	sec = int64(h)*3600 + int64(m)*60
	s = s[5:]
	if len(s) >= 3 && s[0] == ':' {
		x := two(s, 1)
		if x > 60 {
			return 0, 0, false
		}
		sec += int64(x)
		s = s[3:]
		if len(s) > 0 && (s[0] == '.' || s[0] == ',') {
			n := 1
			for scale := int64(second / 10); n < len(s) && isDigit(s[n]); n++ {
				nano += int64(s[n]-'0') * scale
				scale /= 10
			}
			if n == 1 {
				return 0, 0, false
			}
			s = s[n:]
		}
	}
	off, ok := parseZone(s)
	return sec - off, nano, ok
}

// parseZone parses the rest after the time of day, as seconds east of UTC.
func parseZone(s []byte) (sec int64, ok bool) {
	if len(s) == 0 || len(s) == 1 && s[0]|0x20 == 'z' {
		return 0, true
	}
	if s[0] != '+' && s[0] != '-' {
		return 0, false
	}
	var h, m uint
	switch {
	case len(s) == 3:
		h = two(s, 1)
	case len(s) == 5:
		h, m = two(s, 1), two(s, 3)
	case len(s) == 6 && s[3] == ':':
		h, m = two(s, 1), two(s, 4)
	default:
		return 0, false
	}
	if h > 23 || m > 59 {
		return 0, false
	}
	sec = int64(h)*3600 + int64(m)*60
	if s[0] == '-' {
		sec = -sec
	}
	return sec, true
}

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

// join makes nanoseconds of seconds and 0 to 999,999,999 more nanoseconds.
func join(sec, nano int64) (ns int64, ok bool) {
	const last, lastNano = math.MaxInt64 / second, math.MaxInt64 % second
	if sec < 0 {
		// Counted down from the next second, since the first of the range is not whole.
		sec, nano = sec+1, nano-second
		return sec*second + nano, sec > -last || sec == -last && nano >= -lastNano-1
	}
	return sec*second + nano, sec < last || sec == last && nano <= lastNano
}

// parseNumber parses a Unix time. All arithmetic is on the digits: a float64 has no
// room for nanoseconds.
func parseNumber(s []byte) (ns int64, ok bool) {
	s, neg := bytes.CutPrefix(s, []byte("-"))
	whole := s[:digits(s)]
	fraction, hasFraction := bytes.CutPrefix(s[len(whole):], []byte("."))
	s, fraction = fraction, fraction[:0]
	if hasFraction {
		fraction = s[:digits(s)]
		s = s[len(fraction):]
	}
	exp, ok := parseExponent(s)
	if !ok || len(whole) == 0 || hasFraction && len(fraction) == 0 {
		return 0, false
	}
	var buf [64]byte
	all := append(append(buf[:0], whole...), fraction...)
	num := bytes.TrimLeft(all, "0")
	if len(num) == 0 {
		return 0, true
	}
	point := len(whole) - (len(all) - len(num)) + exp // digits before it, or minus the zeros after it
	n := point + unitDigits(point)
	if n > 19 {
		return 0, false
	}
	var v uint64
	used := min(max(n, 0), len(num))
	for _, c := range num[:used] {
		v = v*10 + uint64(c-'0')
	}
	for range n - used {
		v *= 10
	}
	if !neg {
		return int64(v), v <= math.MaxInt64
	}
	if len(bytes.TrimLeft(num[used:], "0")) > 0 {
		v++
	}
	return -int64(v), v <= 1<<63
}

// unitDigits is how many digits have to be appended to get nanoseconds, for a number
// with that many digits before its point. It decides on seconds, milliseconds, ...
func unitDigits(point int) int {
	switch {
	case point <= 11:
		return 9
	case point <= 14:
		return 6
	case point <= 17:
		return 3
	}
	return 0
}

// parseExponent parses the rest of a number. The exponent is clamped to ±2^30: a number
// with a larger one is out of range or zero anyway.
func parseExponent(s []byte) (exp int, ok bool) {
	if len(s) == 0 {
		return 0, true
	}
	exp, err := strconv.Atoi(string(s[1:]))
	return min(max(exp, -1<<30), 1<<30), s[0]|0x20 == 'e' && (err == nil || errors.Is(err, strconv.ErrRange))
}

// digits counts the digits at the start of s.
func digits(s []byte) int {
	for i, c := range s {
		if !isDigit(c) {
			return i
		}
	}
	return len(s)
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
	return c.parseCanonical(b)
}

// parseDay parses the date at the start of b, as seconds.
func parseDay(b []byte) (sec int64, ok bool) {
	const dashes = uint64(0xff)<<32 | uint64(0xff)<<56
	x := binary.LittleEndian.Uint64(b)
	d := two(b, 8)
	// A dash with these bits flipped is a 0.
	v, ok := pairs(x ^ dashes&(0x1d*lowBits))
	if !ok || x&dashes != '-'*lowBits&dashes || d > 99 {
		return 0, false
	}
	y, mo := uint(v&0xff)*100+uint(v>>16&0xff), uint(v>>40&0xff)
	if mo < 1 || mo > 12 || d < 1 || d > 28 && int64(d) > daysFromCivil(y, mo+1, 1)-daysFromCivil(y, mo, 1) {
		return 0, false
	}
	return daysFromCivil(y, mo, d) * daySec, true
}

// parseTail parses the time of day of a canonical time. The caller has checked the
// fixed bytes, other than the colons.
func parseTail(day int64, b []byte) (ns int64, ok bool) {
	const colons = uint64(0xff)<<16 | uint64(0xff)<<40
	_ = b[canonicalLen-1]
	x := binary.LittleEndian.Uint64(b[11:])
	v, ok := pairs(x ^ colons&(0x0a*lowBits))
	h, m, s := v&0xff, v>>24&0xff, v>>48&0xff
	if !ok || x&colons != ':'*lowBits&colons || h > 23 || m > 59 || s > 59 {
		return 0, false
	}
	f, ok := pairs(binary.LittleEndian.Uint64(b[20:]))
	last := uint64(b[28] - '0')
	if !ok || last > 9 {
		return 0, false
	}
	nano := (f&0xff)*10_000_000 + (f>>16&0xff)*100_000 + (f>>32&0xff)*1000 + (f>>48&0xff)*10 + last
	return join(day+int64(h*3600+m*60+s), int64(nano))
}

// pairs parses eight digits at once: byte i of v is the number of the digits i and
// i+1.
func pairs(x uint64) (v uint64, ok bool) {
	const high = 0xf0 * lowBits
	if x&high != '0'*lowBits || (x+6*lowBits)&high != '0'*lowBits {
		return 0, false
	}
	x -= '0' * lowBits
	return x*10 + x>>8, true
}

// A DayCache parses times and keeps the last date: nearly all records of a request or
// blob are of one day. The zero value is ready for use.
type DayCache struct {
	head uint64 // "2026-11-"
	tail uint16 // "20"
	sec  int64
}

// Parse is [ParseTime]. canonical is set when s is the canonical form of its time, so
// that it can be copied.
func (c *DayCache) Parse(s []byte) (ns int64, canonical, ok bool) {
	if ns, ok = c.parseCanonical(s); ok {
		return ns, true, true
	}
	ns, ok = ParseTime(s)
	return ns, false, ok
}

func (c *DayCache) parseCanonical(s []byte) (ns int64, ok bool) {
	if len(s) != canonicalLen || s[10] != 'T' || s[19] != '.' || s[29] != 'Z' {
		return 0, false
	}
	head, tail := binary.LittleEndian.Uint64(s), binary.LittleEndian.Uint16(s[8:])
	if head == 0 || head != c.head || tail != c.tail { // a date of zero bytes is in the zero cache
		sec, ok := parseDay(s)
		if !ok {
			return 0, false
		}
		*c = DayCache{head, tail, sec}
	}
	return parseTail(c.sec, s)
}

// daysFromCivil counts the days from 1970-01-01, three times as fast as time.Date. Years
// start in March, so that the leap day is the last. Month 13 is the next January.
func daysFromCivil(y, m, d uint) int64 {
	const before = 306 + 719163 + 146097 // the first is for the months, the last for 400 years
	if m < 3 {
		y, m = y-1, m+12
	}
	y += 400 // so that year 0 has one before it
	return int64(365*y+y/4-y/100+y/400+(153*m-457)/5+d) - before
}

// two parses two digits; more than 99 means that they are invalid.
func two(s []byte, i int) uint {
	hi, lo := uint(s[i]-'0'), uint(s[i+1]-'0')
	if hi > 9 || lo > 9 {
		return 1 << 16
	}
	return hi*10 + lo
}

func put2(b []byte, v uint) {
	const pairs = "00010203040506070809" + "10111213141516171819" + "20212223242526272829" +
		"30313233343536373839" + "40414243444546474849" + "50515253545556575859" +
		"60616263646566676869" + "70717273747576777879" + "80818283848586878889" +
		"90919293949596979899"
	b[0], b[1] = pairs[v*2], pairs[v*2+1]
}

func isDigit(c byte) bool { return c-'0' <= 9 }
