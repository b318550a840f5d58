package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is a span of time that is written as Go writes it, with d (24 h) and
// w (7 d) besides: 90s, 1h30m, 1d12h. A unit is mandatory.
type Duration time.Duration

// ParseDuration reads a [Duration]. It takes no sign.
func ParseDuration(s string) (time.Duration, error) {
	rest, total := s, time.Duration(0)
	fail := func() (time.Duration, error) {
		return 0, fmt.Errorf("%q is no duration; want a number and a unit, for example 90s, 15m, 12h, 3d or 1d12h", s)
	}
	if s == "" || s[0] == '-' || s[0] == '+' {
		return fail()
	}
	for rest != "" {
		end := 0
		for end < len(rest) && (rest[end] >= '0' && rest[end] <= '9' || rest[end] == '.') {
			end++
		}
		num := rest[:end]
		rest = rest[end:]
		end = 0
		for end < len(rest) && (rest[end] < '0' || rest[end] > '9') && rest[end] != '.' {
			end++
		}
		unit := rest[:end]
		rest = rest[end:]
		days := time.Duration(0)
		switch unit {
		case "d":
			days = 1
		case "w":
			days = 7
		}
		if days > 0 {
			n, err := strconv.ParseFloat(num, 64)
			span := n * float64(days) * float64(24*time.Hour)
			if err != nil || span > math.MaxInt64/2 {
				return fail()
			}
			total += time.Duration(span)
			continue
		}
		d, err := time.ParseDuration(num + unit)
		if err != nil {
			return fail()
		}
		total += d
	}
	if total < 0 {
		return fail()
	}
	return total, nil
}

// UnmarshalText reads a duration.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := ParseDuration(string(text))
	if err == nil {
		*d = Duration(v)
	}
	return err
}

// MarshalText writes what UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// String is the shortest form: 1h, not 1h0m0s.
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Size is a number of bytes, written with a unit: 512KiB, 32MiB, 1GiB, or KB,
// MB, GB for powers of ten, or B. A bare number is bytes.
type Size int64

var sizeUnits = [...]struct {
	name string
	n    int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"kB", 1e3}, {"B", 1},
}

// ParseSize reads a [Size].
func ParseSize(s string) (Size, error) {
	num, unit := s, int64(1)
	for _, u := range sizeUnits {
		if cut, ok := strings.CutSuffix(s, u.name); ok {
			num, unit = strings.TrimSpace(cut), u.n
			break
		}
	}
	n, err := strconv.ParseFloat(num, 64)
	if err != nil || n < 0 || n*float64(unit) > math.MaxInt64/2 || math.IsNaN(n) {
		return 0, fmt.Errorf("%q is no size; want a number and a unit, for example 512KiB, 32MiB or 1GiB", s)
	}
	return Size(n * float64(unit)), nil
}

// UnmarshalText reads a size.
func (s *Size) UnmarshalText(text []byte) error {
	v, err := ParseSize(string(text))
	if err == nil {
		*s = v
	}
	return err
}

// MarshalText writes what UnmarshalText reads.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String uses the largest binary unit that leaves a whole number.
func (s Size) String() string {
	for _, u := range sizeUnits[:4] {
		if s != 0 && int64(s)%u.n == 0 {
			return strconv.FormatInt(int64(s)/u.n, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}
