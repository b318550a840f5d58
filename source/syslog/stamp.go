package syslog

import (
	"bytes"
	"time"

	"blobtail/record/times"
)

// A parser reads messages. It belongs to one goroutine at a time.
type parser struct {
	times times.Reader // its zone is that of times without one
}

// arrive sets the time of arrival. A time without a year is of the latest year that is not
// more than 24 h ahead of it.
func (p *parser) arrive(now time.Time) { p.times.Now = now.UnixNano() }

// stamp reads the time at the start of b. n is its length with its zone, 0 if there is none.
// One of the bytes *, . and ! may stand before it: Cisco's devices say so whether their clocks
// are set.
func (p *parser) stamp(b []byte) (ns int64, n int) {
	at := 0
	if len(b) > 0 && (b[0] == '*' || b[0] == '.' || b[0] == '!') {
		at = 1
	}
	s := b[at:]
	ns, n = p.times.Prefix(s)
	if n == 0 {
		return 0, 0
	}
	name, end := zoneWord(s, n)
	if end == 0 {
		return ns, at + n
	}
	if east, ok := eastOf(name); ok {
		other := times.Reader{Zone: time.FixedZone("", east), Now: p.times.Now}
		ns, _ = other.Prefix(s[:n])
	}
	return ns, at + end
}

// zoneWord returns the word of a zone behind a clock, and its end; 0: there is none. Before a
// colon and a name such as %SYS-5-CONFIG_I any word is a zone, else only letters in upper
// case, because a word before a colon may be the host or the tag.
func zoneWord(s []byte, at int) (name []byte, end int) {
	const longest = 32
	from := skipSpaces(s, at)
	end = from
	for end < len(s) && end < from+longest && (isLetter(s[end]) || isDigit(s[end]) || bytes.IndexByte([]byte("+-_/."), s[end]) >= 0 || zoneColon(s, end)) {
		end++
	}
	behind := bytes.TrimLeft(s[end:], " ")
	if from == at || from == end || len(behind) == 0 || behind[0] != ':' {
		return nil, 0
	}
	name = s[from:end]
	upper := len(name) >= 3 && len(name) <= 5
	for _, c := range name {
		upper = upper && c-'A' < 26
	}
	if !upper && (s[end] != ':' || mnemonic(bytes.TrimLeft(behind[1:], " ")) == nil) {
		return nil, 0
	}
	return name, end
}

// zoneColon reports whether a colon is within the offset of a zone, as in UTC+05:30.
func zoneColon(s []byte, at int) bool {
	return s[at] == ':' && at > 0 && isDigit(s[at-1]) && at+2 < len(s) && isDigit(s[at+1]) && isDigit(s[at+2])
}

// eastOf is the offset in the name of a zone, such as UTC+1, in seconds.
func eastOf(name []byte) (east int, ok bool) {
	at := bytes.IndexAny(name, "+-")
	if at < 0 {
		return 0, false
	}
	ns, n := new(times.Reader).Prefix(append([]byte("2000-01-01 00:00:00 UTC"), name[at:]...))
	if n != len("2000-01-01 00:00:00 UTC")+len(name)-at {
		return 0, false
	}
	start, _ := times.Parse([]byte("2000-01-01"))
	return int((start - ns) / int64(time.Second)), true
}

func skipSpaces(s []byte, at int) int {
	for at < len(s) && s[at] == ' ' {
		at++
	}
	return at
}
