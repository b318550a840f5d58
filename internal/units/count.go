package units

import (
	"strconv"
	"strings"
)

// Count is a number of things in English, as "1 record" and "1,200 records". The name is that of one
// thing, such as "record", "entry" or "series".
func Count[N int | int64](n N, thing string) string { return Thousands(n) + " " + Plural(n, thing) }

// Plural is the word for so many things, by the word for one of them.
func Plural[N int | int64](n N, thing string) string {
	if n == 1 {
		return thing
	}
	stem, y := strings.CutSuffix(thing, "y")
	switch {
	case strings.HasSuffix(thing, "series"):
		return thing
	case y && !strings.HasSuffix(stem, "a"): // a day is not an entry
		return stem + "ies"
	case strings.HasSuffix(thing, "s"), strings.HasSuffix(thing, "x"):
		return thing + "es"
	}
	return thing + "s"
}

// Thousands writes a number with commas.
func Thousands[N int | int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Word is the word for one thing, or that for another number of things, as "is" and "are".
func Word[N int | int64](n N, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
