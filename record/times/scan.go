package times

import (
	"bytes"
	"time"
)

// A scan goes through a text. Its methods for parts move at behind the part, or report false.
type scan struct {
	r     *Reader
	s     []byte
	at    int
	whole bool // the text has to be nothing but the time

	year       uint // 0: none
	month, day uint
	dated      bool
	sec, nano  int64 // of the day
	clocked    bool
	east       int64 // seconds east of UTC
	zoned      bool
	local      *time.Location // the zone, if it is one of a place
}

// peek is the byte at an offset from here, 0 at the end.
func (c *scan) peek(n int) byte {
	if c.at+n < len(c.s) {
		return c.s[c.at+n]
	}
	return 0
}

// time scans a date with its clock and zone.
func (c *scan) time() bool {
	switch b := c.peek(0); {
	case isDigit(b):
		return c.digits(false)
	case !isLetter(b):
		return false
	case isDigit(c.peek(1)):
		return c.klog()
	}
	week := c.word(weekday)
	if week > 0 {
		if c.peek(0) == ',' {
			c.at++
		}
		if !c.blanks() {
			return false
		}
		if isDigit(c.peek(0)) {
			return c.digits(true)
		}
	}
	return c.monthFirst()
}

// digits scans a time that begins with a digit, behind the day of the week.
func (c *scan) digits(week bool) bool {
	n := digits(c.s[c.at:])
	switch sep := c.peek(n); {
	case n == 4 && (sep == '.' || sep == ':') && c.peek(10) == '-':
		return c.dashed(sep)
	case n == 4 && (sep == '-' || sep == '/' || sep == '.') && c.peek(7) == sep:
		return c.isoDay(sep) && c.behindDate(false)
	case n == 4 && sep == '-' && isLetter(c.peek(5)):
		return c.monthSecond()
	case n == 4 && sep == ' ':
		c.year, _ = c.number(4)
		return c.blanks() && c.monthFirst()
	case n == 8 && (sep == 'T' || (sep == ' ' || sep == '-') && c.peek(11) == ':'):
		return c.basic()
	case n <= 2 && (sep == '/' || sep == '-' || sep == ' ') && isLetter(c.peek(n+1)):
		return c.dayFirst(n, sep, week)
	case n <= 2 && sep == '/' && c.r.MonthFirst:
		return c.dayOrMonth(n, sep)
	case n == 2 && isLetter(sep) && c.peek(9) == ' ':
		return c.dayFirst(n, 0, week)
	case n <= 2 && sep == '.':
		return c.dotted(n)
	case n == 2 && (sep == '-' && (c.peek(5) == ' ' || c.peek(5) == '|') || sep == '/' && c.peek(5) == '-') && digits(c.s[c.at+3:]) == 2:
		return c.monthDay(sep)
	case n == 2 && sep == '/' && c.peek(5) == '/' && c.peek(8) == ' ':
		return c.short(3)
	case n == 6 && sep == ' ':
		return c.short(2)
	case n <= 2 && (sep == '/' || sep == '-'):
		return c.dayOrMonth(n, sep)
	}
	return false
}

// isoDay scans 2026-11-20, 2026/11/20 or 2026.11.20.
func (c *scan) isoDay(sep byte) bool {
	var buf [10]byte
	if copy(buf[:], c.s[c.at:]) < len(buf) || sep != '/' && isDigit(c.peek(10)) {
		return false
	}
	buf[4], buf[7] = '-', '-'
	if _, ok := Day(buf[:]); !ok {
		return false
	}
	c.at += len(buf)
	c.year, c.month, c.day, c.dated = two(buf[:], 0)*100+two(buf[:], 2), two(buf[:], 5), two(buf[:], 8), true
	return true
}

// monthSecond scans 2026-Nov-20 15:04:05.
func (c *scan) monthSecond() bool {
	c.year, _ = c.number(4)
	c.at++
	if c.month = uint(c.word(month)); c.month == 0 || c.peek(0) != '-' || digits(c.s[c.at+1:]) != 2 {
		return false
	}
	c.at++
	c.day, _ = c.number(2)
	c.dated = true
	return c.behindDate(false)
}

