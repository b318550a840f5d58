package times

import "encoding/binary"

// iso reads 2026-11-20T15:04:05 with a fraction and Z or an offset, as nearly all times are,
// in a tenth of the time of a scan. ok is false for all else, which a scan reads.
func (r *Reader) iso(s []byte) (ns int64, ok bool) {
	const least = len("2026-11-20T15:04:05Z")
	if len(s) < least || s[4] != '-' || s[10] != 'T' && s[10] != ' ' || s[13] != ':' || s[16] != ':' {
		return 0, false
	}
	day, ok := r.day(s)
	h, m, sec := two(s, 11), two(s, 14), two(s, 17)
	if !ok || h > 23 || m > 59 || sec > 60 {
		return 0, false
	}
	local := day + int64(h*3600+m*60+sec)
	s = s[len("2026-11-20T15:04:05"):]
	nano := int64(0)
	if (s[0] == '.' || s[0] == ',') && len(s) > 1 && isDigit(s[1]) {
		n := 1
		for scale := int64(second / 10); n < len(s) && isDigit(s[n]); n++ {
			nano += int64(s[n]-'0') * scale
			scale /= 10
		}
		s = s[n:]
	}
	if len(s) == 1 && s[0]|0x20 == 'z' {
		return Join(local, nano)
	}
	if len(s) != len("+01:00") || s[0] != '+' && s[0] != '-' || s[3] != ':' {
		return 0, false
	}
	h, m = two(s, 1), two(s, 4)
	if h > 23 || m > 59 {
		return 0, false
	}
	east := int64(h*3600 + m*60)
	if s[0] == '-' {
		east = -east
	}
	return Join(local-east, nano)
}

// isoPrefix reads the time that a text begins with in the form that [iso] reads, with Z or, if
// bare, without a zone. n is its length; 0 for all else, which a scan reads.
func (r *Reader) isoPrefix(s []byte, bare bool) (ns int64, n int) {
	n = len("2026-11-20T15:04:05")
	if len(s) <= n || s[4] != '-' || s[10] != 'T' && s[10] != ' ' || s[13] != ':' || s[16] != ':' {
		return 0, 0
	}
	day, ok := r.day(s)
	h, m, sec := two(s, 11), two(s, 14), two(s, 17)
	if !ok || h > 23 || m > 59 || sec > 60 || isDigit(s[n]) {
		return 0, 0
	}
	nano := int64(0)
	if (s[n] == '.' || s[n] == ',') && n+1 < len(s) && isDigit(s[n+1]) {
		n++
		for scale := int64(second / 10); n < len(s) && isDigit(s[n]); n++ {
			nano += int64(s[n]-'0') * scale
			scale /= 10
		}
	}
	switch {
	case n < len(s) && s[n] == 'Z' && (n+1 == len(s) || !isWord(s[n+1])):
		n++
	case !bare || !isBare(s[n:]):
		return 0, 0
	}
	if ns, ok = Join(day+int64(h*3600+m*60+sec), nano); !ok {
		return 0, 0
	}
	return ns, n
}

// isBare reports whether the text behind a clock is surely no zone: an end, a bracket, a word of
// five letters or more, or one that begins in lower case.
func isBare(s []byte) bool {
	if len(s) == 0 {
		return true
	}
	switch s[0] {
	case ']', ')', '"', '|', '\t', ';':
		return true
	case ' ':
	default:
		return false
	}
	if len(s) < 2 {
		return true
	}
	switch c := s[1]; {
	case c == '[', c == '|', c == '<', c == '"', c == '(', c == '*':
		return true
	case c|0x20 == 'z', c|0x20 == 'a', c|0x20 == 'p', !isLetter(c): // Z, AM and PM
		return false
	}
	end := 1
	for end < len(s) && isLetter(s[end]) {
		end++
	}
	if end < len(s) && (s[end] == '/' || s[end] == '+' || s[end] == '-' || isDigit(s[end])) {
		return false
	}
	_, known := zoneNamed(s[1:end])
	return !known
}

// day is [Day], and keeps the last date: nearly all times that a reader reads are of one day.
func (r *Reader) day(s []byte) (sec int64, ok bool) {
	head, tail := binary.LittleEndian.Uint64(s), binary.LittleEndian.Uint16(s[8:])
	if head == r.head && tail == r.tail && head != 0 {
		return r.daySec, true
	}
	if sec, ok = Day(s); ok {
		r.head, r.tail, r.daySec = head, tail, sec
	}
	return sec, ok
}
