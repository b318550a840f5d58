package stage

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// number reads a plain number.
func number(text []byte) (float64, error) {
	if n, ok := digits(text); ok {
		return n, nil
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no number", cut(text))
	}
	return f, nil
}

// digits reads a number that is digits only, which nearly all are.
func digits(text []byte) (float64, bool) {
	if len(text) == 0 || len(text) > 15 {
		return 0, false
	}
	n := int64(0)
	for _, c := range text {
		if c-'0' > 9 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return float64(n), true
}

// seconds reads a duration as of [time.ParseDuration], in seconds.
func seconds(text []byte) (float64, error) {
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return 0, fmt.Errorf("%q is no duration such as 1.5s", cut(text))
	}
	return d.Seconds(), nil
}

// size reads a number of bytes as programs print it: "5KB", "5 kb", "1.5MiB", "10". It is more
// lenient than units.Size, which is for the configuration of blobtail.
func size(text []byte) (float64, error) {
	t := strings.TrimSpace(string(text))
	end := len(t) - len(strings.TrimLeft(t, "0123456789.,"))
	n, err := strconv.ParseFloat(strings.ReplaceAll(t[:end], ",", ""), 64)
	times, ok := sizeUnit(strings.ToLower(strings.TrimSpace(t[end:])))
	if err != nil || !ok {
		return 0, fmt.Errorf("%q is no size such as 5KB or 3MiB", cut(text))
	}
	return n * times, nil
}

// sizeUnit is the number of bytes of a unit in lower case.
func sizeUnit(unit string) (float64, bool) {
	if unit == "" || unit == "b" {
		return 1, true
	}
	power := strings.IndexByte("kmgtpe", unit[0]) + 1
	base := 1000.0
	switch unit[1:] {
	case "", "b":
	case "i", "ib":
		base = 1024
	default:
		power = 0
	}
	n := 1.0
	for range power {
		n *= base
	}
	return n, power > 0
}

// cut is a value in a message about it.
func cut(text []byte) []byte {
	const shown = 64
	return text[:min(len(text), shown)]
}