// monthDay scans 11-20 15:04:05.123 of Android, 11-20|15:04:05.123 of go-ethereum and
// 11/20-15:04:05.123456 of Snort. It has three or six digits of a fraction, and no zone.
func (c *scan) monthDay(sep byte) bool {
	c.month, c.day, c.dated = two(c.s, c.at), two(c.s, c.at+3), true
	c.at += len("11-20 ")
	at := c.at
	if c.month < 1 || c.month > 12 || !c.clock() || isDigit(c.peek(0)) {
		return false
	}
	n := c.at - at - len("15:04:05")
	return n == len(".123456") || n == len(".123") && sep == '-' || n == 0 && c.r.MonthDay
}

// dashed scans 2026.11.20-15.04.05:123 of Unreal, and 2026:11:20-15:04:05 of Sophos.
func (c *scan) dashed(sep byte) bool {
	if c.peek(7) != sep || !c.isoDay(sep) {
		return false
	}
	if c.peek(3) != '.' || c.peek(6) != '.' || !isDigit(c.peek(8)) {
		return c.behindDate(false)
	}
	h, m, s := two(c.s, c.at+1), two(c.s, c.at+4), two(c.s, c.at+7)
	c.at += len("-15.04.05")
	return c.setClock(h, m, s) && c.fraction()
}

// dotted scans 20.11.2026 15:04:05. A date with dots begins with its day.
func (c *scan) dotted(n int) bool {
	day, month, ok := c.numericDate(n, '.')
	c.day, c.month = day, month
	return ok && month >= 1 && month <= 12 && c.behindDate(false)
}

// numericDate scans two numbers, the first of n digits, and a year, with sep between them.
func (c *scan) numericDate(n int, sep byte) (first, second uint, ok bool) {
	first, _ = c.number(n)
	c.at++
	n = digits(c.s[c.at:])
	if n < 1 || n > 2 || c.peek(n) != sep {
		return 0, 0, false
	}
	second, _ = c.number(n)
	c.at++
	if digits(c.s[c.at:]) != 4 {
		return 0, 0, false
	}
	c.year, _ = c.number(4)
	c.dated = true
	return first, second, true
}

// basic scans 20261120T150405, 20261120 15:04:05 and 20261120-15:04:05.
func (c *scan) basic() bool {
	c.date8()
	c.at++
	if c.peek(2) == ':' {
		return c.clock() && c.zone()
	}
	return c.basicClock()
}

// basicClock scans 150405 with a fraction and a zone.
func (c *scan) basicClock() bool {
	if digits(c.s[c.at:]) != 6 {
		return false
	}
	h, m, s := two(c.s, c.at), two(c.s, c.at+2), two(c.s, c.at+4)
	c.at += 6
	return c.setClock(h, m, s) && c.fraction() && c.zone()
}

// date8 scans 20261120.
func (c *scan) date8() {
	c.year = two(c.s, c.at)*100 + two(c.s, c.at+2)
	c.month, c.day, c.dated = two(c.s, c.at+4), two(c.s, c.at+6), true
	c.at += 8
}

// klog scans I1120 15:04:05.123456, and the forms with a year of two and of four digits.
func (c *scan) klog() bool {
	if bytes.IndexByte([]byte("IWEFDC"), c.peek(0)) < 0 {
		return false
	}
	c.at++
	switch digits(c.s[c.at:]) {
	case 4:
		c.month, c.day, c.dated = two(c.s, c.at), two(c.s, c.at+2), true
		c.at += 4
	case 6:
		c.year, c.month, c.day, c.dated = 2000+two(c.s, c.at), two(c.s, c.at+2), two(c.s, c.at+4), true
		c.at += 6
	case 8:
		c.date8()
	default:
		return false
	}
	return c.month >= 1 && c.month <= 12 && c.peek(0) == ' ' && c.behindDate(false)
}

