package times

import (
	"bytes"
	"time"
)

// zone scans the zone behind a clock, if there is one. It reports false for a sign and digits
// that are no offset: the time is of another zone than UTC then.
func (c *scan) zone() bool {
	at := c.at
	if c.peek(0) == ' ' {
		c.at++
	}
	b := c.peek(0)
	switch {
	case (b == '+' || b == '-') && isDigit(c.peek(1)):
		return c.offset(2) && c.zoneName()
	case (b == 'Z' || b == 'z') && !isWord(c.peek(1)):
		c.at++
		c.zoned = true
		return true
	}
	n := 0
	for isLetter(c.peek(n)) && n < 10 {
		n++
	}
	if b = c.peek(n); b == '/' && n > 2 && c.peek(0)-'A' < 26 { // others are paths
		return c.place()
	}
	word := c.s[c.at : c.at+n]
	east, known := zoneNamed(word)
	if !known || isWord(c.peek(n)) && c.peek(n) != '+' && c.peek(n) != '-' {
		c.at = at
		return true
	}
	c.at += n
	c.east, c.zoned = east, true
	if b = c.peek(0); (b == '+' || b == '-') && isDigit(c.peek(1)) {
		return c.offset(1) // UTC+1
	}
	return true
}

// mostUnknown is how many unknown places a Reader looks for among the records of one arrival: each
// costs it some files. The count begins again with another Reader.Now.
const mostUnknown = 50

// place scans the name of a zone by its place, such as Europe/Vienna, which PHP writes. It
// reports false for one that this host does not know.
func (c *scan) place() bool {
	n := 0
	for isLetter(c.peek(n)) || n > 0 && (c.peek(n) == '/' || c.peek(n) == '_' || c.peek(n) == '-') {
		n++
	}
	r, name := c.r, c.s[c.at:c.at+n]
	if r.place == nil || string(name) != r.placeName {
		if r.unknownOf != r.Now {
			r.unknown, r.unknownOf = 0, r.Now
		}
		if r.Now != 0 && r.unknown == mostUnknown {
			return false
		}
		zone, err := time.LoadLocation(string(name))
		if err != nil {
			r.unknown++
			return false
		}
		r.placeName, r.place = string(name), zone
	}
	c.at += n
	c.local = r.place
	return true
}

// offset scans +01, +0100, +01:00 and +01:00:00. least is how many digits it has: 1 also takes
// -5 and -5:30. It ends at any byte that is neither a digit nor a colon.
func (c *scan) offset(least int) bool {
	n := 1
	for isDigit(c.peek(n)) || c.peek(n) == ':' {
		n++
	}
	text := bytes.TrimRight(c.s[c.at+1:c.at+n], ":")
	var h, m, s uint
	switch k := digits(text); {
	case k == 1 && least == 1 && len(text) == 1:
		h = uint(text[0] - '0')
	case k == 1 && least == 1 && len(text) == 4 && digits(text[2:]) == 2:
		h, m = uint(text[0]-'0'), two(text, 2)
	case k == 2 && len(text) == 2:
		h = two(text, 0)
	case k == 4 && len(text) == 4:
		h, m = two(text, 0), two(text, 2)
	case k == 2 && len(text) == 5:
		h, m = two(text, 0), two(text, 3)
	case k == 2 && len(text) == 8 && text[5] == ':':
		h, m, s = two(text, 0), two(text, 3), two(text, 6)
	default:
		return false
	}
	if h > 23 || m > 59 || s > 59 {
		return false
	}
	c.east, c.zoned = int64(h*3600+m*60+s), true
	if c.s[c.at] == '-' {
		c.east = -c.east
	}
	c.at += 1 + len(text)
	return true
}

// zoneName scans the name that Go writes behind an offset: +0000 UTC. Python's isoformat() + "Z" has
// +00:00Z.
func (c *scan) zoneName() bool {
	if (c.peek(0) == 'Z' || c.peek(0) == 'z') && !isWord(c.peek(1)) {
		c.at++
		return true
	}
	n := 1
	for isLetter(c.peek(n)) && n < 7 {
		n++
	}
	if _, known := zoneNamed(c.s[min(c.at+1, len(c.s)):min(c.at+n, len(c.s))]); c.peek(0) == ' ' && known && !isWord(c.peek(n)) {
		c.at += n
	}
	return true
}

// tail scans the rest of a text that is one time: the name of the zone of its offset, and Go's
// monotonic clock.
func (c *scan) tail() {
	rest := c.s[c.at:]
	if !c.zoned || len(rest) == 0 {
		return
	}
	if rest[0] == ' ' {
		n := 1
		for n < len(rest) && (isWord(rest[n]) || rest[n] == '+' || rest[n] == '-') && n < 8 {
			n++
		}
		if n > 2 && (n == len(rest) || rest[n] == ' ') {
			rest = rest[n:]
		}
	}
	if len(rest) > len(" m=+") && bytes.HasPrefix(rest, []byte(" m=")) && number(rest[len(" m=+"):]) {
		rest = nil
	}
	if name := bytes.TrimPrefix(rest, []byte(" ")); len(name) > 2 && (name[0] == '[' && bytes.IndexByte(name, ']') == len(name)-1 || name[0] == '(' && bytes.IndexByte(name, ')') == len(name)-1) {
		rest = nil // Java's [Europe/Berlin], JavaScript's (Central European Standard Time)
	}
	c.at = len(c.s) - len(rest)
}

func number(s []byte) bool {
	_, ok := Number(s)
	return ok
}

// zoneNamed is the offset of a zone with letters of one meaning, in seconds east of UTC.
func zoneNamed(word []byte) (east int64, known bool) {
	const hour = 3600
	switch string(word) {
	case "UTC", "GMT", "WET":
		return 0, true
	case "CET", "WEST":
		return hour, true
	case "CEST", "EET":
		return 2 * hour, true
	case "EEST", "MSK":
		return 3 * hour, true
	case "JST", "KST":
		return 9 * hour, true
	case "AEST":
		return 10 * hour, true
	case "AEDT":
		return 11 * hour, true
	case "NZST":
		return 12 * hour, true
	case "NZDT":
		return 13 * hour, true
	case "EDT":
		return -4 * hour, true
	case "EST":
		return -5 * hour, true
	case "MDT":
		return -6 * hour, true
	case "PDT":
		return -7 * hour, true
	}
	return 0, false
}
