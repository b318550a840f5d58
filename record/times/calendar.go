package times

import (
	"encoding/binary"
	"math"
)

// Masks for checking eight bytes at once.
const lowBits = 0x0101010101010101

// Join makes nanoseconds of seconds and 0 to 999,999,999 more nanoseconds.
func Join(sec, nano int64) (ns int64, ok bool) {
	const last, lastNano = math.MaxInt64 / second, math.MaxInt64 % second
	if sec < 0 {
		// Counted down from the next second, since the first of the range is not whole.
		sec, nano = sec+1, nano-second
		return sec*second + nano, sec > -last || sec == -last && nano >= -lastNano-1
	}
	return sec*second + nano, sec < last || sec == last && nano <= lastNano
}

// Day parses the date 2026-11-20 at the start of b, as seconds.
func Day(b []byte) (sec int64, ok bool) {
	const dashes = uint64(0xff)<<32 | uint64(0xff)<<56
	x := binary.LittleEndian.Uint64(b)
	d := two(b, 8)
	// A dash with these bits flipped is a 0.
	v, ok := Pairs(x ^ dashes&(0x1d*lowBits))
	if !ok || x&dashes != '-'*lowBits&dashes || d > 99 {
		return 0, false
	}
	y, mo := uint(v&0xff)*100+uint(v>>16&0xff), uint(v>>40&0xff)
	if mo < 1 || mo > 12 || d < 1 || d > 28 && int64(d) > daysFromCivil(y, mo+1, 1)-daysFromCivil(y, mo, 1) {
		return 0, false
	}
	return daysFromCivil(y, mo, d) * daySec, true
}

// Pairs parses eight digits at once: byte i of v is the number of the digits i and
// i+1.
func Pairs(x uint64) (v uint64, ok bool) {
	const high = 0xf0 * lowBits
	if x&high != '0'*lowBits || (x+6*lowBits)&high != '0'*lowBits {
		return 0, false
	}
	x -= '0' * lowBits
	return x*10 + x>>8, true
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

// monthDays is the number of days of a month; 0: there is no such month.
func monthDays(y, m uint) int64 {
	if m < 1 || m > 12 {
		return 0
	}
	return daysFromCivil(y, m+1, 1) - daysFromCivil(y, m, 1)
}

// month returns the number of the month that begins with three letters in lower case, and its
// name; 0 for others.
func month(letters uint32) (n int, whole string) {
	switch letters {
	case 'j'<<16 | 'a'<<8 | 'n':
		return 1, "january"
	case 'f'<<16 | 'e'<<8 | 'b':
		return 2, "february"
	case 'm'<<16 | 'a'<<8 | 'r':
		return 3, "march"
	case 'a'<<16 | 'p'<<8 | 'r':
		return 4, "april"
	case 'm'<<16 | 'a'<<8 | 'y':
		return 5, "may"
	case 'j'<<16 | 'u'<<8 | 'n':
		return 6, "june"
	case 'j'<<16 | 'u'<<8 | 'l':
		return 7, "july"
	case 'a'<<16 | 'u'<<8 | 'g':
		return 8, "august"
	case 's'<<16 | 'e'<<8 | 'p':
		return 9, "september"
	case 'o'<<16 | 'c'<<8 | 't':
		return 10, "october"
	case 'n'<<16 | 'o'<<8 | 'v':
		return 11, "november"
	case 'd'<<16 | 'e'<<8 | 'c':
		return 12, "december"
	}
	return 0, ""
}

// weekday is month for the days of the week.
func weekday(letters uint32) (n int, whole string) {
	switch letters {
	case 'm'<<16 | 'o'<<8 | 'n':
		return 1, "monday"
	case 't'<<16 | 'u'<<8 | 'e':
		return 2, "tuesday"
	case 'w'<<16 | 'e'<<8 | 'd':
		return 3, "wednesday"
	case 't'<<16 | 'h'<<8 | 'u':
		return 4, "thursday"
	case 'f'<<16 | 'r'<<8 | 'i':
		return 5, "friday"
	case 's'<<16 | 'a'<<8 | 't':
		return 6, "saturday"
	case 's'<<16 | 'u'<<8 | 'n':
		return 7, "sunday"
	}
	return 0, ""
}