// dayFirst scans 20/Nov/2026:15:04:05, 20-Nov-2026 15:04:05, 20 Nov 2026 15:04:05 and, with no sep,
// 20Nov2026 15:04:05, and years of two digits behind the day of the week.
func (c *scan) dayFirst(n int, sep byte, week bool) bool {
	c.day, _ = c.number(n)
	if sep != 0 {
		c.at++
	}
	if c.month = uint(c.word(month)); c.month == 0 || sep != 0 && c.peek(0) != sep {
		return false
	}
	if sep != 0 {
		c.at++
	}
	c.dated = true
	switch digits(c.s[c.at:]) {
	case 4:
		c.year, _ = c.number(4)
	case 2:
		if !week {
			return false
		}
		c.year, _ = c.number(2)
		c.year += 2000
	default:
		return false
	}
	return c.behindDate(sep == '/')
}

// dayOrMonth scans 20/11/2026 15:04:05 and 20-11-2026 15:04:05 with a day over 12, and 11/20/2026
// 3:04:05 PM of sources that write the month first. So does one that writes a comma behind such a
// day, as JavaScript does in the United States, or a dash: 11/20/2026-15:04:05 of Suricata,
// 11/20/2026 - 15:04:05 of the Source engine.
func (c *scan) dayOrMonth(n int, sep byte) bool {
	first, second, ok := c.numericDate(n, sep)
	dash := first <= 12 && (c.peek(0) == '-' || c.peek(1) == '-')
	switch c.month, c.day = first, second; {
	case sep == '/' && (c.r.MonthFirst || second > 12 && c.peek(0) == ',' || dash):
	case first > 12:
		c.month, c.day = second, first
	default:
		return false
	}
	return ok && c.month >= 1 && c.month <= 12 && c.behindDate(false)
}

// monthFirst scans Nov 20 15:04:05, with a year in front of it, behind the day, behind the
// clock, or none.
func (c *scan) monthFirst() bool {
	if c.month = uint(c.word(month)); c.month == 0 || !c.blanks() {
		return false
	}
	n := digits(c.s[c.at:])
	if n < 1 || n > 2 {
		return false
	}
	c.day, _ = c.number(n)
	c.dated = true
	if c.year == 0 {
		c.yearBehind(true)
	}
	if !c.behindDate(false) {
		return false
	}
	if c.year == 0 && c.clocked { // Fri Nov 20 15:04:05 UTC 2026
		c.yearBehind(false)
	}
	return c.year > 0 || c.clocked
}

// yearBehind scans a year behind the day, perhaps with a comma, or behind the clock.
func (c *scan) yearBehind(day bool) {
	at := c.at
	if day && c.peek(0) == ',' {
		c.at++
	}
	if !c.blanks() || digits(c.s[c.at:]) != 4 || !c.ended(4, day) {
		c.at = at
		return
	}
	if year, _ := c.number(4); year >= 1970 && year <= 2261 {
		c.year = year
		return
	}
	c.at = at
}

// ended reports whether a number of n bytes ends there: an address such as 2001:db8::1 is no
// year.
func (c *scan) ended(n int, comma bool) bool {
	switch c.peek(n) {
	case 0, ' ', '\t', ']', ')', '>', '"', '|':
		return true
	case ',':
		return comma
	case ':':
		return c.peek(n+1) == ' ' || c.peek(n+1) == 0
	}
	return false
}

// behindDate scans the clock behind a date, with its zone. A text that is a date alone is
// one too.
func (c *scan) behindDate(colon bool) bool {
	if c.whole && c.at == len(c.s) {
		return true
	}
	switch b := c.peek(0); {
	case b == ':' && c.peek(1) == ':': // Erlang
		c.at += 2
	case b == '-' && c.peek(3) == ':': // Suricata
		c.at++
	case b == 'T' || b == 't' || b == '\t' || b == '_' || colon && b == ':':
		c.at++
	case b == ',':
		c.at++
		if !c.blanks() {
			return false
		}
	case !c.blanks():
		return false
	case c.peek(0) == '@' && c.peek(1) == ' ': // Nov 20, 2026 @ 15:04:05 of Kibana
		c.at += 2
	case c.peek(0) == '-' && c.peek(1) == ' ' && c.s[c.at-1] == ' ': // 2026/11/20 - 15:04:05 of Gin
		c.at += 2
	}
	if c.whole && digits(c.s[c.at:]) == 6 { // 2026-11-20T150405Z
		return c.basicClock()
	}
	if !c.clock() {
		return false
	}
	if c.year == 0 {
		c.yearBehind(false)
	}
	return c.zone()
}

