// Package units reads and writes spans of time and sizes as people write them: 1d12h, 32MiB.
package units

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Duration is a span of time. It is written as Go writes it, and with d (24 h) and w
// (7 d): 90s, 1h30m, 1d12h. A unit is mandatory.
type Duration time.Duration

// amount is a number and its unit, which 0 does not need.
func amount() *regexp.Regexp { return regexp.MustCompile(`[0-9.]+[^0-9.]*`) }

// ParseDuration reads a [Duration]. It accepts no sign.
func ParseDuration(s string) (time.Duration, error) {
	total, bad := time.Duration(0), s == ""
	rest := amount().ReplaceAllStringFunc(s, func(text string) string {
		times := time.Duration(1)
		if days, ok := strings.CutSuffix(text, "d"); ok {
			text, times = days+"h", 24
		} else if weeks, ok := strings.CutSuffix(text, "w"); ok {
			text, times = weeks+"h", 7*24
		}
		d, err := time.ParseDuration(text)
		bad = bad || err != nil || d > (math.MaxInt64-total)/times
		total += d * times
		return ""
	})
	if n, err := strconv.Atoi(strings.TrimSuffix(s, "M")); err == nil && n >= 0 && n <= math.MaxInt32 && strings.HasSuffix(s, "M") {
		return 0, &AmbiguousError{s, [2]string{fmt.Sprintf("%dm", n), fmt.Sprintf("%dd", 30*n)}} // a minute, or a month
	}
	if bad || rest != "" {
		return 0, fmt.Errorf("%q is no duration; want a number and a unit, for example 90s, 15m, 12h, 3d or 1d12h", s)
	}
	return total, nil
}

// AmbiguousError says that a text has two readings.
type AmbiguousError struct {
	Text     string
	Readings [2]string
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q may mean %s or %s; write the one you mean", e.Text, e.Readings[0], e.Readings[1])
}

// UnmarshalText reads a duration.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := ParseDuration(string(text))
	*d = Duration(v)
	return err
}

// MarshalText writes the text that UnmarshalText reads.
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

// Auto is a [Duration] that the program chooses when it is 0, which is written as auto.
type Auto time.Duration

// UnmarshalText reads a duration of more than 0, or auto.
func (a *Auto) UnmarshalText(text []byte) error {
	if *a = 0; len(text) == 0 || string(text) == "auto" {
		return nil
	}
	v, err := ParseDuration(string(text))
	switch {
	case err != nil:
		return fmt.Errorf("%w, or auto", err)
	case v == 0:
		return fmt.Errorf("%q is too short; want more than 0, for example 5m, or auto", text)
	}
	*a = Auto(v)
	return nil
}

// MarshalText writes the text that UnmarshalText reads.
func (a Auto) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// String is auto, or that of the duration.
func (a Auto) String() string {
	if a == 0 {
		return "auto"
	}
	return Duration(a).String()
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

// UnmarshalText reads a size.
func (s *Size) UnmarshalText(text []byte) error {
	num, unit := string(text), int64(1)
	for _, u := range sizeUnits {
		if cut, ok := strings.CutSuffix(num, u.name); ok {
			num, unit = strings.TrimSpace(cut), u.n
			break
		}
	}
	n, err := strconv.ParseFloat(num, 64)
	if err != nil {
		if many := oneLetter(string(text)); many != nil {
			return many
		}
	}
	if err != nil || n < 0 || n*float64(unit) > math.MaxInt64/2 || math.IsNaN(n) {
		return fmt.Errorf("%q is no size; want a number and a unit, for example 512KiB, 32MiB or 1GiB", text)
	}
	*s = Size(n * float64(unit))
	return nil
}

// oneLetter returns the readings of a size with a letter as unit, such as 32M: some programs count
// in powers of two, and some in powers of ten. It is nil for another text.
func oneLetter(text string) error {
	num := strings.TrimRight(text, "KMGTkmgt")
	unit := strings.ToUpper(text[len(num):])
	num = strings.TrimSpace(num)
	if n, err := strconv.ParseFloat(num, 64); err != nil || !(n >= 0) || len(unit) != 1 {
		return nil
	}
	return &AmbiguousError{text, [2]string{num + unit + "iB", num + unit + "B"}}
}

// MarshalText writes the text that UnmarshalText reads.
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
