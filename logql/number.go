package logql

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// errNumber says that a text is no duration and no size.
var errNumber = errors.New("not a number with units")

// parseDuration reads a duration such as 5m, 1.5h or 1d12h, of 146 years at most.
func parseDuration(s string) (time.Duration, error) {
	var sum float64
	whole := time.Duration(0)
	for s != "" {
		value, unit, rest := numberAndUnit(s)
		each := durationUnit(unit)
		if value == "" || each == 0 {
			return 0, errNumber
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, err
		}
		if sum += v * float64(each); sum > 1<<62 {
			return 0, errNumber
		}
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			whole += time.Duration(n) * each // exact where it can be
		} else {
			whole += time.Duration(v * float64(each))
		}
		s = rest
	}
	return whole, nil
}

// parseBytes reads a size such as 5KB or 3MiB, in bytes.
func parseBytes(s string) (float64, error) {
	value, unit, rest := numberAndUnit(s)
	each := byteUnit(unit)
	if value == "" || each == 0 || rest != "" {
		return 0, errNumber
	}
	v, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return 0, err
	}
	return v * each, nil
}

// numberAndUnit splits a number with its unit from a text. The number may have a point.
func numberAndUnit(s string) (value, unit, rest string) {
	n := digits(s)
	if n > 0 && n+1 < len(s) && s[n] == '.' && digit(s[n+1]) {
		n++
		n += digits(s[n:])
	}
	end := n
	for end < len(s) && !digit(s[end]) && s[end] != '.' {
		end++
	}
	return s[:n], s[n:end], s[end:]
}

func durationUnit(s string) time.Duration {
	switch s {
	case "ns":
		return time.Nanosecond
	case "us", "µs", "μs":
		return time.Microsecond
	case "ms":
		return time.Millisecond
	case "s":
		return time.Second
	case "m":
		return time.Minute
	case "h":
		return time.Hour
	case "d":
		return 24 * time.Hour
	case "w":
		return 7 * 24 * time.Hour
	case "y":
		return 365 * 24 * time.Hour
	}
	return 0
}

func byteUnit(s string) float64 {
	base := 1000.0
	prefix, ok := strings.CutSuffix(s, "iB")
	if ok {
		base = 1024
	} else if prefix, ok = strings.CutSuffix(s, "B"); !ok {
		return 0
	}
	switch {
	case prefix == "" && base == 1000:
		return 1
	case prefix == "k" && base == 1000, prefix == "K":
		return base
	case prefix == "M":
		return base * base
	case prefix == "G":
		return base * base * base
	case prefix == "T":
		return math.Pow(base, 4)
	case prefix == "P":
		return math.Pow(base, 5)
	}
	return 0
}

// formatDuration is d as parseDuration reads it.
func formatDuration(d time.Duration) string {
	if d == 0 {
		return "0s"
	}
	var b strings.Builder
	if d < 0 {
		b.WriteByte('-')
		d = -d
	}
	for _, unit := range [...]string{"d", "h", "m", "s", "ms", "us", "ns"} {
		each := durationUnit(unit)
		if n := d / each; n > 0 {
			b.WriteString(strconv.FormatInt(int64(n), 10) + unit)
			d -= n * each
		}
	}
	return b.String()
}

// formatNumber is v as a number of a query.
func formatNumber(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