// onlyClock scans 15:04:05 with a zone.
func (c *scan) onlyClock() bool { return c.clock() && c.zone() }

// clock scans 15:04:05 with a fraction, and 3:04:05 PM. A text that is one time may lack the
// seconds.
func (c *scan) clock() bool {
	if s := c.s[c.at:]; len(s) > 8 && s[2] == ':' && s[5] == ':' && !isDigit(s[8]) {
		h, m, sec := two(s, 0), two(s, 3), two(s, 6)
		c.at += 8
		return c.setClock(h, m, sec) && c.fraction() && c.noon(h)
	}
	n := digits(c.s[c.at:])
	if n < 1 || n > 2 || c.peek(n) != ':' || n == 1 && c.at > 0 && c.s[c.at-1] != ' ' {
		return false
	}
	h, _ := c.number(n)
	if c.at++; digits(c.s[c.at:]) != 2 {
		return false
	}
	m, _ := c.number(2)
	s := uint(0)
	if c.peek(0) == ':' && isDigit(c.peek(1)) {
		if c.at++; digits(c.s[c.at:]) != 2 {
			return false
		}
		s, _ = c.number(2)
	} else if !c.whole {
		return false
	}
	if !c.setClock(h, m, s) || !c.fraction() {
		return false
	}
	return c.noon(h)
}

func (c *scan) setClock(h, m, s uint) bool {
	c.sec, c.clocked = int64(h*3600+m*60+s), true
	return h <= 23 && m <= 59 && s <= 60
}

// fraction scans .123 or ,123, and :123. Only the first nine digits of the former count.
func (c *scan) fraction() bool {
	switch b := c.peek(0); {
	case !isDigit(c.peek(1)):
		return true
	case b == '.', b == ',':
	case b == ':' && digits(c.s[c.at+1:]) == 3 && c.peek(4) != ':':
	default:
		return true
	}
	c.at++
	for scale := int64(second / 10); isDigit(c.peek(0)); c.at++ {
		c.nano += int64(c.s[c.at]-'0') * scale
		scale /= 10
	}
	return true
}

// noon scans AM or PM behind a clock of twelve hours. Java puts a narrow space before it.
func (c *scan) noon(hour uint) bool {
	rest := c.s[c.at:]
	for _, space := range [...]string{" ", "\u202f", "\u00a0"} {
		if bytes.HasPrefix(rest, []byte(space)) {
			rest = rest[len(space):]
			break
		}
	}
	if len(rest) < 2 || rest[1]|0x20 != 'm' || rest[0]|0x20 != 'a' && rest[0]|0x20 != 'p' || len(rest) > 2 && isWord(rest[2]) {
		return true
	}
	if hour < 1 || hour > 12 {
		return false
	}
	c.at = len(c.s) - len(rest) + 2
	if hour == 12 {
		c.sec -= 12 * 3600
	}
	if rest[0]|0x20 == 'p' {
		c.sec += 12 * 3600
	}
	return true
}

// number scans a number of n digits.
func (c *scan) number(n int) (v uint, ok bool) {
	for range n {
		v = v*10 + uint(c.s[c.at]-'0')
		c.at++
	}
	return v, n > 0
}

// blanks skips blanks, and reports whether there is one.
func (c *scan) blanks() bool {
	from := c.at
	for c.peek(0) == ' ' {
		c.at++
	}
	return c.at > from
}

// word scans a name, or its first three letters, that name recognises, and returns its number
// from 1. It returns 0 for other words.
func (c *scan) word(name func(letters uint32) (n int, whole string)) int {
	if c.at+3 > len(c.s) {
		return 0
	}
	w := c.s[c.at:]
	n, whole := name(uint32(w[0]|0x20)<<16 | uint32(w[1]|0x20)<<8 | uint32(w[2]|0x20))
	if n == 0 {
		return 0
	}
	end := 3
	for end < len(w) && isLetter(w[end]) {
		end++
	}
	if end > 3 && (end != len(whole) || !bytes.EqualFold(w[:end], []byte(whole))) {
		return 0
	}
	c.at += end
	return n
}
