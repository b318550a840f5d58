package times

import (
	"bytes"
	"errors"
	"math"
	"strconv"
)

// Number parses a Unix time: seconds below 1e11, milliseconds below 1e14, microseconds below
// 1e17, else nanoseconds, with fraction and exponent. Fractions of a nanosecond are rounded
// down. ok is false for any other text, and outside the years that fit (1677 to 2262). All
// arithmetic is on the digits: a float64 has no
// room for nanoseconds.
func Number(s []byte) (ns int64, ok bool) {
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

func isDigit(c byte) bool { return c-'0' <= 9 }

func isLetter(c byte) bool { return c|0x20-'a' < 26 }

func isWord(c byte) bool { return isDigit(c) || isLetter(c) || c == '_' || c >= 0x80 }
